"""The verbs of the Python API, which are those of the command line. Every one takes a model source and changes none."""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from splitgraph import formats
from splitgraph.diagnostics import SplitgraphError, VerificationError, diagnostic
from splitgraph.formats import LoadedModel, OpenVINOModel, give_back, load, open_model
from splitgraph.garbage_collection import collection_paused
from splitgraph.graph.scopes import opset_imports
from splitgraph.onnx_proto import ModelProto

if TYPE_CHECKING:
    import numpy as np

    from splitgraph.conversion.rewrite import Rewrite, Tolerance
    from splitgraph.dim import Dim
    from splitgraph.execution.verification import Verification
    from splitgraph.inference.analysis import Analysis

# What only one verb needs is imported by that verb: inferring must not pay for converting, nor either for running.
Engine = Literal["auto", "reference", "onnxruntime", "openvino"]


@collection_paused()
def infer(
    model: Any,
    *,
    bind: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, Sequence[int | str | Dim | None]] | None = None,
    empty_chunks: Literal["clamp", "error"] = "clamp",
) -> Analysis:
    """Infer the types and shapes of every value of a model, and report every split and everything that is wrong.

    model: onnx.ModelProto, path to either format, OpenVINOModel, ov.Model, or onnx_graphsurgeon.Graph; not changed.
    bind: values for symbols. input_shapes: shapes in place of the declared ones, each dimension an int, an expression
    ("N + 2"), or None. empty_chunks: whether num_outputs chunks that overrun the dimension are empty ("clamp", as the
    reference evaluator has it) or an error.
    Does not raise for a wrong model; raises ModelError for a file that cannot be read, SplitgraphError for wrong
    arguments.
    """
    from splitgraph.inference import infer_model

    loaded = open_model(model)
    opened = loaded.content
    if isinstance(opened, OpenVINOModel):
        from splitgraph.inference.openvino_ir import infer_ir

        found = infer_ir(opened, bind=bind, input_shapes=input_shapes, empty_chunks=empty_chunks)
        return replace(found, model=give_back(found.model, loaded))
    analysis = infer_model(
        opened,
        bind=bind,
        input_shapes=input_shapes,
        empty_chunks=empty_chunks,
        owned=loaded.kind != "onnx",
    )
    return replace(analysis, model=give_back(analysis.model, loaded))


def upgrade(model: Any, opset: int, *, ir_version: int | None = None, verify: bool = False) -> Rewrite:
    """Convert a model to a newer opset of ai.onnx, every node exact.

    ir_version: of the result; None keeps the model's own, or raises it to what the opset needs.

    Raises ConversionError with every blocker and changes nothing when any part cannot be converted exactly; with
    `verify`, VerificationError when the result gives something else. A model at that opset already comes back as it is.
    """
    return _convert_opset(model, opset, ir_version, verify, newer=True)


def downgrade(model: Any, opset: int, *, ir_version: int | None = None, verify: bool = False) -> Rewrite:
    """Convert a model to an older opset of ai.onnx, every node exact; arguments and errors as `upgrade`. The IR version
    is lowered only where it is asked for.
    """
    return _convert_opset(model, opset, ir_version, verify, newer=False)


def convert(
    model: Any, to: Literal["split", "variadic-split"], *, explicit_lengths: bool = False, verify: bool = False
) -> Rewrite:
    """Convert a model's splits to plain Split nodes or to VariadicSplit, at the model's own opset: in ONNX functions
    stand for VariadicSplit, in OpenVINO IR it is a layer.

    explicit_lengths: write the lengths of every split out, for runtimes that know neither equal parts nor num_outputs,
    and inline local functions, which those do not know either.
    Errors as `upgrade`.
    """
    from splitgraph.conversion.split_forms import convert_forms

    with collection_paused():
        loaded = open_model(model)
        opened = loaded.content
        if isinstance(opened, OpenVINOModel):
            from splitgraph.conversion.openvino_ir import convert_ir

            rewrite = convert_ir(opened, to, explicit_lengths=explicit_lengths)
        else:
            rewrite = convert_forms(opened, to, explicit_lengths=explicit_lengths)
    return _finish(loaded, rewrite, verify)


def verify(
    before: Any,
    after: Any,
    *,
    samples: int = 3,
    seed: int = 0,
    bind: Mapping[str, int] | None = None,
    inputs: Mapping[str, np.ndarray] | None = None,
    engine: Engine = "auto",
    rtol: float = 1e-5,
    atol: float = 1e-6,
    timeout: float = 300,
) -> Verification:
    """Run two models on the same inputs and compare what they give.

    samples: sets of inputs; dimensions differ between them. bind: values for symbols. inputs: arrays for inputs by
    name; the others are made up to fit. engine: which runtime; "auto" tries one after the other. rtol, atol: tolerances
    for floating point. timeout: seconds. Raises ModelError for a file that cannot be read, SplitgraphError for wrong
    arguments.
    """
    from splitgraph.execution import verify_models

    first, second = open_model(before), open_model(after)
    try:
        verification: Verification = verify_models(
            first.content,
            second.content,
            samples=samples,
            seed=seed,
            bind=bind,
            inputs=inputs,
            engine=engine,
            rtol=rtol,
            atol=atol,
            timeout=timeout,
        )
    except ValueError as error:
        raise SplitgraphError(str(error)) from error
    return verification


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model to a file of its own format, replacing what is there, all or nothing; an ONNX model to an .xml as
    the OpenVINO IR that OpenVINO makes of it: VariadicSplit functions become real layers, and so does num_outputs that
    may be uneven, which OpenVINO itself takes for equal parts.

    model: anything that the other verbs take but a path. Raises ModelError for what cannot be written, ConversionError
    for an ONNX model that OpenVINO refuses, SplitgraphError where that needs OpenVINO and it is not installed.
    """
    if formats.is_ir_name(path) and not isinstance(model, (str, os.PathLike)):
        model = open_model(model).content
        if isinstance(model, ModelProto):
            from splitgraph.execution.openvino_import import import_onnx

            model = import_onnx(model).model
    formats.save(model, path)


def _convert_opset(model: Any, opset: int, ir_version: int | None, verify: bool, *, newer: bool) -> Rewrite:
    from splitgraph.conversion.opset import convert_opset
    from splitgraph.schemas import newest_opset

    if isinstance(opset, bool) or not hasattr(opset, "__index__"):
        raise SplitgraphError(f"the opset is {opset!r}; it must be an integer, such as {newest_opset()}")
    opset = operator.index(opset)
    loaded = open_model(model)
    opened = loaded.content
    if isinstance(opened, OpenVINOModel):
        raise SplitgraphError("OpenVINO IR has no opset of ONNX; only ONNX models go from opset to opset")
    source = opset_imports(opened.opset_import).get("", opset)
    # An opset that does not exist is a finding about the model, whichever way the conversion would go.
    newest = newest_opset(max(source, opset))
    if 1 <= source <= newest and 1 <= opset <= newest:
        if newer and opset < source:
            raise SplitgraphError(f"the model is at opset {source}, so going to {opset} is a downgrade; use downgrade")
        if not newer and opset > source:
            raise SplitgraphError(f"the model is at opset {source}, so going to {opset} is an upgrade; use upgrade")
    # Verification runs the original, too.
    owned = loaded.kind == "path" and not verify
    with collection_paused():
        rewrite = convert_opset(opened, opset, ir_version, owned=owned)
    return _finish(loaded, rewrite, verify)


def _finish(loaded: LoadedModel, rewrite: Rewrite, verify: bool) -> Rewrite:
    """The rewrite with its model of the kind that went in, verified when asked."""
    if verify:
        verification = verify_rewrite(loaded.content, rewrite)
        if verification.verdict == "different":
            found = verification.first_difference
            told = () if found is None else filter(None, (found.name, found.reason))
            text = ": ".join(("the rewritten model gives something else than the original", *told))
            raise VerificationError(text, [diagnostic("SG502", text)])
        rewrite = replace(rewrite, verification=verification)
    return replace(rewrite, model=give_back(rewrite.model, loaded))


def verify_rewrite(before: ModelProto | OpenVINOModel, rewrite: Rewrite) -> Verification:
    """Run a model and its rewrite on the same inputs, as close as the rewrite must be. Where operators were written as
    arithmetic, a difference beyond the tolerances is measured against what rounding does to the model itself.
    """
    from splitgraph.execution import verify_models

    rtol, atol = tolerance_of(rewrite)
    found: Verification = verify_models(before, rewrite.model, rtol=rtol, atol=atol, rounding=rewrite.rounding)
    return found


def tolerance_of(rewrite: Rewrite) -> Tolerance:
    """How far the results of a rewrite may be from the original's: its tolerance, or where operators were written out
    in a model that computes in halves, what these have.
    """
    if not rewrite.rounding or not isinstance(rewrite.model, ModelProto):
        return rewrite.tolerance
    from splitgraph.conversion.rewrite import Tolerance
    from splitgraph.execution.rounding import rounding_tolerances

    return Tolerance(*rounding_tolerances(rewrite.model, *rewrite.tolerance))


__all__ = ["convert", "downgrade", "infer", "load", "save", "upgrade", "verify"]
