"""Passes for the pass infrastructure of onnx_ir: infer types, convert, check for runtimes.

    passes = onnx_ir.passes.PassManager([ConvertPass(opset=18), InferTypesPass(), CheckPass("onnxruntime")])
    model = passes(onnx_ir.load("model.onnx")).model

The passes that return a model are functional: the model that they are given does not change. The result has no `meta`,
which onnx_ir never writes to a file.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir
from onnx_ir.passes import FunctionalPass, PassBase, PassResult

from splitgraph import api
from splitgraph.findings.diagnostics import Diagnostic, SplitgraphError
from splitgraph.pipelines import raise_errors

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from splitgraph.conversion.rewrite import Change
    from splitgraph.keywords import ConvertOptions, InferOptions
    from splitgraph.options import Form
    from splitgraph.verification.verification import Verification


class InferTypesPass(FunctionalPass):
    """Infer the types and shapes of all values, as `splitgraph.infer` does.

    options: the keywords of `splitgraph.infer`. diagnostics: the findings of the last run.
    Raises SplitgraphError for a model that is wrong, ModelError for one that cannot be read.
    """

    def __init__(self, **options: Unpack[InferOptions]) -> None:
        super().__init__()
        inspect.signature(api.infer).bind(None, **options)
        self._options = options
        self.diagnostics: tuple[Diagnostic, ...] = ()

    def call(self, model: onnx_ir.Model) -> PassResult:
        """Return a copy of the model with the inferred types."""
        analysis = api.infer(model, **self._options)
        self.diagnostics = analysis.diagnostics
        raise_errors(analysis.diagnostics)
        result: Any = analysis.model
        return PassResult(result, modified=list(_types(result)) != list(_types(model)))


class ConvertPass(FunctionalPass):
    """Convert a model to another opset, for a runtime, or its splits to another form, as `splitgraph.convert` does.

    to, options: the arguments of `splitgraph.convert`; `verify=True` runs the model and the result. changes,
    diagnostics, verification: of the last run.
    Raises SplitgraphError for wrong arguments, ConversionError with every blocker, VerificationError for a result that
    differs.
    """

    def __init__(self, to: Form | None = None, **options: Unpack[ConvertOptions]) -> None:
        super().__init__()
        inspect.signature(api.convert).bind(None, to, **options)
        asked = ("opset", "target", "fold", "standard", "drop_zipmap", "ir_version", "read_by_form", "fix_defaults")
        if to is None and all(options.get(name) in (None, False) for name in asked):
            raise SplitgraphError(
                "ConvertPass needs a form of the splits (to), an opset, a target, fold, standard, drop_zipmap, an IR "
                "version, read_by_form or fix_defaults"
            )
        self._to: Form | None = to
        self._options = options
        self.changes: tuple[Change, ...] = ()
        self.diagnostics: tuple[Diagnostic, ...] = ()
        self.verification: Verification | None = None

    def call(self, model: onnx_ir.Model) -> PassResult:
        """Return a converted copy of the model."""
        rewrite = api.convert(model, self._to, **self._options)
        self.changes, self.diagnostics = rewrite.changes, rewrite.diagnostics
        self.verification = rewrite.verification
        result: Any = rewrite.model
        versions = (rewrite.from_opset, model.ir_version), (rewrite.to_opset, result.ir_version)
        # Without its default, an input is a constant.
        same = versions[0] == versions[1] and len(result.graph.inputs) == len(model.graph.inputs)
        return PassResult(result, modified=bool(rewrite.changes) or not same)


class CheckPass(PassBase):
    """Refuse a model that a runtime refuses or computes wrong, as `splitgraph.check` finds; the model does not change.

    target: the name of a runtime, or several. diagnostics: the findings of the last run.
    Raises SplitgraphError for a target that is not known, and for a model that the target does not read.
    """

    def __init__(self, target: str | Sequence[str]) -> None:
        super().__init__()
        from splitgraph.runtimes.target import find_target

        self._targets = [target] if isinstance(target, str) else list(target)
        for name in self._targets:
            find_target(name)
        self.diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def in_place(self) -> bool:
        """True: the model that is returned is the model that was given."""
        return True

    @property
    def changes_input(self) -> bool:
        """False: the model is only read."""
        return False

    def call(self, model: onnx_ir.Model) -> PassResult:
        """Return the model as it is."""
        self.diagnostics = api.check(model, self._targets)
        raise_errors(self.diagnostics)
        return PassResult(model, modified=False)


def _types(model: onnx_ir.Model) -> Iterator[tuple[str | None, str, str]]:
    """Return the name, type and shape of every value, as texts: two unknown dimensions of onnx_ir are not equal."""
    functions = list(model.functions.values())
    graphs: list[Any] = [
        *model.graphs(),
        *functions,
        *(graph for function in functions for graph in function.subgraphs()),
    ]
    for graph in graphs:
        produced = (value for node in graph for value in node.outputs)
        for value in (*graph.inputs, *produced, *graph.outputs):
            yield value.name, str(value.type), str(value.shape)
