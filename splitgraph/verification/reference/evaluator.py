"""Run models with the reference evaluator of onnx, without its faults.

The evaluator of onnx validates no split, passes `new_ops` to subgraphs but not to functions, ignores the defaults of
function attributes, treats an omitted Loop condition as false, stacks scan outputs along the wrong axis, and passes an
omitted output to later nodes as their omitted inputs. Here, the split family runs on strict `kernels`, in the version
that the opset import of the enclosing model or function selects. `replacements` runs what the evaluator ignores, lacks
or computes wrongly, such as a Loop. A call of a model-local function runs a copy of its body in which the attributes of
the call are written out. A model is refused if the evaluator would run an operator with the meaning of another version,
or without an attribute that it ignores: the result would prove nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from splitgraph.model.schemas import version_at
from splitgraph.verification.models.model_files import name_omitted_outputs, read_elements, scoped_nodes, specialise
from splitgraph.verification.reference.ignored import find_ignored
from splitgraph.verification.reference.kernels import ONNX_KERNEL_VERSIONS
from splitgraph.verification.reference.onnxruntime_kernels import FOREIGN, WRITTEN_INTO_ONNX
from splitgraph.verification.reference.replacements import implementation
from splitgraph.verification.values import UnsupportedError, Value

# Operators that the evaluator runs with the meaning of a later version: the first version that it runs correctly.
_FIRST_FAITHFUL_VERSION: Mapping[str, int] = {
    "Scan": 9,  # batched, and with sequence_lens
}


# Inputs that are one number, which engines take alone and as a list of one element. The evaluator takes one of the two.
_TAKES_NUMBER: Mapping[str, Sequence[int]] = {
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), (0,)),
    **dict.fromkeys(("CumSum", "OneHot", "SequenceAt", "SequenceErase"), (1,)),
    "DFT": (1, 2),
    "MelWeightMatrix": (0, 1, 2, 3, 4),
    "STFT": (1, 3),
    "SequenceInsert": (2,),
}
_TAKES_LIST: Mapping[str, Sequence[int]] = {"NonMaxSuppression": (2, 3, 4)}


class _FunctionCall(OpRun):
    """Calls a model-local function whose body was specialised for this call."""

    def __init__(self, node: onnx.NodeProto, run_params: dict[str, Any], body: ReferenceEvaluator) -> None:
        super().__init__(node, run_params)
        self._body = body

    def _run(self, *inputs: Any, **_: Any) -> tuple[Any, ...]:
        names = self._body.input_names
        if len(inputs) > len(names):
            raise UnsupportedError(f"{self.op_type} is called with {len(inputs)} inputs but declares {len(names)}")
        feeds = {**dict.fromkeys(names), **dict(zip(names, inputs, strict=False))}
        return tuple(self._body.run(None, feeds, attributes={}))


class _Evaluator(ReferenceEvaluator):
    """The evaluator of onnx with other implementations.

    model_functions, data_folder: set in a subclass for each model.
    """

    model_functions: ClassVar[Mapping[tuple[str, str, str], onnx.FunctionProto]] = {}
    data_folder: ClassVar[Path] = Path()

    def retrieve_external_data(self, initializer: onnx.TensorProto) -> Any:
        """Return the elements of an external initializer; onnx calls this method where they are used."""
        return read_elements(initializer, self.data_folder)

    @property
    def opsets(self) -> dict[str, int]:
        """Return the imported versions; "ai.onnx" is another name of the default domain."""
        versions = dict(self.opsets_)
        for name, alias in (("", "ai.onnx"), ("ai.onnx", "")):
            if name in versions:
                versions.setdefault(alias, versions[name])
        return versions

    def _load_impl(self, node: onnx.NodeProto, input_types: Any = None) -> Any:
        function = self.model_functions.get((node.domain, node.op_type, node.overload))
        if function is not None:
            body = specialise(function, node)
            evaluator = type(self)(body)
            return lambda node, run_params: _FunctionCall(node, run_params, evaluator)
        if node.domain == "com.microsoft" and node.op_type in FOREIGN:
            return FOREIGN[node.op_type]
        if node.domain not in ("", "ai.onnx"):
            return super()._load_impl(node, input_types)
        own = self._own_implementation(node)
        if own is not None:
            return own
        plain = onnx.NodeProto()
        plain.CopyFrom(node)
        plain.domain = ""
        lost = find_ignored(plain, onnx.defs.get_schema(node.op_type, self.opsets[""]))
        if lost:
            raise UnsupportedError(f"onnx's reference evaluator ignores {lost} of {node.op_type}")
        theirs = super()._load_impl(plain, input_types)
        _check_attributes(plain, theirs)
        return _with_single_numbers(theirs, node.op_type)

    def _own_implementation(self, node: onnx.NodeProto) -> type[OpRun] | None:
        opset = self.opsets.get("")
        if opset is None:
            raise UnsupportedError(f"{node.op_type} is used, but the opset import of ai.onnx is missing")
        until, kernel = WRITTEN_INTO_ONNX.get(node.op_type, (0, None))
        if opset < until:
            return kernel
        try:
            since_version = onnx.defs.get_schema(node.op_type, opset).since_version
        except onnx.defs.SchemaError:
            raise UnsupportedError(f"{node.op_type} does not exist at opset {opset}") from None
        meant = version_at("", node.op_type, opset)
        if meant is not None and meant.since_version > since_version:
            raise UnsupportedError(
                f"the installed onnx {onnx.__version__} knows {node.op_type}-{since_version}, but not "
                f"{node.op_type}-{meant.since_version}, which the model uses"
            )
        first = _FIRST_FAITHFUL_VERSION.get(node.op_type, 1)
        if since_version < first:
            wrong = f"runs {node.op_type}-{since_version} with the meaning of {node.op_type}-{first}"
            raise UnsupportedError(f"onnx's reference evaluator {wrong}")
        if node.op_type in ONNX_KERNEL_VERSIONS and since_version not in ONNX_KERNEL_VERSIONS[node.op_type]:
            # The evaluator of onnx might run it with the meaning of another version.
            raise UnsupportedError(f"splitgraph has no kernel for {node.op_type}-{since_version}")
        return implementation(node.op_type, since_version)


def _with_single_numbers(theirs: Any, op_type: str) -> Any:
    """Return an implementation that takes one number alone and as a list."""
    places, shape = (_TAKES_NUMBER[op_type], ()) if op_type in _TAKES_NUMBER else (_TAKES_LIST.get(op_type, ()), (1,))
    if not places or not isinstance(theirs, type):
        return theirs

    def run_with_numbers(self: Any, *inputs: Any, **attributes: Any) -> Any:
        given = [
            np.reshape(value, shape) if place in places and np.size(value) == 1 and value is not None else value
            for place, value in enumerate(inputs)
        ]
        return theirs._run(self, *given, **attributes)  # type: ignore[attr-defined]  # a class of onnx

    return type(theirs.__name__, (theirs,), {"_run": run_with_numbers})


def _check_attributes(node: onnx.NodeProto, theirs: Any) -> None:
    """Refuse attributes of older versions of an operator if the evaluator only has the newest one.

    Its binary operators would ignore them, such as `broadcast` and `axis` of Add-6.
    """
    if getattr(theirs, "__name__", "") != node.op_type:
        return
    known = onnx.defs.get_schema(node.op_type).attributes
    for attribute in node.attribute:
        if attribute.name not in known:
            raise UnsupportedError(
                f"onnx's reference evaluator knows no attribute {attribute.name!r} of {node.op_type}"
            )


def load(model: onnx.ModelProto, data_folder: Path = Path()) -> ReferenceEvaluator:
    """Prepare a model; raise UnsupportedError if the evaluator would not run it correctly.

    data_folder: of the external initializers.
    """
    if any("" in node.output for node, _ in scoped_nodes(model)):
        original, model = model, onnx.ModelProto()
        model.CopyFrom(original)
        name_omitted_outputs(model, of_splits_only=False)
    functions = {(function.domain, function.name, function.overload): function for function in model.functions}
    evaluator = type("ModelEvaluator", (_Evaluator,), {"model_functions": functions, "data_folder": data_folder})
    loaded: ReferenceEvaluator = evaluator(
        model.graph, opsets={imported.domain: imported.version for imported in model.opset_import}
    )
    return loaded


def run(evaluator: ReferenceEvaluator, feeds: Mapping[str, Value], names: Sequence[str] | None = None) -> list[Value]:
    """Run a prepared model; return the outputs of these names, or all in the order of the graph."""
    # Infinities and NaN are results, too, of which NumPy warns.
    with np.errstate(all="ignore"):
        return list(evaluator.run(None if names is None else list(names), dict(feeds)))
