"""Convert a model for a runtime that is here: of several ways, the first one that runs.

The table of what runtimes read proposes, and the runtime decides. A model that runs as it is stays as it is. Otherwise
it is folded, and the table says what to write in another form. If the result does not run either, the first node that
fails shows where the table is wrong: nodes of its kind count as refused, and the model is converted again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import onnx

from splitgraph.conversion.inlining import called_nodes, without_functions
from splitgraph.conversion.rewrite import Rewrite, step
from splitgraph.conversion.targets.convert import convert_for_target, in_other_forms, starts_of, with_same_nodes
from splitgraph.conversion.targets.own_constants import with_own_constants
from splitgraph.conversion.targets.prepared import Prepared
from splitgraph.findings.diagnostics import ConversionError, Diagnostic
from splitgraph.model.places import with_nodes
from splitgraph.model.scopes import scopes
from splitgraph.options import Converting, Leeway
from splitgraph.runtimes.advice import has_open_inputs
from splitgraph.runtimes.check import NOT_KNOWN, examine, failing, found_in_run
from splitgraph.runtimes.runners.result import RuntimeRun
from splitgraph.runtimes.target import Target
from splitgraph.verification.in_runtime.run import Trials

# A model that needs more forms than these is converted in no way.
_MOST_KINDS = 6


def convert_in_runtime(
    model: onnx.ModelProto,
    target: Target,
    wanted: Converting,
    leeway: Leeway,
    trials: Trials,
    say: Callable[[str], None],
) -> Rewrite[onnx.ModelProto]:
    """Return the model for a target, in the first way that its runtime runs. say: is told each step.

    trials: run models on inputs of this model. Raises ConversionError with what the table knows to be in the way, or
    with the first node that fails when the converted model is run.
    """
    say(f"running the model in {trials.host.label}")
    own, is_free = trials.run(model), wanted.opset is None and wanted.ir_version is None
    if _runs(own) and is_free:
        return replace(_unchanged(model), ran=own)
    if own.answer == "not-run":
        return replace(convert_for_target(model, target, wanted.opsets.get(""), wanted.ir_version, leeway), ran=own)
    if is_free and (rewrite := _redeclared(model, target, trials, say)) is not None:
        return rewrite
    prepared = Prepared(model, leeway)
    refusal: ConversionError | None = None
    tried: list[tuple[Rewrite[onnx.ModelProto], RuntimeRun]] = []
    for start in starts_of(prepared, target):
        ran = own
        if start.begun is not None:
            say(f"running the model in another form in {trials.host.label}")
            begun = _with_same_nodes(start.begun, target)
            ran = trials.run(begun.model)
            if _runs(ran) and is_free:
                return replace(begun, ran=ran)
        try:
            for rewrite in _rewrites(start, ran, target, wanted, trials, say, tried):
                ran = tried[-1][1]
                if _runs(ran):
                    # The run knows what the table does not.
                    told = tuple(each for each in rewrite.diagnostics if each.code not in NOT_KNOWN)
                    return replace(rewrite, ran=ran, diagnostics=told)
                if ran.answer == "not-run":
                    # It may be right: the bindings give no such result back.
                    return replace(rewrite, ran=ran)
        except ConversionError as error:
            refusal = refusal or error
    if not tried:
        assert refusal is not None
        raise refusal
    raise _refused(*tried[0], model)


def _redeclared(
    model: onnx.ModelProto, target: Target, trials: Trials, say: Callable[[str], None]
) -> Rewrite[onnx.ModelProto] | None:
    """Return the model with its own nodes and other declarations, if it runs so; None if it does not, and if nothing of
    them is in the way. What the table says of its nodes may be wrong.
    """
    rewrite = _with_same_nodes(_unchanged(model), target)
    if rewrite.model == model:
        return None
    say(f"running the model with other declarations in {trials.host.label}")
    ran = trials.run(rewrite.model, finds_node=False)
    return replace(rewrite, ran=ran) if _runs(ran) else None


def _rewrites(
    start: Prepared,
    begun: RuntimeRun,
    target: Target,
    wanted: Converting,
    trials: Trials,
    say: Callable[[str], None],
    tried: list[tuple[Rewrite[onnx.ModelProto], RuntimeRun]],
) -> Iterator[Rewrite[onnx.ModelProto]]:
    """Yield conversions of a model, each after it was run: as the table proposes, and then without the kinds of nodes
    that failed. begun: what became of the model that they start with. tried: this adds each conversion with its
    run. Raises ConversionError if the table knows what is in the way.
    """
    for number in range(_MOST_KINDS):
        try:
            rewrite, _ = in_other_forms(start, target, wanted.opsets.get(""), wanted.ir_version)
            rewrite = with_own_constants(rewrite, target)
        except ConversionError:
            if not number:
                raise
            # Without the kind that failed, no way is known.
            return
        if rewrite.model != start.model:
            say(f"running the converted model in {trials.host.label}")
            ran = trials.run(rewrite.model)
        else:
            ran = begun
        tried.append((rewrite, ran))
        yield rewrite
        narrower = _without_failing(target, rewrite.model, ran, start.later)
        if narrower is None or narrower == target:
            return
        target = narrower


def _without_failing(target: Target, model: onnx.ModelProto, ran: RuntimeRun, leeway: Leeway) -> Target | None:
    """Return the target without the kind of the first node that failed; None if that is not known."""
    first = ran.first_node
    if first is None:
        return None
    nodes = {node.location: node for node in examine(model, leeway).nodes}
    if first.location in nodes:
        return failing(target, nodes[first.location])
    # The node is inside of a call. Where the calls are written out, it can be written in another form.
    inlined = without_functions(model)
    places = called_nodes(model, inlined).locations
    inner = (node for node in examine(inlined, leeway).nodes if places.get(node.location) == first.location)
    call = next((node for location, node in nodes.items() if first.location.startswith(f"{location}/")), None)
    node = next(inner, None)
    return None if node is None or call is None else failing(failing(target, call), node)


def _with_same_nodes(rewrite: Rewrite[onnx.ModelProto], target: Target) -> Rewrite[onnx.ModelProto]:
    """Return the rewrite as `with_same_nodes`; unchanged if its opset needs a newer IR version than the target's."""
    try:
        return with_same_nodes(rewrite, target)
    except ConversionError:
        return rewrite


def _runs(ran: RuntimeRun) -> bool:
    """Return True if a model runs. A result of another shape with the right values cannot be mended by another form."""
    return ran.answer == "equal" or ran.only_rank


def _unchanged(model: onnx.ModelProto) -> Rewrite[onnx.ModelProto]:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return step(copy)


def _refused(rewrite: Rewrite[onnx.ModelProto], ran: RuntimeRun, model: onnx.ModelProto) -> ConversionError:
    """Return the error for a model that runs in no way that was tried. rewrite: the first one, with its run."""
    text = f"{ran.label} runs the model in no way that was tried: {ran.told}"
    (blocker,) = with_nodes([_blocker(ran, has_open_inputs(model))], scopes(rewrite.model))
    return ConversionError(text, [blocker])


def _blocker(ran: RuntimeRun, can_be_fixed: bool) -> Diagnostic:
    """Return the finding of a run as a blocker. can_be_fixed: a dimension of an input has no size."""
    fixed = ", give its dimensions fixed sizes," if can_be_fixed else ""
    help = f"Change the model around this node{fixed} or use another version of the runtime."
    return replace(found_in_run(ran), help=help)
