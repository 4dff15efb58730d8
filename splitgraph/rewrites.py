"""What upgrade, downgrade and convert share: they open a model, convert it, verify the result, and give it back."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from splitgraph.acceptance import Leeway
from splitgraph.deferred import import_whole
from splitgraph.diagnostics import ConversionError, SplitgraphError, VerificationError, diagnostic
from splitgraph.formats import LoadedModel, held, open_model
from splitgraph.garbage_collection import collection_paused
from splitgraph.graph.scopes import model_imports
from splitgraph.model_kinds import Engine, Form
from splitgraph.onnx_proto import ModelProto
from splitgraph.result_check import require_valid_rewrite

if TYPE_CHECKING:
    from splitgraph.conversion.rewrite import Rewrite, Tolerance
    from splitgraph.execution.verification import Verification
    from splitgraph.inference.analysis import Analysis
    from splitgraph.model_kinds import GivenInputs, StrPath

# Why no case can have a value for an input, to stand after the name of the input.
_CONSTANT = (
    "counts as a constant because of --assume-defaults (Python: assume_defaults), so every case is run with its "
    "default; leave out its value, or --assume-defaults"
)


class Checks(NamedTuple):
    """How to verify a rewrite: keywords of `verify_rewrite`."""

    try_sizes: Mapping[str, int] | None
    inputs: GivenInputs | None
    custom_ops: StrPath | Sequence[StrPath]
    providers: str | Sequence[str]
    samples: int
    seed: int
    engine: Engine
    rtol: float | None
    atol: float | None
    timeout: float


def with_sizes(loaded: LoadedModel, bind: Mapping[str, int] | None) -> LoadedModel:
    """A model that was opened, with these sizes for its symbols. Raises SplitgraphError for a symbol that it does not
    have.
    """
    if not bind:
        return loaded
    if isinstance(loaded.content, ModelProto):
        import_whole("splitgraph.inference")
        from splitgraph.inference import fix_model

        return replace(loaded, content=fix_model(loaded.content, bind, owned=loaded.kind != "onnx"))
    import_whole("splitgraph.inference.openvino_ir")
    from splitgraph.inference.openvino_ir import infer_ir

    return replace(loaded, content=infer_ir(loaded.content, bind=bind).model)


def to_opset(
    model: Any,
    opset: int,
    ir_version: int | Literal["keep"] | None,
    checks: Checks | None,
    leeway: Leeway,
    *,
    newer: bool | None,
    to: Form | None = None,
    explicit_lengths: bool = False,
    bind: Mapping[str, int] | None = None,
) -> Rewrite:
    """newer: the direction of the conversion, None for both. to: the form of the splits at the new opset."""
    import_whole("splitgraph.conversion.opset")
    from splitgraph.conversion.opset import convert_opset
    from splitgraph.inference import later_leeway
    from splitgraph.schemas import newest_opset

    if isinstance(opset, bool) or not hasattr(opset, "__index__"):
        raise SplitgraphError(f"the opset is {opset!r}; it must be an integer, such as {newest_opset()}")
    opset = operator.index(opset)
    loaded = with_sizes(open_model(model, weights="leave"), bind)
    opened = loaded.content
    if not isinstance(opened, ModelProto):
        raise SplitgraphError("OpenVINO IR has no opset of ONNX; only ONNX models go from opset to opset")
    source = model_imports(opened).get("", opset)
    # An opset that does not exist is a finding about the model, in both directions.
    newest = newest_opset(max(source, opset))
    exist = 1 <= source <= newest and 1 <= opset <= newest
    if exist and newer is not None and opset != source and newer != (opset > source):
        raise _other_way(source, opset)
    # Verification runs the original, too.
    owned = loaded.kind == "path" and checks is None
    with collection_paused():
        # The model may be edited in place.
        later = leeway if to is None else later_leeway(opened, leeway)

        def convert(given: Leeway) -> Rewrite:
            made = convert_opset(opened, opset, ir_version, given, owned=owned)
            if to is None:
                return made
            follow = later._replace(assumes_defaults=given.assumes_defaults)
            return _with_form(made, to, explicit_lengths, ir_version, follow)

        rewrite = with_remedy(opened, leeway, convert)
    return finished(loaded, rewrite, checks, leeway)


def for_target(
    model: Any,
    target: str,
    opset: int | None,
    ir_version: int | Literal["keep"] | None,
    checks: Checks | None,
    leeway: Leeway,
    *,
    bind: Mapping[str, int] | None = None,
) -> Rewrite:
    import_whole("splitgraph.conversion.targets.convert")
    from splitgraph.conversion.targets.convert import convert_for_target
    from splitgraph.runtimes.target import find_target

    wanted = find_target(target)
    loaded = with_sizes(open_model(model, weights="leave"), bind)
    if not isinstance(loaded.content, ModelProto):
        raise SplitgraphError("targets read ONNX models; this is an OpenVINO IR, which only OpenVINO reads")
    with collection_paused():
        content = loaded.content
        rewrite = with_remedy(
            content, leeway, lambda given: convert_for_target(content, wanted, opset, ir_version, given)
        )
    return finished(loaded, rewrite, checks, leeway)


def with_remedy(model: ModelProto, leeway: Leeway, convert: Callable[[Leeway], Rewrite]) -> Rewrite:
    """The result of a conversion. Where it is refused, it is tried once more with the defaults of inputs as constants:
    a blocker that is gone then says so, whatever operator and value it is about.
    """
    try:
        return convert(leeway)
    except ConversionError as refused:
        import_whole("splitgraph.inference.input_defaults")
        from splitgraph.inference.input_defaults import defaults_of, told_remedy

        if leeway.assumes_defaults or not defaults_of(model):
            raise
        try:
            convert(leeway._replace(assumes_defaults=True))
        except ConversionError as error:
            raise told_remedy(refused, error.diagnostics) from refused
        raise told_remedy(refused, ()) from refused


def _with_form(
    rewrite: Rewrite, to: Form, explicit_lengths: bool, ir_version: int | Literal["keep"] | None, leeway: Leeway
) -> Rewrite:
    """A rewrite with its splits in another form, as one rewrite."""
    import_whole("splitgraph.conversion.splits.forms")
    from splitgraph.conversion.rewrite import followed_by
    from splitgraph.conversion.splits.forms import convert_forms

    formed = convert_forms(rewrite.model, to, explicit_lengths=explicit_lengths, ir_version=ir_version, leeway=leeway)
    changes = tuple(followed_by(rewrite.changes, formed.changes))
    found = tuple(dict.fromkeys((*rewrite.diagnostics, *formed.diagnostics)))
    return replace(rewrite, held=formed.model, changes=changes, diagnostics=found)


def _other_way(source: int, opset: int) -> ConversionError:
    """The error of an upgrade to an older opset, or a downgrade to a newer one."""
    way, verb = ("older", "downgrade") if opset < source else ("newer", "upgrade")
    text = f"the model is at opset {source}, and {opset} is {way}; use {verb}"
    help = f"Run splitgraph {verb} --opset {opset}, or convert --opset {opset}, which converts in both directions."
    return ConversionError(text, [diagnostic("SG418", text, help=help)])


def finished(loaded: LoadedModel, rewrite: Rewrite, checks: Checks | None, leeway: Leeway) -> Rewrite:
    """The rewrite with a model of the caller's kind, verified on request. Raises InternalError for a result that is
    wrong where the model is not.
    """
    if leeway.assumes_defaults and isinstance(loaded.content, ModelProto):
        import_whole("splitgraph.inference")
        from splitgraph.inference.input_defaults import defaults_of

        rewrite = replace(rewrite, assumed_defaults=tuple(held.name for held in defaults_of(loaded.content)))
    analysis: Analysis | None = None
    with collection_paused():
        if checks is not None and isinstance(rewrite.model, ModelProto):
            from splitgraph.inference import infer_model

            # Verification needs it in any case.
            analysis = infer_model(rewrite.model, fill=False)
        require_valid_rewrite(loaded.content, rewrite, leeway, analysis)
    if checks is not None:
        verification = verify_rewrite(loaded, rewrite, analysis=analysis, **checks._asdict())
        if verification.verdict == "different":
            found = verification.first_difference
            told = () if found is None else filter(None, (found.name, found.reason))
            text = ": ".join(("the rewritten model and the original give different results", *told))
            raise VerificationError(text, [diagnostic("SG502", text)])
        warned = (*rewrite.diagnostics, *verification.warnings)
        rewrite = replace(rewrite, verification=verification, diagnostics=warned)
    return replace(rewrite, held=held(rewrite.model, loaded))


def verify_rewrite(
    before: LoadedModel,
    rewrite: Rewrite,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    try_sizes: Mapping[str, int] | None = None,
    analysis: Analysis | None = None,
    **options: Any,
) -> Verification:
    """Run a model and its rewrite on the same inputs and compare the results. Some rewrites round differently: then a
    difference beyond the tolerances is compared with the measured effect of rounding on the original.

    rtol, atol: None for the tolerances of the rewrite. try_sizes: the sizes of dimensions to run at. analysis: of the
    rewritten ONNX model, where it is known. options: other keywords of `verify`. Raises SplitgraphError for wrong
    arguments.
    """
    from splitgraph.execution import verify_models

    own = tolerance_of(rewrite)
    rtol, atol = own.rtol if rtol is None else rtol, own.atol if atol is None else atol
    try:
        found: Verification = verify_models(
            before.content,
            rewrite.model,
            folders=(before.folder, before.folder),
            rtol=rtol,
            atol=atol,
            bind=try_sizes,
            rounding=rewrite.rounding,
            analysis=analysis,
            kept_defaults=dict.fromkeys(rewrite.assumed_defaults, _CONSTANT),
            **options,
        )
    except ValueError as error:
        raise SplitgraphError(str(error)) from error
    return found


def tolerance_of(rewrite: Rewrite) -> Tolerance:
    """How far the results of a rewrite may be from the original's: the tolerance of the rewrite, or a larger one if
    operators were written as arithmetic in a model that computes in float16 or bfloat16.
    """
    if not rewrite.rounding or not isinstance(rewrite.model, ModelProto):
        return rewrite.tolerance
    from splitgraph.conversion.rewrite import Tolerance

    import_whole("splitgraph.execution.rounding.allowance")
    from splitgraph.execution.rounding.allowance import rounding_tolerances

    return Tolerance(*rounding_tolerances(rewrite.model, *rewrite.tolerance))
