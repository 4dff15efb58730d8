"""Upgrade, downgrade, convert and reshape: open a model, convert it, check and verify the result, and give it back."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from splitgraph.findings.diagnostics import (
    ConversionError,
    Diagnostic,
    SplitgraphError,
    VerificationError,
    diagnostic,
)
from splitgraph.formats import LoadedModel, held, open_model
from splitgraph.formats.external_data import all_tensors, has_new_type
from splitgraph.model.deferred import import_whole
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.places import with_nodes
from splitgraph.model.scopes import model_imports, scopes
from splitgraph.model.tensor_data import is_in_other_file
from splitgraph.options import STRICT, Engine, Goal, InRuntime, Leeway, Running, Sizes
from splitgraph.processes.this_process import collection_paused
from splitgraph.results import require_valid_rewrite, save_result

if TYPE_CHECKING:
    from splitgraph.conversion.opset import Blockers
    from splitgraph.conversion.rewrite import Rewrite
    from splitgraph.formats import Model
    from splitgraph.runtimes.target import Target
    from splitgraph.verification.verification import Verification

_R = TypeVar("_R")

# Models that run in float64 may differ by so much of what they may differ by otherwise.
_EXACT = 1e-3

# Why no case can have a value for an input, to stand after the name of the input.
_CONSTANT = (
    "counts as a constant because of --assume-defaults (Python: assume_defaults), so every case is run with its "
    "default; leave out its value, or --assume-defaults"
)
_NO_OPSET = "OpenVINO IR has no opset of ONNX; only ONNX models go from opset to opset"
_NO_FOLDING = "OpenVINO folds an IR itself when it loads one; fold is for ONNX models"
_NO_IR_VERSION = "OpenVINO IR has no IR version of ONNX; leave ir_version out"


def rewritten(
    model: Any, goal: Goal, leeway: Leeway, sizes: Sizes, running: Running, *, is_verified_later: bool = False
) -> Rewrite:
    """Return the rewrite of a model with the given sizes, verified if `running.verify` is true.

    is_verified_later: the caller verifies it, so that the inference of the result is kept.
    Raises ConversionError with every blocker, VerificationError for a result that differs, InternalError for a result
    that is wrong where the model is not, and SplitgraphError for wrong arguments.
    """
    goal = _checked(goal, leeway)
    loaded = with_sizes(open_model(model, weights="leave"), sizes)
    folder = (model if isinstance(model, LoadedModel) else loaded).folder
    if goal.target is not None and running.verify:
        goal = goal._replace(in_runtime=InRuntime(running, folder))
    if goal.new_sizes is not None:
        goal = goal._replace(new_sizes=goal.new_sizes._replace(folder=folder))
    # Verification runs the original, too.
    owned = loaded.kind == "path" and not running.verify
    with collection_paused():
        try:
            rewrite = _with_options(loaded.content, goal, leeway, owned=owned)
        except ConversionError as refused:
            # Nothing was edited, so the nodes are where the findings say.
            refused.diagnostics = _told_unread(loaded.content, named_in(loaded.content, refused.diagnostics))
            raise
        if leeway.assume_defaults and isinstance(loaded.content, ModelProto):
            import_whole("splitgraph.inference")
            from splitgraph.inference.input_defaults import defaults_of

            rewrite = replace(rewrite, assumed_defaults=tuple(value.name for value in defaults_of(loaded.content)))
        if (running.verify or is_verified_later) and isinstance(rewrite.model, ModelProto):
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


def _told_unread(model: Model, findings: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
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


def _checked(goal: Goal, leeway: Leeway = STRICT) -> Goal:
    """Return the goal with its opset as an int. Raises SplitgraphError for a goal that no model can have, or for none
    at all. leeway: reading by form is a goal of its own.
    """
    for name in ("fix_defaults", "fold"):
        if not isinstance(getattr(goal, name), bool):
            raise SplitgraphError(f"{name} is {getattr(goal, name)!r}; it must be True or False")
    if goal.target is not None:
        import_whole("splitgraph.runtimes.target")
        from splitgraph.runtimes.target import find_target

        if goal.to is not None or goal.explicit_lengths:
            raise SplitgraphError("a target says which forms of splits it reads; leave `to` and explicit_lengths out")
        find_target(goal.target)
        return goal
    if goal.new_sizes is not None:
        return goal
    if goal.opset is None and goal.newer is None:
        asked = goal.ir_version is not None or goal.fix_defaults or goal.fold or leeway.read_by_form
        if goal.to is None and (not asked or goal.explicit_lengths):
            text = "convert needs a form of the splits (to), an opset, both, a target, fold, or an IR version"
            raise SplitgraphError(text)
        return goal
    if goal.opset is None or isinstance(goal.opset, bool) or not hasattr(goal.opset, "__index__"):
        import_whole("splitgraph.model.schemas")
        from splitgraph.model.schemas import newest_opset

        raise SplitgraphError(f"the opset is {goal.opset!r}; it must be an integer, such as {newest_opset()}")
    return goal._replace(opset=operator.index(goal.opset))


def _with_options(model: Model, goal: Goal, leeway: Leeway, *, owned: bool) -> Rewrite:
    """Convert a model, and fix the defaults of its inputs if the goal says so. An IR has no defaults, and no forms."""
    if not isinstance(model, ModelProto):
        return _converted(model, goal, leeway, owned=owned)
    if not goal.fix_defaults:
        # A model of the caller's own may be edited.
        before = model.ir_version
        rewrite = _read_by_form(model, goal, leeway, owned=owned)
        import_whole("splitgraph.inference")
        from splitgraph.inference.input_defaults import told_new_defaults

        return replace(rewrite, diagnostics=(*rewrite.diagnostics, *told_new_defaults(before, rewrite.model)))
    import_whole("splitgraph.conversion.fixed_defaults")
    from splitgraph.conversion.fixed_defaults import with_constants, without_defaults

    fixed, told = without_defaults(model, owned=owned)
    rewrite = _read_by_form(fixed, goal, leeway, owned=owned or fixed is not model)
    return replace(with_constants(rewrite, model, told, owned=owned), fixed_defaults=True)


def _read_by_form(model: ModelProto, goal: Goal, leeway: Leeway, *, owned: bool) -> Rewrite:
    """Convert a model whose nodes may have the form of another version, if the leeway says so."""
    if not leeway.read_by_form:
        return _converted(model, goal, leeway, owned=owned)
    # On its way to an opset a node needs no other form between; all other conversions read the model's own opset.
    if goal.opset is None or goal.target is not None:
        import_whole("splitgraph.conversion.opset")
        from splitgraph.conversion.opset import in_own_form
        from splitgraph.inference import later_leeway

        may_move = goal.target is not None
        first = _with_remedy(model, leeway, lambda given: in_own_form(model, given, may_move=may_move))
        if first is not None:
            second = _converted(first.model, goal, later_leeway(model, leeway), owned=True)
            return replace(first.then(second), read_by_form=True, new_sizes=second.new_sizes)
    return replace(_converted(model, goal, leeway, owned=owned), read_by_form=True)


def _converted(model: Model, goal: Goal, leeway: Leeway, *, owned: bool) -> Rewrite:
    """Convert a model. owned: no one else uses the model, so it may be edited."""
    if not isinstance(model, ModelProto):
        return _converted_ir(model, goal, leeway)
    if goal.fold:
        return _folded(model, goal._replace(fold=False), leeway)
    if goal.new_sizes is not None:
        import_whole("splitgraph.conversion.sizes.convert")
        from splitgraph.conversion.sizes.convert import convert_sizes

        sizes = goal.new_sizes
        return _with_remedy(model, leeway, lambda given: convert_sizes(model, sizes, given))
    if goal.target is not None:
        import_whole("splitgraph.conversion.targets.convert")
        from splitgraph.conversion.targets.convert import convert_for_target
        from splitgraph.runtimes.target import find_target

        target = find_target(goal.target)
        if goal.in_runtime is not None:
            return _in_runtime(model, target, goal, goal.in_runtime, leeway)
        return _with_remedy(
            model, leeway, lambda given: convert_for_target(model, target, goal.opset, goal.ir_version, given)
        )
    if goal.opset is not None:
        return _at_opset(model, goal.opset, goal, leeway, owned=owned)
    if goal.to is None:
        import_whole("splitgraph.conversion.ir_version")
        from splitgraph.conversion.ir_version import convert_ir_version

        return convert_ir_version(model, model.ir_version if goal.ir_version is None else goal.ir_version)
    import_whole("splitgraph.conversion.splits.forms")
    from splitgraph.conversion.splits.forms import convert_forms

    return _with_remedy(model, leeway, lambda given: convert_forms(model, goal, given))


def _folded(model: ModelProto, goal: Goal, leeway: Leeway) -> Rewrite:
    """Write what is known of a model, and convert the result as the goal says."""
    import_whole("splitgraph.conversion.folding.fold")
    from splitgraph.conversion.folding.fold import convert_folded
    from splitgraph.inference import later_leeway

    first = _with_remedy(model, leeway, lambda given: convert_folded(model, given))
    if (goal.opset, goal.to, goal.target, goal.ir_version) == (None,) * 4:
        return first
    second = _converted(first.model, goal, later_leeway(model, leeway), owned=first.model is not model)
    return replace(first.then(second), from_opset=first.from_opset)


def _in_runtime(model: ModelProto, target: Target, goal: Goal, settings: InRuntime, leeway: Leeway) -> Rewrite:
    """Convert a model for a target, and run the result there if its runtime is here."""
    import_whole("splitgraph.verification.in_runtime.ways")
    from splitgraph.runtimes.runners.interpreters import KINDS
    from splitgraph.runtimes.runners.result import RuntimeRun
    from splitgraph.verification.in_runtime.run import trials_of
    from splitgraph.verification.in_runtime.ways import convert_in_runtime

    kind = KINDS.get(target.name)
    plain = goal._replace(in_runtime=None)
    if kind is None:
        return _converted(model, plain, leeway, owned=False)
    folder = None if settings.folder is None else Path(settings.folder)
    try:
        with trials_of(model, kind, settings.running, folder=folder, version=target.asked) as trials:
            if isinstance(trials, RuntimeRun):
                return replace(_converted(model, plain, leeway, owned=False), ran=trials)
            here = target.as_installed(trials.host.runner.version)
            return _with_remedy(
                model, leeway, lambda given: convert_in_runtime(model, here, goal, given, trials, settings.say)
            )
    except ValueError as error:
        raise SplitgraphError(str(error)) from error


def _converted_ir(model: Any, goal: Goal, leeway: Leeway) -> Rewrite:
    if goal.new_sizes is not None:
        import_whole("splitgraph.conversion.sizes.convert_ir")
        from splitgraph.conversion.sizes.convert_ir import convert_ir_sizes

        return convert_ir_sizes(model, goal.new_sizes)
    if goal.opset is not None:
        raise SplitgraphError(_NO_OPSET)
    if goal.fold:
        raise SplitgraphError(_NO_FOLDING)
    if (goal.to is None and goal.target is None) or goal.ir_version is not None:
        raise SplitgraphError(_NO_IR_VERSION)
    if goal.target is not None:
        import_whole("splitgraph.conversion.targets.convert_ir")
        from splitgraph.conversion.targets.convert_ir import convert_ir_for_target
        from splitgraph.runtimes.target import find_target

        return convert_ir_for_target(model, find_target(goal.target), leeway)
    import_whole("splitgraph.conversion.openvino_ir")
    from splitgraph.conversion.openvino_ir import convert_ir

    assert goal.to is not None
    return convert_ir(model, goal.to, explicit_lengths=goal.explicit_lengths, leeway=leeway)


def _at_opset(model: ModelProto, opset: int, goal: Goal, leeway: Leeway, *, owned: bool) -> Rewrite:
    """Convert a model to an opset, and then its splits to another form if the goal names one."""
    import_whole("splitgraph.conversion.opset")
    from splitgraph.conversion.opset import convert_opset
    from splitgraph.inference import later_leeway

    _refuse_other_way(model, opset, goal)

    def at_opset(given: Leeway) -> Rewrite:
        return convert_opset(model, opset, goal.ir_version, given, owned=owned)

    if goal.to is None:
        return _with_remedy(model, leeway, at_opset)
    import_whole("splitgraph.conversion.splits.forms")
    from splitgraph.conversion.splits.forms import convert_forms

    # The first conversion moves nodes, and may edit the model in place. So the nodes that the caller accepts are
    # looked up before.
    leeway_after = later_leeway(model, leeway)

    def at_opset_and_form(given: Leeway) -> Rewrite:
        first = at_opset(given)
        follow = leeway_after._replace(assume_defaults=given.assume_defaults)
        return first.then(convert_forms(first.model, goal, follow))

    return _with_remedy(model, leeway, at_opset_and_form)


def find_blockers(model: Any, goal: Goal, leeway: Leeway) -> Blockers:
    """Return what blocks the conversion of a model to the opset of a goal, and the nearest one that it can reach.
    Raises SplitgraphError for wrong arguments.
    """
    import_whole("splitgraph.conversion.opset")
    from splitgraph.conversion.opset import Blockers
    from splitgraph.conversion.opset import find_blockers as found_blockers
    from splitgraph.inference.input_defaults import defaults_of, told_remedy

    wanted = _checked(goal).opset
    assert wanted is not None
    content = open_model(model, weights="leave").content
    if not isinstance(content, ModelProto):
        raise SplitgraphError(_NO_OPSET)
    if goal.fix_defaults:
        import_whole("splitgraph.conversion.fixed_defaults")
        from splitgraph.conversion.fixed_defaults import without_defaults

        content, _ = without_defaults(content, owned=False)
    with collection_paused():
        found = found_blockers(content, wanted, leeway)
        told = tuple(found)
        if found and not leeway.assume_defaults and defaults_of(content):
            constant = found_blockers(content, wanted, leeway._replace(assume_defaults=True))
            told = told_remedy(ConversionError("", found), constant).diagnostics
        return Blockers(_told_unread(content, told), found.reachable)


def _refuse_other_way(model: ModelProto, opset: int, goal: Goal) -> None:
    """Raise ConversionError if an upgrade is asked for an older opset, or a downgrade for a newer one."""
    import_whole("splitgraph.model.schemas")
    from splitgraph.model.schemas import newest_opset

    source = model_imports(model).get("", opset)
    newest = newest_opset(max(source, opset))
    # An opset that does not exist is a finding about the model, which the conversion reports.
    both_exist = 1 <= source <= newest and 1 <= opset <= newest
    if both_exist and goal.newer is not None and opset != source and goal.newer != (opset > source):
        raise _other_way(source, opset)


def _with_remedy(model: ModelProto, leeway: Leeway, convert: Callable[[Leeway], _R]) -> _R:
    """Convert a model. After a refusal, convert once more with the defaults of inputs as constants. If a blocker is
    then gone, its help says so, for any operator and value.
    """
    try:
        return convert(leeway)
    except ConversionError as refused:
        import_whole("splitgraph.inference.input_defaults")
        from splitgraph.inference.input_defaults import defaults_of, told_remedy

        if leeway.assume_defaults or not defaults_of(model):
            raise
        try:
            convert(leeway._replace(assume_defaults=True))
        except ConversionError as error:
            raise told_remedy(refused, error.diagnostics) from refused
        raise told_remedy(refused, ()) from refused


def _other_way(source: int, opset: int) -> ConversionError:
    """Return the error of an upgrade to an older opset, or of a downgrade to a newer one."""
    way, verb = ("older", "downgrade") if opset < source else ("newer", "upgrade")
    text = f"the model is at opset {source}, and {opset} is {way}; use {verb}"
    help = f"Run splitgraph {verb} --opset {opset}, or convert --opset {opset}, which converts in both directions."
    return ConversionError(text, [diagnostic("SG418", text, help=help)])


def _as_read(original: Model, rewrite: Rewrite) -> Model:
    """Return what a rewrite says that its original means: the original itself, or with the defaults of its inputs as
    constants, or with nodes in the form of another version in that of their own.
    """
    if not isinstance(original, ModelProto):
        return original
    if rewrite.fixed_defaults:
        import_whole("splitgraph.conversion.fixed_defaults")
        from splitgraph.conversion.fixed_defaults import without_defaults

        original, _ = without_defaults(original, owned=False)
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
