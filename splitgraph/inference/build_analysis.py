"""Build the `Analysis` from the results of the walks: reported types, splits, requirements, bounds and completeness."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from splitgraph.dim import Dim, DimLike, Facts, Obligation, symbol, symbols_of
from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.inference.analysis import Analysis, Completeness, LazyReports, Origin, Reports, SplitReport
from splitgraph.inference.operators import AI_ONNX, plugin_advice
from splitgraph.inference.shown_symbols import (
    Requirements,
    ShownNames,
    TypeSimplifier,
    shown_assumptions,
    shown_requirements,
    solve,
    tally,
)
from splitgraph.inference.single_sizes import single_sizes
from splitgraph.inference.walk import Walk
from splitgraph.inference.walk_results import FoundSplit, GraphDetail
from splitgraph.inference.walk_state import WalkState
from splitgraph.model.onnx_proto import NodeProto
from splitgraph.model.scopes import (
    MAIN,
    GraphPath,
    Scope,
    called_function,
    may_have_bodies,
    node_label,
    plain_domain,
    subgraph_location,
    subgraphs,
)
from splitgraph.model.value_type import UNKNOWN, ValueType
from splitgraph.splits.openvino_split_1 import EXTENSION

# The types of each graph, by path.
Types = Mapping[GraphPath, Mapping[str, ValueType]]
# Each type object of a graph with its simplified form at the end, and how many values have it.
ToldApart = Sequence[tuple[ValueType, ValueType, int]]


def build_analysis(state: WalkState, main: Walk) -> Analysis:
    """Return the analysis of a walked model. Its `details` have the shown types of every graph, and what conversion
    needs.
    """
    record, symbols, facts = state.record, state.symbols, main.facts
    solved = solve(
        [obligation for obligation in facts.obligations if obligation not in symbols.declared_numbers],
        symbols.generated,
    )
    # An IR has intervals: a dimension with known bounds only is shown because of them.
    bounded = facts.bounds.keys() & symbols.generated if state.task.declared_types else frozenset[str]()
    naming, simplifier = ShownNames(symbols.generated, symbols.reserved, solved, bounded), TypeSimplifier(solved)
    walked = {path: detail for path, detail in record.details.items() if path[:1] not in (("call",), ("F",))}
    walked.setdefault(main.path, main.detail)
    told_apart: dict[GraphPath, ToldApart] = {}
    for path, detail in walked.items():
        here = record.facts.get(path, facts)
        told_apart[path] = [
            (value, simplifier.value(value, here), times) for value, times in tally(detail.types.values())
        ]
    lengths = {
        id(report.detail): simplifier.dims(report.detail.shown.lengths, report.facts) for report in record.reports
    }
    places = [(plain.shape or (), times) for values in told_apart.values() for _, plain, times in values]
    # Requirements on a symbol are shown with it.
    places += [((obligation.lhs,), 1) for obligation in symbols.declared_numbers]
    places += [(lengths[id(split)], times) for split, times in tally([report.detail for report in record.reports])]
    naming.count(places)
    types, counted = _shown_types(walked, told_apart, naming)
    dims, completeness = _completeness(state, types, counted)
    graph, shown_types = state.task.model.graph, types[main.path]
    defaults = {tensor.name for tensor in graph.initializer} | {each.values.name for each in graph.sparse_initializer}
    reports = LazyReports(
        lambda: _reports(state, main, naming, _shown_splits(state, naming, simplifier, lengths), dims)
    )
    sizes = single_sizes(state, lambda: reports().required_by, solved, shown_types)
    return Analysis(
        held=state.task.model,
        reports=reports,
        diagnostics=(*record.diagnostics, *_unknown_operators(state), *sizes),
        types=shown_types,
        inputs={each.name: shown_types.get(each.name, UNKNOWN) for each in graph.input if each.name not in defaults},
        outputs={each.name: shown_types.get(each.name, UNKNOWN) for each in graph.output},
        graphs=_by_location(record.scopes, types),
        opset=dict(state.task.imports),
        completeness=completeness,
        details=Details(state, types, naming, reports),
    )


def _reports(
    state: WalkState, main: Walk, naming: ShownNames, shown: Mapping[int, ShownSplit], dims: Iterable[Dim]
) -> Reports:
    """Return what is reported of splits and symbols. shown: the splits, as of `_shown_splits`. dims: the symbolic
    dimensions that are reported.
    """
    record = state.record
    noted = [(requirement.obligation, requirement.facts) for requirement in record.requirements]
    noted += [(obligation, report.facts) for report in record.reports for obligation in report.obligations]
    requirements = Requirements(naming, noted)
    required = [(report, _required(requirements, report, shown[id(report.detail)])) for report in record.reports]
    return Reports(
        splits=tuple(
            [_shown_report(report, shown[id(report.detail)], obligations) for report, obligations in required]
        ),
        required_by=shown_requirements(state, naming, requirements, required),
        assumed_by=shown_assumptions(state),
        generated=naming.shown_names(),
        symbols=_bounds(main, naming, dims),
    )


def _shown_types(
    walked: Mapping[GraphPath, GraphDetail], told_apart: Mapping[GraphPath, ToldApart], naming: ShownNames
) -> tuple[Types, list[tuple[ValueType, int]]]:
    """Return the reported types of each graph, and each reported type with the number of its values."""
    types: dict[GraphPath, Mapping[str, ValueType]] = {}
    counted: list[tuple[ValueType, int]] = []
    for path, detail in walked.items():
        reported, same = dict[int, ValueType](), True
        for value, plain, times in told_apart[path]:
            shown = reported[id(value)] = naming.value(plain)
            same = same and shown is value
            counted.append((shown, times))
        # As it is where all types are shown as they are: a copy would be as large as the graph.
        types[path] = detail.types
        if not same:
            types[path] = dict(
                zip(detail.types, map(reported.__getitem__, map(id, detail.types.values())), strict=True)
            )
    return types, counted


class Details:
    """For conversion and `why`: all graphs of the model, the results of the walks, the shown types of each graph by
    path, and the symbols that the walks made, with the names of those that are shown.
    """

    def __init__(self, state: WalkState, types: Types, naming: ShownNames, reports: LazyReports) -> None:
        self.generated = frozenset(naming.generated)
        self.scopes = state.record.scopes
        self.graphs = state.record.details
        self.types = types
        self._naming, self._reports = naming, reports

    @property
    def shown_names(self) -> dict[str, DimLike]:
        """The names under which symbols that the walks made are shown."""
        # The reports give some of the names.
        self._reports()
        shown = {name: self._naming.shown_name(name) for name in self.generated}
        return {name: known for name, known in shown.items() if known is not None}


class ShownSplit(NamedTuple):
    """What equal split nodes have in common, in shown names."""

    input: ValueType
    outputs: list[ValueType]
    lengths: tuple[DimLike | None, ...]
    meanings: list[Obligation]


def _shown_splits(
    state: WalkState, naming: ShownNames, simplifier: TypeSimplifier, lengths: Mapping[int, Iterable[DimLike | None]]
) -> dict[int, ShownSplit]:
    """Return the reported form of each split, by the identity of its detail. lengths: the lengths of its parts, by the
    same key.
    """
    shown: dict[int, ShownSplit] = {}
    for report in state.record.reports:
        if id(report.detail) not in shown:
            data, *outputs = [
                naming.value(simplifier.value(value, report.facts)) for value in (report.detail.data, *report.outputs)
            ]
            outputs += [UNKNOWN] * (len(report.output_names) - len(outputs))
            named = {str(dim) for value in outputs for dim in (value.shape or ()) if isinstance(dim, Dim)}
            meanings = [naming.meanings[name] for name in sorted(named & naming.meanings.keys())]
            parts = tuple([naming.dim(length) for length in lengths[id(report.detail)]])
            shown[id(report.detail)] = ShownSplit(data, outputs, parts, meanings)
    return shown


def _required(requirements: Requirements, report: FoundSplit, shown: ShownSplit) -> list[Obligation]:
    """Return the requirements of a split, and the meanings of the symbols in its types; each once."""
    plain = [
        stated
        for obligation in report.obligations
        if (stated := requirements.plain(obligation, report.facts)) is not None
    ]
    return list(dict.fromkeys([*plain, *shown.meanings]))


def _shown_report(report: FoundSplit, shown: ShownSplit, required: Iterable[Obligation]) -> SplitReport:
    variant = report.detail.variant
    return SplitReport(
        name=report.name,
        op=variant.op_type,
        domain=variant.domain,
        since_version=variant.since_version,
        location=report.location,
        axis=report.detail.shown.axis,
        input_name=report.input_name,
        input=shown.input,
        outputs=tuple(zip(report.output_names, shown.outputs, strict=False)),
        lengths=shown.lengths,
        obligations=tuple(map(str, required)),
    )


def _by_location(scopes: Iterable[Scope], types: Types) -> dict[str, Mapping[str, ValueType]]:
    """Return the types of each graph by its location, the main graph first. Two graphs can have one location, where
    nodes share a name; then the location of the second one gets a number.
    """
    if len(types) == 1:
        return {"main": types[MAIN]}
    by_location: dict[str, Mapping[str, ValueType]] = {}
    for scope in scopes:
        if scope.path not in types:
            continue
        location, count = scope.location, 1
        while location in by_location:
            count += 1
            location = f"{scope.location} ({count})"
        by_location[location] = types[scope.path]
    return by_location


def _bounds(main: Walk, naming: ShownNames, dims: Iterable[Dim]) -> dict[str, tuple[int, int | None]]:
    """Return the known bounds of the symbols in the reported dimensions."""
    names = sorted({name for dim in dims for name in symbols_of(dim)})
    # A generated symbol is numbered anew when it is shown: its bounds are found under the number that it had inside.
    internal = _met_by_equal_ones(main.facts) if main.state.task.declared_types else main.facts.bounds
    known = {name: bounds for name, bounds in internal.items() if name not in naming.generated}
    for generated, bounds in internal.items():
        shown_name = naming.shown_name(generated)
        if shown_name is not None:
            known[str(shown_name)] = bounds
    return {name: known.get(name, (0, None)) for name in names}


def _met_by_equal_ones(facts: Facts) -> dict[str, tuple[int, int | None]]:
    """Return the bounds of each symbol. Two symbols that must be equal get the narrower bounds of both."""
    bounds = dict(facts.bounds)
    for obligation in facts.obligations:
        names = [
            str(side)
            for side in (obligation.lhs, obligation.rhs)
            if isinstance(side, Dim) and side == symbol(str(side))
        ]
        if obligation.relation != "==" or not names:
            continue
        sides = [bounds.get(name, (0, None)) for name in names]
        sides += [(side, side) for side in (obligation.lhs, obligation.rhs) if isinstance(side, int)]
        highs = [high for _, high in sides if high is not None]
        if len(sides) > 1:
            bounds |= dict.fromkeys(names, (max(low for low, _ in sides), min(highs) if highs else None))
    return bounds


def _unknown_operators(state: WalkState) -> list[Diagnostic]:
    warnings = []
    for label, count in state.record.unknown_operators.items():
        domain, _, op_type = label.rpartition("::")
        first = state.record.first_unknown[label]
        times = f" ({first})" if count == 1 else f" ({count} nodes, the first is {first})"
        is_plugin = domain == AI_ONNX
        cause = f"ai.onnx has no operator {op_type}" if is_plugin else f"{label} has no schema and no function body"
        help = plugin_advice(op_type) if is_plugin else None
        text = f"{cause}{times}, so the types of its outputs are unknown"
        if domain == EXTENSION:
            text = f"the layer {op_type} belongs to an extension{times}; of its outputs only the ports' types are known"
            help = "Write the shapes into the ports: read and save the model in OpenVINO with the extension added."
        warnings.append(diagnostic("SG303", text, "main", severity="warning", help=help))
    return warnings


def _completeness(
    state: WalkState, types: Types, counted: Iterable[tuple[ValueType, int]]
) -> tuple[set[Dim], Completeness]:
    """Return the symbolic dimensions that are reported, and the counts of known dimensions. counted: each type with the
    number of its values.
    """
    shown = set[Dim]()
    dims = known = symbolic = unranked = 0
    for value, times in counted:
        if value.shape is None:
            unranked += times
            continue
        for dim in value.shape:
            dims += times
            if dim is not None:
                known += times
                if isinstance(dim, Dim):
                    symbolic += times
                    shown.add(dim)
    unknown = tuple(state.record.unknown_operators)
    left_open = len(values_left_open(state, types)) if unknown else 0
    graphs = state.record.scopes
    nodes = sum(len(scope.nodes) for scope in graphs)
    origin = first_unknown(state, types) if unranked or known < dims else None
    return shown, Completeness(dims, known, symbolic, unranked, nodes, unknown, left_open, origin, len(graphs))


def values_left_open(state: WalkState, types: Types) -> set[tuple[GraphPath, str]]:
    """Return graph path and name of each value that depends on an unknown operator and is not fully known."""
    open_values: set[tuple[GraphPath, str]] = set()
    _open_in_graph(state, types, MAIN, state.task.model.graph.node, frozenset(), open_values)
    return open_values


def _open_in_graph(
    state: WalkState,
    types: Types,
    path: GraphPath,
    nodes: Sequence[NodeProto],
    around: frozenset[str],
    open_values: set[tuple[GraphPath, str]],
) -> frozenset[str]:
    """Collect the open values of a graph, and return the open names that are visible in it. around: the open names of
    the graphs around it.
    """
    types_here = types.get(path, {})
    visible = set(around)
    for index, node in enumerate(nodes):
        depends = _is_unknown(state, node) or not visible.isdisjoint(node.input)
        for name, position, graph in subgraphs(node):
            inside = (*path, index, name, position)
            if state.record.is_too_deep and inside not in types:
                continue
            inner = _open_in_graph(state, types, inside, graph.node, frozenset(visible), open_values)
            depends |= any(value.name in inner for value in graph.output)
        for name in node.output if depends else ():
            if name and _is_open(types_here.get(name, UNKNOWN)):
                visible.add(name)
                open_values.add((path, name))
    return frozenset(visible)


def _is_unknown(state: WalkState, node: NodeProto) -> bool:
    if f"{plain_domain(node.domain)}::{node.op_type}" in state.record.unknown_operators:
        return True
    function = state.task.functions.get(called_function(node))
    return function is not None and any(
        f"{plain_domain(inner.domain)}::{inner.op_type}" in state.record.unknown_operators for inner in function.node
    )


def _is_open(value: ValueType) -> bool:
    return value.kind == "unknown" or (
        value.element is None and (value.shape is None or value.dtype is None or None in value.shape)
    )


def first_unknown(state: WalkState, types: Types) -> Origin | None:
    """Find the first value with an unknown rank or an unknown dimension, in the order of the nodes. The bodies of a
    node come with the node. Return None if all are known. types: the shown types.
    """
    for value in state.task.model.graph.input:
        unknown = _unknown_part(types.get(MAIN, {}).get(value.name, UNKNOWN))
        if unknown:
            reason = "the input declares no shape" if unknown == "rank" else "the input declares an unknown dimension"
            return Origin(f"main/{value.name}", reason, value.name)
    return _origin_in_graph(state, types, MAIN, "main", state.task.model.graph.node)


def _origin_in_graph(
    state: WalkState, types: Types, path: GraphPath, location: str, nodes: Sequence[NodeProto]
) -> Origin | None:
    """Return the first node of a graph, or of its subgraphs and called functions, that gives something unknown."""
    detail = state.record.details.get(path)
    if detail is None:
        return None
    known = types.get(path, detail.types)
    for index, node in enumerate(nodes):
        label = node_label(node, index)
        if may_have_bodies(node, state.task.plain_functions):
            for name, position, graph in subgraphs(node):
                inside = subgraph_location(location, label, name, position)
                origin = _origin_in_graph(state, types, (*path, index, name, position), inside, graph.node)
                if origin is not None:
                    return origin
        unknown = next(
            ((name, part) for name in node.output if name and (part := _unknown_part(known.get(name)))), None
        )
        if unknown is not None:
            place = f"{location}/{label}"
            function = state.task.functions.get(called_function(node))
            inner = None if function is None else _origin_in_graph(state, types, ("call", place), place, function.node)
            return inner or Origin(place, _why_unknown(state, node, place, unknown[1]), unknown[0])
    return None


def _why_unknown(state: WalkState, node: NodeProto, place: str, part: str) -> str:
    """part: what is unknown, the rank or a dimension."""
    label = f"{plain_domain(node.domain) or AI_ONNX}::{node.op_type}"
    if label in state.record.unknown_operators:
        return f"unknown operator {label}"
    if any(finding.location == place and finding.severity == "error" for finding in state.record.diagnostics):
        return f"the node {node.op_type} has an error"
    if any(subgraphs(node)):
        return f"the bodies of {node.op_type} give no common {part}"
    return f"the inputs of {node.op_type} do not tell the {part}"


def _unknown_part(value: ValueType | None) -> str:
    """Return what is unknown of a value: "rank", "dimension", or "" if all is known. A map has no rank."""
    if value is None or value.shape is None:
        return "" if value is not None and value.kind == "map" else "rank"
    return "dimension" if None in value.shape else ""
