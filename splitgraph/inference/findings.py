"""From what the walks found to the analysis: shown names of symbols, reports, bounds, and how complete it all is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.dim import Dim, DimLike, Facts, Obligation, substitute, symbol, symbols_of
from splitgraph.graph.scopes import MAIN, GraphPath, Scope
from splitgraph.inference.analysis import Analysis, Completeness, SplitReport
from splitgraph.inference.left_open import values_left_open
from splitgraph.inference.naming import Naming, tally
from splitgraph.inference.solving import resolve, solve
from splitgraph.inference.state import FoundSplit, State
from splitgraph.inference.walk import Walk
from splitgraph.value_type import UNKNOWN, ValueType


def build_analysis(state: State, main: Walk) -> Analysis:
    """The analysis of a walked model; `details` holds the shown types of every graph and what conversion needs."""
    solved = solve([each for each in main.facts.obligations if each not in state.declared_numbers], state.generated)
    naming = Naming(state.generated, state.reserved, solved)
    walked = {path: detail for path, detail in state.details.items() if path[:1] != ("call",) and path[:1] != ("F",)}
    walked.setdefault(main.path, main.detail)
    told_apart = {path: tally(detail.types.values()) for path, detail in walked.items()}
    for values in told_apart.values():
        for value, times in values:
            naming.count(value.shape or (), times)
    # What is required of a symbol is shown with it.
    naming.count([each.lhs for each in state.declared_numbers], 1)
    for split, times in tally([found.detail for found in state.reports]):
        naming.count(split.lengths, times)
    reported = {id(value): naming.value(value) for values in told_apart.values() for value, _ in values}
    types = {
        path: detail.types
        # As it is where all types are shown as they are: a copy would be as large as the graph.
        if all(reported[id(value)] is value for value, _ in told_apart[path])
        else {name: reported[id(value)] for name, value in detail.types.items()}
        for path, detail in walked.items()
    }
    counted = [(reported[id(value)], times) for values in told_apart.values() for value, times in values]
    shown: dict[int, ShownSplit] = {}
    splits = tuple([_shown_report(naming, found, shown) for found in state.reports])
    required_by = _requirements(state, naming, splits)
    return Analysis(
        model=state.model,
        splits=splits,
        diagnostics=(*state.diagnostics, *_unknown_operators(state)),
        types=types[main.path],
        graphs=_by_location(state.scopes, types),
        required_by=required_by,
        generated=naming.shown_names(),
        symbols=_bounds(main, naming, counted),
        opset=dict(state.imports),
        completeness=_completeness(state, types, counted),
        details=Details(state, types),
    )


class Details:
    """For conversion: every graph of the model, the state of the walks, and the shown types of each graph by path."""

    def __init__(self, state: State, types: Mapping[GraphPath, Mapping[str, ValueType]]) -> None:
        self.scopes = state.scopes
        self.graphs = state.details
        self.types = types


class ShownSplit(NamedTuple):
    """What repeated split nodes have in common, in shown names."""

    input: ValueType
    outputs: list[ValueType]
    lengths: tuple[DimLike | None, ...]
    meanings: list[str]


def _shown_split(naming: Naming, found: FoundSplit) -> ShownSplit:
    outputs = [naming.value(value) for value in found.outputs]
    outputs += [UNKNOWN] * (len(found.output_names) - len(outputs))
    lengths = tuple([naming.dim(length) for length in found.detail.lengths])
    named = {str(dim) for value in outputs for dim in (value.shape or ()) if isinstance(dim, Dim)}
    meanings = [f"{name} == {naming.meanings[name]}" for name in sorted(named & naming.meanings.keys())]
    return ShownSplit(naming.value(found.detail.data), outputs, lengths, meanings)


def _shown_report(naming: Naming, found: FoundSplit, done: dict[int, ShownSplit]) -> SplitReport:
    variant, split = found.detail.variant, found.detail.split
    shown = done.get(id(found.detail))
    if shown is None:
        shown = done[id(found.detail)] = _shown_split(naming, found)
    texts = [text for obligation in found.obligations if (text := _shown_obligation(naming, obligation)) is not None]
    return SplitReport(
        name=found.name,
        op=variant.op_type,
        domain=variant.domain,
        since_version=variant.since_version,
        location=found.location,
        axis=None if split is None else split.axis,
        input_name=found.input_name,
        input=shown.input,
        outputs=tuple(zip(found.output_names, shown.outputs, strict=False)),
        lengths=shown.lengths,
        obligations=tuple(dict.fromkeys([*texts, *shown.meanings])),
    )


def _shown_obligation(naming: Naming, obligation: Obligation) -> str | None:
    """The obligation in shown names; None when it speaks of a dimension that is not shown at all, or goes without
    saying because it holds for all sizes, as it does where both sides are shown alike.
    """
    if obligation not in naming.obligations:
        naming.obligations[obligation] = _show_obligation(naming, obligation)
    return naming.obligations[obligation]


def _show_obligation(naming: Naming, obligation: Obligation) -> str | None:
    lhs, rhs = resolve(obligation.lhs, naming.solved), resolve(obligation.rhs, naming.solved)
    known = Facts()
    if known.prove_eq(lhs, rhs) if obligation.relation == "==" else known.prove_ge(lhs, rhs):
        return None
    names = symbols_of(lhs) | symbols_of(rhs)
    values = {}
    for name in names & naming.generated:
        shown = naming.shown_name(name)
        if shown is None:
            return None
        values[name] = shown
    return str(Obligation(substitute(lhs, values), obligation.relation, substitute(rhs, values)))


def _requirements(state: State, naming: Naming, splits: Iterable[SplitReport]) -> dict[str, tuple[str, ...]]:
    """Everything that must hold of the symbols, as it is shown, with the locations that say so."""
    found: dict[str, dict[str, None]] = {}
    for obligation, location in state.requirements:
        text = _shown_obligation(naming, obligation)
        if text is not None:
            found.setdefault(text, {})[location] = None
    for split in splits:
        for text in split.obligations:
            found.setdefault(text, {})[split.location] = None
    for name, definition in state.definitions.items():
        meaning = None if definition is None else naming.dim(definition[0])
        if definition is not None and isinstance(meaning, Dim) and meaning != symbol(name):
            found.setdefault(str(Obligation(symbol(name), "==", meaning)), {})[definition[1]] = None
    for name in _known_broadcasts(state):
        a, b, location = state.broadcasts[name]
        shown, one, other = naming.shown_name(name), naming.dim(a), naming.dim(b)
        if shown is not None:
            # Equal, or one of them 1: the greater, but 0 where one is 0. Multiplied out it would be unreadable.
            text = f"{shown} == min(1, {one})*min(1, {other})*max({one}, {other})"
            found.setdefault(text, {})[location] = None
    for name, text in naming.meanings.items():
        found.setdefault(f"{name} == {text}", {})
    return {text: tuple(locations) for text, locations in found.items()}


def _known_broadcasts(state: State) -> list[str]:
    """The generated symbols that stand for the broadcast of dimensions that the author's symbols tell."""
    known: dict[str, None] = {}
    for name, (a, b, _) in state.broadcasts.items():
        if not (symbols_of(a) | symbols_of(b)) & state.generated - known.keys():
            known[name] = None
    return list(known)


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


def _bounds(main: Walk, naming: Naming, counted: Iterable[tuple[ValueType, int]]) -> dict[str, tuple[int, int | None]]:
    shown = {dim for value, _ in counted for dim in (value.shape or ()) if isinstance(dim, Dim)}
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


def _completeness(
    state: State, types: Mapping[GraphPath, Mapping[str, ValueType]], counted: Iterable[tuple[ValueType, int]]
) -> Completeness:
    dims = known = symbolic = unranked = 0
    for value, times in counted:
        if value.shape is None:
            unranked += times
            continue
        dims += times * len(value.shape)
        known += times * sum(1 for dim in value.shape if dim is not None)
        symbolic += times * sum(1 for dim in value.shape if isinstance(dim, Dim))
    unknown = tuple(state.unknown_operators)
    left_open = len(values_left_open(state, types)) if unknown else 0
    return Completeness(dims, known, symbolic, unranked, len(state.model.graph.node), unknown, left_open)
