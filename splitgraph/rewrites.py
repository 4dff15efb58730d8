"""Upgrade, downgrade, convert and reshape: open a model, convert it, check and verify the result, and give it back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from splitgraph.findings.diagnostics import (
    ConversionError,
    Diagnostic,
    SplitgraphError,
    VerificationError,
)
from splitgraph.formats import LoadedModel, held, open_model
from splitgraph.formats.external_data import all_tensors, has_new_type
from splitgraph.model.deferred import import_whole
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.places import with_nodes
from splitgraph.model.scopes import scopes
from splitgraph.model.tensor_data import is_in_other_file
from splitgraph.options import Engine, Leeway, Running, Sizes
from splitgraph.processes.this_process import collection_paused
from splitgraph.results import require_valid_rewrite, save_result
from splitgraph.verbs import NO_OPSET, Conversion, StartingModel, wanted_opset

if TYPE_CHECKING:
    from splitgraph.conversion.opset import Blockers
    from splitgraph.conversion.rewrite import Rewrite
    from splitgraph.formats import Model
    from splitgraph.verification.verification import Verification

# Models that run in float64 may differ by so much of what they may differ by otherwise.
_EXACT = 1e-3

# Why no case can have a value for an input, to stand after the name of the input.
_CONSTANT = (
    "counts as a constant because of --assume-defaults (Python: assume_defaults), so every case is run with its "
    "default; leave out its value, or --assume-defaults"
)


def rewritten(
    model: Any,
    conversion: Conversion,
    leeway: Leeway,
    sizes: Sizes,
    running: Running,
    *,
    verified_later: Running | None = None,
) -> Rewrite:
    """Return the rewrite of a model with the given sizes, verified if `running.verify` is true.

    conversion: what the verb does. verified_later: how the caller verifies it, so that the inference of the result is
    kept; None if it does not.
    Raises ConversionError with every blocker, VerificationError for a result that differs, InternalError for a result
    that is wrong where the model is not, and SplitgraphError for wrong arguments.
    """
    loaded = with_sizes(open_model(model, weights="leave"), sizes)
    folder = (model if isinstance(model, LoadedModel) else loaded).folder
    # Verification runs the original, too.
    start = StartingModel(loaded.content, leeway, folder, owned=loaded.kind == "path" and not running.verify)
    with collection_paused():
        try:
            is_onnx = isinstance(loaded.content, ModelProto)
            rewrite = _converted(start, conversion.onnx) if is_onnx else conversion.ir(start)
        except ConversionError as refused:
            # Nothing was edited, so the nodes are where the findings say.
            refused.diagnostics = _with_help_for_unread(loaded.content, named_in(loaded.content, refused.diagnostics))
            raise
        verifying = running if running.verify else verified_later
        if verifying is not None and isinstance(rewrite.model, ModelProto):
            if rewrite.changes:
                from splitgraph.verification.engines.kept_engines import start_engine

                start_engine(verifying)
            import_whole("splitgraph.inference")
            from splitgraph.inference import infer_model

            # Verification needs it in any case.
            rewrite = replace(rewrite, analysis=infer_model(rewrite.model, fill=False))
        rewrite = require_valid_rewrite(loaded.content, rewrite, leeway)
    if running.verify:
        verification = verify_rewrite(loaded, rewrite, running)
        if verification.verdict == "different":
            text = "the rewritten model and the original give different results"
            text = ": ".join(filter(None, (text, verification.difference_text)))
            raise VerificationError(text, verification.findings())
        warned = (*rewrite.diagnostics, *verification.warnings)
        rewrite = replace(rewrite, verification=verification, diagnostics=warned)
    return replace(rewrite, held=held(rewrite.model, loaded), writer=save_result, source=loaded.name)


def _converted(start: StartingModel, convert: Callable[[StartingModel], Rewrite]) -> Rewrite:
    """Convert an ONNX model, without the defaults of its inputs if the leeway says so, and note what the result relies
    on.
    """
    import_whole("splitgraph.inference")
    from splitgraph.inference.input_defaults import defaults_of, notes_about_new_defaults

    model, leeway = start.model, start.leeway
    if leeway.fix_defaults:
        import_whole("splitgraph.conversion.fixed_defaults")
        from splitgraph.conversion.fixed_defaults import with_constants, without_defaults

        fixed, told = without_defaults(model, owned=start.owned)
        rewrite = _with_remedy(start._replace(model=fixed, owned=start.owned or fixed is not model), convert)
        rewrite = with_constants(rewrite, model, told, owned=start.owned)
    else:
        # A model of the caller's own may be edited.
        before = model.ir_version
        rewrite = _with_remedy(start, convert)
        notes = notes_about_new_defaults(before, rewrite.model)
        rewrite = replace(rewrite, diagnostics=(*rewrite.diagnostics, *notes))
    assumed = tuple(value.name for value in defaults_of(model)) if leeway.assume_defaults else ()
    return replace(
        rewrite, assumed_defaults=assumed, read_by_form=leeway.read_by_form, fixed_defaults=leeway.fix_defaults
    )


def _with_remedy(start: StartingModel, convert: Callable[[StartingModel], Rewrite]) -> Rewrite:
    """Convert a model. After a refusal, convert once more with the defaults of inputs as constants. If a blocker is
    then gone, its help says so, for any operator and value.
    """
    try:
        return convert(start)
    except ConversionError as refused:
        import_whole("splitgraph.inference.input_defaults")
        from splitgraph.inference.input_defaults import defaults_of, with_remedy

        if start.leeway.assume_defaults or not defaults_of(start.model):
            raise
        try:
            convert(start._replace(leeway=start.leeway._replace(assume_defaults=True)))
        except ConversionError as error:
            raise with_remedy(refused, error.diagnostics) from refused
        raise with_remedy(refused, ()) from refused


def with_sizes(loaded: LoadedModel, sizes: Sizes) -> LoadedModel:
    """Return an open model with values for its symbols. Raises SplitgraphError for a symbol that it does not have."""
    if not sizes.bind:
        return loaded
    if isinstance(loaded.content, ModelProto):
        import_whole("splitgraph.inference")
        from splitgraph.inference import fix_model

        return replace(loaded, content=fix_model(loaded.content, sizes, owned=loaded.kind != "onnx"))
    import_whole("splitgraph.inference.openvino_ir")
    from splitgraph.inference.openvino_ir import infer_ir

    return replace(loaded, content=infer_ir(loaded.content, sizes).model)


def named_in(model: Model, findings: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return findings with the nodes of a model that they are about."""
    if isinstance(model, ModelProto):
        return with_nodes(findings, scopes(model))
    import_whole("splitgraph.inference.openvino_ir")
    from splitgraph.inference.openvino_ir import mirror, with_layers

    return with_layers(findings, mirror(model))


def _with_help_for_unread(model: Model, findings: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return findings with what helps against wrong element types, if the model is in memory and tensors of new types
    are in data files: an older opset has them in another type.
    """
    tensors = all_tensors(model) if isinstance(model, ModelProto) and findings else ()
    unread = [tensor.name for tensor in tensors if has_new_type(tensor) and is_in_other_file(tensor)]
    if not unread:
        return tuple(findings)
    known = f"The elements of {unread[0]!r} are in a data file, whose folder is not known of a model in memory"
    text = f"{known}; give its path, so that they are read."
    return tuple(replace(each, help=f"{text} {each.help}") if each.code == "SG403" else each for each in findings)


def find_blockers(model: Any, opset: Any, leeway: Leeway) -> Blockers:
    """Return what blocks the conversion of a model to an opset, and the nearest one that it can reach.
    Raises SplitgraphError for wrong arguments.
    """
    import_whole("splitgraph.conversion.opset")
    from splitgraph.conversion.opset import Blockers
    from splitgraph.conversion.opset import find_blockers as found_blockers
    from splitgraph.inference.input_defaults import defaults_of, with_remedy

    wanted = wanted_opset(opset)
    content = open_model(model, weights="leave").content
    if not isinstance(content, ModelProto):
        raise SplitgraphError(NO_OPSET)
    if leeway.fix_defaults:
        import_whole("splitgraph.conversion.fixed_defaults")
        from splitgraph.conversion.fixed_defaults import without_defaults

        content, _ = without_defaults(content, owned=False)
    with collection_paused():
        found = found_blockers(content, wanted, leeway)
        told = tuple(found)
        if found and not leeway.assume_defaults and defaults_of(content):
            constant = found_blockers(content, wanted, leeway._replace(assume_defaults=True))
            told = with_remedy(ConversionError("", found), constant).diagnostics
        return Blockers(_with_help_for_unread(content, told), found.reachable)


def _as_read(original: Model, rewrite: Rewrite) -> Model:
    """Return what a rewrite says that its original means: the original itself, or with the defaults of its inputs as
    constants, without ZipMap, or with nodes in the form of another version in that of their own.
    """
    if not isinstance(original, ModelProto):
        return original
    if rewrite.fixed_defaults:
        import_whole("splitgraph.conversion.fixed_defaults")
        from splitgraph.conversion.fixed_defaults import without_defaults

        original, _ = without_defaults(original, owned=False)
    if rewrite.without_zip_maps:
        import_whole("splitgraph.conversion.zip_maps")
        from splitgraph.conversion.zip_maps import without_zip_maps

        original = without_zip_maps(original).model
    if rewrite.read_by_form:
        import_whole("splitgraph.conversion.opset")
        from splitgraph.conversion.opset import as_meant

        original = as_meant(original)
    return original


def verify_rewrite(
    before: LoadedModel,
    rewrite: Rewrite,
    running: Running,
    *,
    progress: Callable[[str], None] = lambda text: None,
) -> Verification:
    """Run a model and its rewrite on the same inputs and compare the results, and each node that was rewritten alone.

    Raises SplitgraphError for wrong arguments.
    """
    from splitgraph.verification import verify_models

    own = rewrite.tolerance
    running = running._replace(
        rtol=own.rtol if running.rtol is None else running.rtol, atol=own.atol if running.atol is None else running.atol
    )

    def verify(
        one: Model, other: Model, analysis: Any = None, *, by_regions: bool = True, engine: Engine | None = None
    ) -> Verification:
        assert running.rtol is not None and running.atol is not None
        exact = running._replace(rtol=running.rtol * _EXACT, atol=running.atol * _EXACT, inputs=None)
        return verify_models(
            one,
            other,
            running if engine is None else exact._replace(engine=engine),
            folders=(before.folder, before.folder),
            analysis=analysis,
            by_regions=by_regions,
            kept_defaults=dict.fromkeys(rewrite.assumed_defaults, _CONSTANT),
            progress=progress,
        )

    original = _as_read(before.content, rewrite)
    try:
        if rewrite.new_sizes is None:
            return verify(original, rewrite.model, rewrite.analysis)
        import_whole("splitgraph.verification.sizes")
        from splitgraph.verification.sizes import verify_sizes

        return verify_sizes(original, rewrite.model, rewrite.new_sizes, verify, before.folder)
    except ValueError as error:
        raise SplitgraphError(str(error)) from error
