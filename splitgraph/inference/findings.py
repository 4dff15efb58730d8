"""From what the walks found to the analysis: shown names of symbols, reports, bounds, and how complete it all is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.dim import Dim, Obligation, substitute, symbols_of
from splitgraph.graph.names import dimension_names
from splitgraph.graph.scopes import GraphPath
from splitgraph.inference.analysis import Analysis, Completeness, SplitReport
from splitgraph.inference.naming import Naming
from splitgraph.inference.state import State
from splitgraph.inference.walk import Walk
from splitgraph.value_type import ValueType


def build_analysis(state: State, main: Walk) -> Analysis:
    """The analysis of a walked model; `details` holds the shown types of every graph and what conversion needs."""
    naming = Naming(state.generated, dimension_names(state.model))
    walked = {path: detail for path, detail in state.details.items() if path[:1] != ("call",) and path[:1] != ("F",)}
    walked.setdefault(main.path, main.detail)
    for detail in walked.values():
        for value in detail.types.values():
            naming.count(value)
    for report, _ in state.reports:
        for length in report.lengths:
            if isinstance(length, Dim):
                naming.count_dim(length)
    types = {
        path: {name: naming.value(value) for name, value in detail.types.items()} for path, detail in walked.items()
    }
    splits = tuple(_shown_report(naming, report, obligations) for report, obligations in state.reports)
    return Analysis(
        model=state.model,
        splits=splits,
        diagnostics=(*state.diagnostics, *_unknown_operators(state)),
        types=types[main.path],
        symbols=_bounds(main, naming, types),
        opset=dict(state.imports),
        completeness=_completeness(state, types),
        details=Details(state, types),
    )


class Details:
    """For conversion: the state of the walks, and the shown types of every graph by path."""

    def __init__(self, state: State, types: Mapping[GraphPath, Mapping[str, ValueType]]) -> None:
        self.graphs = state.details
        self.types = types


def _shown_report(naming: Naming, report: SplitReport, obligations: tuple[Obligation, ...]) -> SplitReport:
    outputs = tuple((name, naming.value(value)) for name, value in report.outputs)
    lengths = tuple(naming.dim(length) for length in report.lengths)
    shown = [text for obligation in obligations if (text := _shown_obligation(naming, obligation)) is not None]
    named = {str(dim) for _, value in outputs for dim in (value.shape or ()) if isinstance(dim, Dim)}
    shown += [f"{name} == {naming.meanings[name]}" for name in sorted(named & naming.meanings.keys())]
    return replace(
        report,
        input=naming.value(report.input),
        outputs=outputs,
        lengths=lengths,
        obligations=tuple(dict.fromkeys(shown)),
    )


def _shown_obligation(naming: Naming, obligation: Obligation) -> str | None:
    """The obligation in shown names; None when it speaks of a dimension that is not shown at all."""
    names = symbols_of(obligation.lhs) | symbols_of(obligation.rhs)
    values = {}
    for name in names & naming.generated:
        shown = naming.shown_name(name)
        if shown is None:
            return None
        values[name] = shown
    if not values:
        return str(obligation)
    return str(Obligation(substitute(obligation.lhs, values), obligation.relation, substitute(obligation.rhs, values)))


def _bounds(
    main: Walk, naming: Naming, types: Mapping[GraphPath, Mapping[str, ValueType]]
) -> dict[str, tuple[int, int | None]]:
    shown = {
        dim
        for graph in types.values()
        for value in graph.values()
        for dim in (value.shape or ())
        if isinstance(dim, Dim)
    }
    names = sorted({name for dim in shown for name in symbols_of(dim)})
    # A generated symbol is numbered anew when it is shown: its bounds are found under the number that it had inside.
    known = {name: bounds for name, bounds in main.facts.bounds.items() if name not in naming.generated}
    for generated, bounds in main.facts.bounds.items():
        shown_name = naming.shown_name(generated)
        if shown_name is not None:
            known[str(shown_name)] = bounds
    return {name: known.get(name, (0, None)) for name in names}


def _unknown_operators(state: State) -> list[Diagnostic]:
    found = []
    for label, count in state.unknown_operators.items():
        times = "" if count == 1 else f" ({count} nodes)"
        found.append(
            diagnostic(
                "SG303", f"{label} is an operator without schema or function body{times}", "main", severity="info"
            )
        )
    return found


def _completeness(state: State, types: Mapping[GraphPath, Mapping[str, ValueType]]) -> Completeness:
    dims = known = symbolic = unranked = 0
    for graph in types.values():
        for value in graph.values():
            if value.shape is None:
                unranked += 1
                continue
            dims += len(value.shape)
            known += sum(1 for dim in value.shape if dim is not None)
            symbolic += sum(1 for dim in value.shape if isinstance(dim, Dim))
    return Completeness(dims, known, symbolic, unranked, len(state.model.graph.node), tuple(state.unknown_operators))
