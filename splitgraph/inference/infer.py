"""Infers the types, shapes and splits of a whole model.

What comes in: a model, the sizes that the caller gives, and what the caller permits (`task.py`). What happens: every
node of the main graph is walked (`walk.py`), then the functions as written; a second walk follows if the first one
shows that it needs to. What goes out: an `Analysis` for people (`build_analysis.py`), with the model filled in
(`write_value_info.py`), or `Walked` for a conversion.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from splitgraph.dim import Dim, DimLike, Facts
from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.inference.accepted import analyse_accepting, settle
from splitgraph.inference.analysis import Analysis
from splitgraph.inference.broadcast_assumptions import may_be_settled, settle_assumptions
from splitgraph.inference.build_analysis import build_analysis
from splitgraph.inference.declared_types import define_graph_values, settle_size_conditions, take_demands
from splitgraph.inference.demanded_types import Demands, demanded_types
from splitgraph.inference.input_defaults import (
    defaults_left_open,
    defaults_of,
    findings_about_defaults,
    left_open,
    may_tell_shapes,
)
from splitgraph.inference.memo import Memo
from splitgraph.inference.record import Requirement
from splitgraph.inference.rules import load_rules
from splitgraph.inference.task import UNBOUND, Follow, Task, fix_sizes, read_sizes
from splitgraph.inference.violated_sizes import settle_given_sizes
from splitgraph.inference.walk import Walk
from splitgraph.inference.walk_results import FunctionCall, GraphDetail, NodePlace, Visit
from splitgraph.inference.walk_state import WalkState
from splitgraph.inference.write_value_info import fill_model
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.places import with_nodes
from splitgraph.model.schemas import newest_opset
from splitgraph.model.scopes import (
    MAIN,
    GraphPath,
    Scope,
    function_key,
    function_location,
    node_label,
    opset_imports,
    plain_domain,
    scopes,
    sorted_order,
)
from splitgraph.model.value_type import UNKNOWN, ValueType
from splitgraph.options import NO_SIZES, STRICT, Leeway, Sizes


def infer_model(
    model: ModelProto,
    given: Sizes = NO_SIZES,
    leeway: Leeway = STRICT,
    *,
    assumes_nonempty: bool = False,
    fill: bool = True,
    owned: bool = False,
) -> Analysis:
    """Infer types and shapes of every value of a model. The model does not change, unless it is `owned`.

    assumes_nonempty: take the larger of two broadcast dimensions, and list what that assumes (`Analysis.assumptions`);
    without it, the result holds at every size. fill: make a copy with the types filled in; without it, `Analysis.model`
    is the model itself. owned: nobody else uses the model, so that the types are filled into the model itself. Raise
    SplitgraphError for a binding or an input shape that fits nothing in the model, but never for a wrong model.
    """
    sizes = read_sizes(model, given)
    task = Task(
        model,
        leeway.empty_chunks,
        sizes,
        assumes_defaults=leeway.assume_defaults,
        assumes_nonempty=assumes_nonempty,
    )
    analysis = analyse_accepting(task, leeway, _analyse)
    if analysis.diagnostics or analysis.accepted:
        analysis = replace(
            analysis,
            diagnostics=with_nodes(analysis.diagnostics, analysis.details.scopes),
            accepted=with_nodes(analysis.accepted, analysis.details.scopes),
        )
    if not fill:
        return analysis
    if not owned:
        filled = ModelProto()
        filled.CopyFrom(model)
        model = filled
    return fill_model(analysis, model, sizes)


def _analyse(task: Task) -> Analysis:
    """Return the analysis of a model. The walks themselves are freed before the model is copied and filled."""
    state, main = _walk_settling_assumptions(task)
    _settle_branches(state)
    if task.sizes is not UNBOUND and task.sizes.bound:
        settle_given_sizes(state, lambda: _walk_checking_shapes(replace(task, sizes=UNBOUND, is_reported=False))[0])
    _report_defaults(state, main)
    return build_analysis(state, main)


def _walk_settling_assumptions(task: Task) -> tuple[WalkState, Walk]:
    """Return the walk over a model, without assumptions that are proved, and without those that cause errors."""
    state, main = _walk_checking_shapes(task)
    has_assumptions = state.symbols.assumed_pairs or state.symbols.assumed_sizes
    if not (has_assumptions and (_errors(state) or may_be_settled(state, main.facts))):
        return state, main
    # A later requirement may depend on an earlier assumption. Only a walk without assumptions can tell.
    exact, exact_main = _walk_checking_shapes(replace(task, assumes_nonempty=False))
    if not _errors(state) <= _errors(exact):
        # The assumptions cause errors.
        return exact, exact_main
    settle_assumptions(state, exact_main.facts)
    return state, main


def _report_defaults(state: WalkState, main: Walk) -> None:
    """Report initializers that are also inputs, and how many shapes are open only because callers may replace them."""
    task = state.task
    defaults = defaults_of(task.model)
    for finding in findings_about_defaults(task.model, assumed=task.assumes_defaults):
        state.record.report(finding)
    if task.assumes_defaults or not any(map(may_tell_shapes, defaults)):
        return
    _, assumed = _walk(replace(task, is_reported=False, assumes_defaults=True, assumes_nonempty=False))
    count = left_open(main.types, assumed.types, frozenset(state.symbols.generated))
    if count:
        state.record.report(defaults_left_open(len(defaults), count))


def _walk_checking_shapes(task: Task) -> tuple[WalkState, Walk]:
    """Return the walk over a model with its declared shapes; or, if one of them is wrong, the walk that ignores all."""
    state, main = _walk(task)
    misdeclared = [finding for finding in state.record.diagnostics if finding in state.record.misdeclared]
    if misdeclared:
        # Another declaration may be wrong as well, although nothing contradicts it. A conversion walks in the same way.
        state, main = _walk(replace(task, believes_shapes=False))
        for finding in misdeclared:
            state.record.report(finding)
    return state, main


def _errors(state: WalkState) -> set[tuple[str, str]]:
    return {(finding.code, finding.location) for finding in state.record.diagnostics if finding.severity == "error"}


def _settle_branches(state: WalkState) -> None:
    """Move errors that the model has only at the given sizes, in branches that do not run then, to `never_run`."""
    task, record = state.task, state.record
    if not record.branches.avoidable:
        return
    has_sizes, at_any_size = task.sizes is not UNBOUND, set[tuple[str, str]]()
    if has_sizes:
        plain, _ = _walk(Task(task.model, task.empty_chunks, is_reported=False, set_aside=task.set_aside))
        at_any_size = {(finding.code, finding.location) for finding in plain.record.diagnostics}

    def is_of_sizes(error: Diagnostic) -> bool:
        return has_sizes and (error.code, error.location) not in at_any_size

    record.diagnostics[:], avoided = record.branches.settled(record.diagnostics, is_of_sizes)
    record.never_run.update(dict.fromkeys(avoided))


def fix_model(model: ModelProto, given: Sizes, *, owned: bool) -> ModelProto:
    """Return a model with the caller's sizes written into the types that it declares. Everything else stays. owned: as
    for `infer_model`. Raise SplitgraphError for a binding that fits nothing in the model.
    """
    sizes = read_sizes(model, given)
    types = _analyse(Task(model, sizes=sizes)).details.types
    if not owned:
        fixed = ModelProto()
        fixed.CopyFrom(model)
        model = fixed
    fix_sizes(model, sizes, tuple(scopes(model)), types)
    return model


# The walk over a model ------------------------------------------------------------------------------------------------


def _walk(task: Task) -> tuple[WalkState, Walk]:
    """Return the walk over a model. A second walk follows if the first one shows that it needs other names for symbols,
    another order of the nodes, or types that nodes demand of inputs.
    """
    state, graph = WalkState(task), task.model.graph
    record = state.record
    load_rules()
    facts = Facts()
    if task.follow is not None:
        task.follow.begin()
        facts = Facts(task.follow.bounds())
    _check_functions(state)
    main = Walk(state, MAIN, "main", task.imports, facts, bindings={})
    if _opsets_known(state):
        define_graph_values(main, graph, task.sizes.given)
        main.run(graph.node)
        for value in graph.output:
            if not main.is_defined(value.name):
                main.report(diagnostic("SG105", f"nothing in the model defines the output {value.name!r}", "main"))
        walk_function_bodies(state, main)
        settle_size_conditions(state)
        # Nobody reads the memo any more, and a large model has as many visits as values.
        main.memo.forget()
    else:
        define_graph_values(main, graph, None)
    lacking = record.tensors.finding()
    if lacking is not None:
        record.report(lacking)
    # A subgraph declares a dimension with the name of a generated symbol, or a node reads the output of a later node.
    # Both are rare; looking for them first would cost another pass over all nodes.
    again = bool(state.find_scopes()) or (record.is_disordered and not task.sorts)
    demands = task.demands
    if not again and not demands:
        demands = demanded_types(state)
        again = bool(demands)
    if again:
        reserved, sorts = frozenset(state.symbols.reserved), task.sorts or record.is_disordered
        return _walk(replace(task, reserved=reserved, sorts=sorts, demands=demands))
    for scope in record.scopes if task.sorts else ():
        _check_order(state, scope)
    return state, main


def _opsets_known(state: WalkState) -> bool:
    """Return False if the operators cannot be known: the model or a function imports an ai.onnx opset that does not
    exist, or two different ones. Report that.
    """
    imports = [("", state.task.model.opset_import)]
    imports += [(function_location(f), f.opset_import) for f in state.task.model.functions]
    good = True
    for location, entries in imports:
        opsets = sorted({entry.version for entry in entries if plain_domain(entry.domain) == ""})
        text = help = None
        if len(opsets) > 1:
            help = "Remove all of these imports but the one that the nodes were written for."
            text = f"imports several opsets of ai.onnx at once: {', '.join(map(str, opsets))}"
        elif opsets and not 1 <= opsets[0] <= newest_opset(opsets[0]):
            newest = newest_opset(opsets[0])
            help = None if opsets[0] > 0 else "Import the opset that the nodes were written for."
            text = f"imports opset {opsets[0]} of ai.onnx; splitgraph knows 1 to {newest}"
        if text is not None:
            state.record.report(diagnostic("SG103", text, location, help=help))
            good = False
    return good


def _check_functions(state: WalkState) -> None:
    """Report functions of the same domain, name and overload: runtimes take different ones, or refuse the model."""
    locations = Counter(map(function_location, state.task.model.functions))
    for location, count in locations.items():
        if count > 1:
            text, help = f"the function {location} is defined {count} times", "Rename or remove all of them but one."
            state.record.report(diagnostic("SG104", text, location, help=help))


def _check_order(state: WalkState, scope: Scope) -> None:
    """Report nodes that are not in topological order."""
    order = sorted_order(scope.nodes)
    moved = next((position for position, index in enumerate(order) if position != index), None)
    if moved is not None:
        first = node_label(scope.nodes[moved], moved)
        text = f"the nodes are out of order: {first} reads a value that a later node produces"
        state.record.report(diagnostic("SG112", text, scope.location, severity="warning"))


# Functions as written, apart from any call ----------------------------------------------------------------------------


def walk_function_bodies(state: WalkState, main: Walk) -> None:
    """Walk each function body as written, with the input types that all calls have in common."""
    for index, function in enumerate(state.task.model.functions):
        key = function_key(function)
        calls = state.record.calls.get(key, [])
        imports = opset_imports(function.opset_import)
        facts = main.facts.child()
        # The walks for calls have reported the findings of the body already.
        state.record.quiet += bool(calls)
        body = Walk(state, ("F", index), function_location(function), imports, facts, memo=Memo(facts, main.memo))
        state.record.calling.append(key)
        # An incomplete list of calls does not show what all calls have in common.
        listed = calls if state.record.follows_every_call else []
        symbols = _stand_ins(state)
        for position, name in enumerate(function.input):
            body.define(name, _common_type(symbols, listed, position), body.location)
        take_demands(body)
        body.run(function.node)
        body.check_function_outputs(function)
        state.record.calling.pop()
        state.record.quiet -= bool(calls)


def _stand_ins(state: WalkState) -> Iterator[Dim]:
    """Yield symbols for the unknown dimensions of a function's inputs. All functions use the same symbols, so that
    equal calls in different functions stay equal. Requirements on these symbols stay within the function.
    """
    for position in itertools.count():
        if position == len(state.symbols.stand_ins):
            state.symbols.stand_ins.append(state.fresh())
        yield state.symbols.stand_ins[position]


def _common_type(symbols: Iterator[Dim], calls: Sequence[FunctionCall], position: int) -> ValueType:
    """Return the type that all calls of a function have in common for one input: kind, element type, rank and static
    dimensions. A new symbol stands for any other dimension, because a symbol of one call means nothing in another call.
    """
    types = [(call.inputs[position] if position < len(call.inputs) else None) or UNKNOWN for call in calls]
    if not types or any(value.kind != types[0].kind for value in types):
        return UNKNOWN
    dtype = types[0].dtype if all(value.dtype == types[0].dtype for value in types) else None
    shapes = [value.shape for value in types]
    if None in shapes or len({len(shape or ()) for shape in shapes}) > 1:
        return ValueType(types[0].kind, dtype, None, types[0].element)
    dims = [set(dims) for dims in zip(*(shape or () for shape in shapes), strict=True)]
    return ValueType(types[0].kind, dtype, tuple(_agreed(symbols, choices) for choices in dims), types[0].element)


def _agreed(symbols: Iterator[Dim], dims: set[DimLike | None]) -> DimLike:
    only = dims.pop() if len(dims) == 1 else None
    return only if isinstance(only, int) else next(symbols)


# The walk for a conversion --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Walked:
    """The results of walking a model, with the internal names of symbols: all that conversion needs.

    diagnostics: every finding. never_run: errors in branches that never run; they are no errors of the model. opset:
    imported version of each domain. scopes: every graph of the model. graphs: the results for each graph, by path.
    misdeclared: declarations with only a wrong shape; if there are any, no declared shape of a node's output was
    believed. named: declared names of dimensions that are otherwise unknown, each with the graphs that declare it.
    facts: what is known of the symbols in each graph. accepted: findings that the user accepts; they are not among
    the diagnostics. set_aside: the nodes of which nothing is concluded, each with its accepted finding. stale: notes
    about acceptances that no error needs. leeway: what was permitted, for the same model after its nodes moved.
    requirements: what nodes require of the symbols. demands: by graph, the values of which only that is known which
    their readers demand.
    """

    diagnostics: tuple[Diagnostic, ...]
    never_run: tuple[Diagnostic, ...]
    opset: Mapping[str, int]
    scopes: tuple[Scope, ...]
    graphs: Mapping[GraphPath, GraphDetail]
    misdeclared: tuple[Diagnostic, ...]
    named: Mapping[str, Collection[GraphPath]]
    facts: Mapping[GraphPath, Facts]
    accepted: tuple[Diagnostic, ...] = ()
    set_aside: Mapping[NodePlace, Diagnostic] = field(default_factory=dict)
    stale: tuple[Diagnostic, ...] = ()
    leeway: Leeway = STRICT
    requirements: tuple[Requirement, ...] = ()
    demands: Demands = field(default_factory=dict)

    @property
    def lenient(self) -> list[Diagnostic]:
        """The warnings about nodes with element types that only the schema forbids."""
        told = {finding for detail in self.graphs.values() for finding in detail.lenient.values()}
        return [finding for finding in self.diagnostics if finding in told] if told else []

    @property
    def tolerated(self) -> list[Diagnostic]:
        """The warnings about nodes that engines run, and that the specification forbids not only for their types."""
        told = {finding for detail in self.graphs.values() for finding in detail.tolerated}
        return [finding for finding in self.diagnostics if finding in told] if told else []

    @property
    def doubled(self) -> list[Diagnostic]:
        """The warnings about equal initializers of one name."""
        return [finding for finding in self.diagnostics if finding.code == "SG104" and finding.severity == "warning"]

    def visits(self, scope: Scope) -> Sequence[Visit | None]:
        """Return the visit of each node of a graph, as in `GraphDetail.visits`."""
        detail = self.graphs.get(scope.path)
        known = [] if detail is None else detail.visits
        return known if len(known) == len(scope.nodes) else [None] * len(scope.nodes)


def walk_model(
    model: ModelProto, leeway: Leeway = STRICT, follow: Follow | None = None, *, believes_shapes: bool = True
) -> Walked:
    """Infer every value of a model for a conversion. The model does not change. Never raise for a wrong model.

    follow: reads constants of a model whose inputs have new sizes. Declared shapes of other values are of the old ones
    then, and not believed. believes_shapes: False if they are not to be believed in any case.
    """
    task = Task(
        model,
        is_reported=False,
        believes_shapes=believes_shapes and follow is None,
        assumes_defaults=leeway.assume_defaults,
        reads_by_form=leeway.read_by_form,
        follow=follow,
    )
    walked = _walked(task, leeway)
    if not leeway.accept:
        return _with_nodes(walked)
    settled = settle(leeway.accept, walked.diagnostics, walked.scopes, walked.graphs)
    first = walked.diagnostics
    if settled.locations:
        walked = _walked(replace(task, set_aside=settled.locations), leeway)
    walked = replace(
        walked,
        diagnostics=settled.apply(first, walked.diagnostics),
        accepted=tuple(settled.accepted),
        set_aside=settled.nodes,
        stale=tuple(settled.notes) if leeway.tells_stale else (),
        leeway=leeway._replace(accept=settled.later, tells_stale=False),
    )
    return _with_nodes(walked)


def _with_nodes(walked: Walked) -> Walked:
    """Return the results with findings that name their nodes."""
    if not (walked.diagnostics or walked.never_run or walked.misdeclared or walked.accepted):
        return walked

    def named(findings: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
        return with_nodes(findings, walked.scopes)

    return replace(
        walked,
        diagnostics=named(walked.diagnostics),
        never_run=named(walked.never_run),
        misdeclared=named(walked.misdeclared),
        accepted=named(walked.accepted),
        set_aside=dict(zip(walked.set_aside, named(walked.set_aside.values()), strict=True)),
    )


def _walked(task: Task, leeway: Leeway) -> Walked:
    state, _ = _walk(task)
    misdeclared = tuple([finding for finding in state.record.diagnostics if finding in state.record.misdeclared])
    if misdeclared:
        # Another declaration may be wrong too, without a contradiction, and conversion would depend on it.
        state, _ = _walk(replace(task, believes_shapes=False))
    return walked_of(state, misdeclared, leeway)


def walked_of(state: WalkState, misdeclared: tuple[Diagnostic, ...] = (), leeway: Leeway = STRICT) -> Walked:
    """Return the results of a walk for conversion. misdeclared, leeway: as in `Walked`."""
    record = state.record
    diagnostics, avoided = record.branches.settled(record.diagnostics, lambda error: False)
    return Walked(
        tuple(diagnostics),
        (*record.never_run, *avoided),
        dict(state.task.imports),
        record.scopes,
        record.details,
        misdeclared,
        {name: frozenset(graphs) for name, graphs in state.symbols.adopted.items()},
        record.facts,
        leeway=leeway,
        requirements=tuple(record.requirements),
        demands=state.task.demands,
    )


def later_leeway(model: ModelProto, leeway: Leeway) -> Leeway:
    """Return the leeway for the same model after a conversion moved its nodes."""
    return walk_model(model, leeway).leeway if leeway.accept else leeway
