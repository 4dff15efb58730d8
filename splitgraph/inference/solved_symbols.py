"""Generated symbols that are known after all: the obligations of the model say what they equal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from splitgraph.dim import Dim, DimLike, Obligation, names_in, substitute_names, symbol, symbols_of


def solve(obligations: Iterable[Obligation], generated: Collection[str]) -> dict[str, DimLike]:
    """The values of generated symbols, by name, that hold in every run: `unk1 == past + seq` gives `past + seq` for
    unk1.

    A value may contain generated symbols that are solved themselves; `resolve` follows them.
    """
    solved: dict[str, DimLike] = {}
    for obligation in obligations:
        if obligation.relation != "==":
            continue
        difference = resolve(obligation.lhs - obligation.rhs, solved)
        found = None if isinstance(difference, int) else _solution(difference, generated)
        if found is not None:
            solved[found[0]] = found[1]
    return solved


def resolve(dim: DimLike, solved: Mapping[str, DimLike]) -> DimLike:
    """The dimension with the values of solved symbols put in; unchanged where that makes a divisor 0, or where it
    stands for a large expression.
    """
    while solved and not isinstance(dim, int) and not solved.keys().isdisjoint(names_in(dim)):
        try:
            dim = substitute_names(dim, solved)
        except ZeroDivisionError:
            break
    return dim


def _solution(difference: Dim, generated: Collection[str]) -> tuple[str, DimLike] | None:
    """A generated symbol and its value where the difference is 0: the newest symbol that is a term of its own. None
    without one.
    """
    names = [name for name in symbols_of(difference) if name in generated]
    for name in sorted(names, key=lambda name: (len(name), name), reverse=True):
        for sign in (1, -1):
            rest = difference - sign * symbol(name)
            if name not in symbols_of(rest):
                return name, -sign * rest
    return None
