"""Building the `Analysis` from the results of the walks: shown names of symbols, split reports, bounds and
completeness.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.dim import Dim, DimLike, Facts, Obligation, symbol, symbols_of
from splitgraph.graph.scopes import MAIN, GraphPath, Scope
from splitgraph.inference.analysis import Analysis, Completeness, SplitReport
from splitgraph.inference.first_unknown import first_unknown
from splitgraph.inference.generated_symbols import ShownNames, tally
from splitgraph.inference.operators import AI_ONNX, plugin_advice
from splitgraph.inference.requirements import Requirements, shown_assumptions, shown_requirements
from splitgraph.inference.simplified_types import TypeSimplifier
from splitgraph.inference.solved_symbols import solve
from splitgraph.inference.unknown_operator_reach import values_left_open
from splitgraph.inference.walk import Walk
from splitgraph.inference.walk_results import FoundSplit
from splitgraph.inference.walk_state import WalkState
from splitgraph.value_type import UNKNOWN, ValueType
from splitgraph.variants.openvino_split_1 import EXTENSION


def build_analysis(state: WalkState, main: Walk) -> Analysis:
    """The analysis of a walked model; `details` holds the shown types of every graph and what conversion needs."""
    solved = solve(
        [each for each in main.facts.obligations if each not in state.symbols.declared_numbers], state.symbols.generated
    )
    # An IR has intervals: a dimension of which only bounds are known is shown for them.
    bounded = main.facts.bounds.keys() & state.symbols.generated if state.task.declared_types else frozenset[str]()
    naming, simplifier = (
        ShownNames(state.symbols.generated, state.symbols.reserved, solved, bounded),
        TypeSimplifier(solved),
    )
    walked = {
        path: detail for path, detail in state.record.details.items() if path[:1] != ("call",) and path[:1] != ("F",)
    }
    walked.setdefault(main.path, main.detail)
    # Each type as the walk left it, its simplified form at the end, and how many values have it.
    told_apart = {
        path: [
            (value, simplifier.value(value, state.record.facts.get(path, main.facts)), times)
            for value, times in tally(detail.types.values())
        ]
        for path, detail in walked.items()
    }
    for values in told_apart.values():
        for _, plain, times in values:
            naming.count(plain.shape or (), times)
    # Requirements on a symbol are shown with it.
    naming.count([each.lhs for each in state.symbols.declared_numbers], 1)
    lengths = {
        id(found.detail): simplifier.dims(found.detail.shown.lengths, found.facts) for found in state.record.reports
    }
    for split, times in tally([found.detail for found in state.record.reports]):
        naming.count(lengths[id(split)], times)
    types: dict[GraphPath, Mapping[str, ValueType]] = {}
    counted: list[tuple[ValueType, int]] = []
    for path, detail in walked.items():
        reported = {id(value): naming.value(plain) for value, plain, _ in told_apart[path]}
        # As it is where all types are shown as they are: a copy would be as large as the graph.
        same = all(reported[id(value)] is value for value, _, _ in told_apart[path])
        types[path] = detail.types if same else {name: reported[id(value)] for name, value in detail.types.items()}
        counted += [(reported[id(value)], times) for value, _, times in told_apart[path]]
    shown = _shown_splits(state, naming, simplifier, lengths)
    noted = [(found.obligation, found.facts) for found in state.record.requirements]
    noted += [(obligation, found.facts) for found in state.record.reports for obligation in found.obligations]
    requirements = Requirements(naming, noted)
    required = [(found, _required(requirements, found, shown[id(found.detail)])) for found in state.record.reports]
    return Analysis(
        held=state.task.model,
        splits=tuple([_shown_report(found, shown[id(found.detail)], held) for found, held in required]),
        diagnostics=(*state.record.diagnostics, *_unknown_operators(state)),
        types=types[main.path],
        graphs=_by_location(state.record.scopes, types),
        required_by=shown_requirements(state, naming, requirements, required),
        assumed_by=shown_assumptions(state),
        generated=naming.shown_names(),
        symbols=_bounds(main, naming, counted),
        opset=dict(state.task.imports),
        completeness=_completeness(state, types, counted),
        details=Details(state, types),
    )


class Details:
    """For conversion: all graphs of the model, the state of the walks, and the shown types of each graph by path."""

    def __init__(self, state: WalkState, types: Mapping[GraphPath, Mapping[str, ValueType]]) -> None:
        self.scopes = state.record.scopes
        self.graphs = state.record.details
        self.types = types


class ShownSplit(NamedTuple):
    """What equal split nodes have in common, in shown names."""

    input: ValueType
    outputs: list[ValueType]
    lengths: tuple[DimLike | None, ...]
    meanings: list[Obligation]


def _shown_splits(
    state: WalkState, naming: ShownNames, simplifier: TypeSimplifier, lengths: Mapping[int, Iterable[DimLike | None]]
) -> dict[int, ShownSplit]:
    """The shown form of each split, by the identity of its detail. lengths: those of its parts, by the same key."""
    shown: dict[int, ShownSplit] = {}
    for found in state.record.reports:
        if id(found.detail) not in shown:
            data, *outputs = [
                naming.value(simplifier.value(value, found.facts)) for value in (found.detail.data, *found.outputs)
            ]
            outputs += [UNKNOWN] * (len(found.output_names) - len(outputs))
            named = {str(dim) for value in outputs for dim in (value.shape or ()) if isinstance(dim, Dim)}
            meanings = [naming.meanings[name] for name in sorted(named & naming.meanings.keys())]
            parts = tuple([naming.dim(length) for length in lengths[id(found.detail)]])
            shown[id(found.detail)] = ShownSplit(data, outputs, parts, meanings)
    return shown


def _required(requirements: Requirements, found: FoundSplit, shown: ShownSplit) -> list[Obligation]:
    """The requirements of a split, each once, and the meanings of the symbols in its types."""
    plain = [each for held in found.obligations if (each := requirements.plain(held, found.facts)) is not None]
    return list(dict.fromkeys([*plain, *shown.meanings]))


def _shown_report(found: FoundSplit, shown: ShownSplit, required: Iterable[Obligation]) -> SplitReport:
    variant = found.detail.variant
    return SplitReport(
        name=found.name,
        op=variant.op_type,
        domain=variant.domain,
        since_version=variant.since_version,
        location=found.location,
        axis=found.detail.shown.axis,
        input_name=found.input_name,
        input=shown.input,
        outputs=tuple(zip(found.output_names, shown.outputs, strict=False)),
        lengths=shown.lengths,
        obligations=tuple(map(str, required)),
    )


def _by_location(
    scopes: Iterable[Scope], types: Mapping[GraphPath, Mapping[str, ValueType]]
) -> dict[str, Mapping[str, ValueType]]:
    """The types of each graph by its location, the main graph first; of two graphs at one location, which happens
    where nodes have the same name, the second is counted.
    """
    if len(types) == 1:
        return {"main": types[MAIN]}
    found: dict[str, Mapping[str, ValueType]] = {}
    for scope in scopes:
        if scope.path not in types:
            continue
        location, count = scope.location, 1
        while location in found:
            count += 1
            location = f"{scope.location} ({count})"
        found[location] = types[scope.path]
    return found


def _bounds(
    main: Walk, naming: ShownNames, counted: Iterable[tuple[ValueType, int]]
) -> dict[str, tuple[int, int | None]]:
    shown = {dim for value, _ in counted for dim in (value.shape or ()) if isinstance(dim, Dim)}
    names = sorted({name for dim in shown for name in symbols_of(dim)})
    # A generated symbol is numbered anew when it is shown: its bounds are found under the number that it had inside.
    found = _met_by_equal_ones(main.facts) if main.state.task.declared_types else main.facts.bounds
    known = {name: bounds for name, bounds in found.items() if name not in naming.generated}
    for generated, bounds in found.items():
        shown_name = naming.shown_name(generated)
        if shown_name is not None:
            known[str(shown_name)] = bounds
    return {name: known.get(name, (0, None)) for name in names}


def _met_by_equal_ones(facts: Facts) -> dict[str, tuple[int, int | None]]:
    """The bounds of symbols; two that are required to be equal have the narrower ones of both."""
    found = dict(facts.bounds)
    for each in facts.obligations:
        names = [str(side) for side in (each.lhs, each.rhs) if isinstance(side, Dim) and side == symbol(str(side))]
        if each.relation != "==" or not names:
            continue
        sides = [found.get(name, (0, None)) for name in names]
        sides += [(side, side) for side in (each.lhs, each.rhs) if isinstance(side, int)]
        highs = [high for _, high in sides if high is not None]
        if len(sides) > 1:
            found |= dict.fromkeys(names, (max(low for low, _ in sides), min(highs) if highs else None))
    return found


def _unknown_operators(state: WalkState) -> list[Diagnostic]:
    found = []
    for label, count in state.record.unknown_operators.items():
        domain, _, op_type = label.rpartition("::")
        first = state.record.first_unknown[label]
        times = f" ({first})" if count == 1 else f" ({count} nodes, the first is {first})"
        is_plugin = domain == AI_ONNX
        what = f"ai.onnx has no operator {op_type}" if is_plugin else f"{label} has no schema and no function body"
        help = plugin_advice(op_type) if is_plugin else None
        text = f"{what}{times}, so the types of its outputs are unknown"
        if domain == EXTENSION:
            text = f"the layer {op_type} belongs to an extension{times}; of its outputs only the ports' types are known"
            help = "Write the shapes into the ports: read and save the model in OpenVINO with the extension added."
        found.append(diagnostic("SG303", text, "main", severity="warning", help=help))
    return found


def _completeness(
    state: WalkState, types: Mapping[GraphPath, Mapping[str, ValueType]], counted: Iterable[tuple[ValueType, int]]
) -> Completeness:
    dims = known = symbolic = unranked = 0
    for value, times in counted:
        if value.shape is None:
            unranked += times
            continue
        dims += times * len(value.shape)
        known += times * sum(1 for dim in value.shape if dim is not None)
        symbolic += times * sum(1 for dim in value.shape if isinstance(dim, Dim))
    unknown = tuple(state.record.unknown_operators)
    left_open = len(values_left_open(state, types)) if unknown else 0
    nodes = sum(len(scope.nodes) for scope in state.record.scopes)
    origin = first_unknown(state) if unranked else None
    return Completeness(dims, known, symbolic, unranked, nodes, unknown, left_open, origin)
