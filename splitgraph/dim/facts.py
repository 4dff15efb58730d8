"""What is known of symbols: bounds, obligations, and the proofs that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import gcd
from typing import Literal
from weakref import proxy

from splitgraph.dim.arithmetic import Dim, DimLike, symbol
from splitgraph.dim.atoms import (
    SYMBOL,
    Atom,
    Interval,
    Terms,
    always_exists,
    atoms_by_level,
    coefficients_of,
    is_deep,
    level_of,
)
from splitgraph.dim.bounds import Coefficients, atom_interval, interval, lower_bound, termwise_bound
from splitgraph.dim.congruence import Congruence, congruence_of, simplified
from splitgraph.dim.counterexamples import Counterexamples
from splitgraph.dim.obligation import Obligation
from splitgraph.dim.propagation import Contradiction, propagate, round_to_congruences
from splitgraph.dim.records import Record, Residue, moduli_of
from splitgraph.dim.values import substitute, symbols_of

Answer = Literal["proved", "assumed", "contradiction"]

# Obligations that one proof may lean on, nearest first: the search grows with their number. To find them, some more are
# looked at, as one obligation stands under each of its symbols.
_MOST_ASSUMPTIONS = 16
_MOST_LOOKED_AT = 256

# Obligations of more terms tell the bounds of their symbols once, when they are required, and follow from themselves;
# nothing else leans on them: to look at each again for each of its symbols takes the square of their length.
_WIDEST_ASSUMPTION = 64

# Obligations that are looked at again when the bounds of their symbols move.
_MOST_REVISITED = 64

# Equalities of more terms are not solved for a symbol: what it stands for would grow with each.
_MOST_TERMS = 8


class Facts:
    """What is known of symbols: that they are integers >= 0, their bounds, and the obligations assumed so far.

    bounds: (minimum, maximum or None) of symbols that are known to have them.
    """

    def __init__(self, bounds: Mapping[str, tuple[int, int | None]] = {}) -> None:
        self._parent: Facts | None = None
        self._bounds = {name: (max(low, 0), high) for name, (low, high) in bounds.items()}
        self._records: list[Record] = []
        self._records_of: dict[str, list[Record]] = {}  # by symbol, without those that are too wide to lean on
        self._in_wide_records: set[str] = set()
        # Terms that are known to be at least a number.
        self._least: dict[Terms, int] = {}
        self._residues: dict[Terms, Residue] = {}
        # Under one symbol of each, the one with the fewest, the terms whose remainder is known.
        self._residues_under: dict[str, list[Terms]] = {}
        # Symbols that equalities express through others, and by symbol those whose solution speaks of it.
        self._solved: dict[str, DimLike] = {}
        self._solved_with: dict[str, set[str]] = {}
        # Grows with each answer that might be another one if more were known: a proof stays one, its absence may not.
        self.open_questions = 0
        self._version = 0
        self._cached_version = 0
        self._intervals: dict[Atom, Interval] = {}
        self._plainer: dict[tuple[Dim, bool], DimLike] = {}
        self._positive: dict[Dim, bool] = {}
        self._counterexamples: Counterexamples | None = None

    def child(self) -> Facts:
        """Facts that see these and add their own, for a scope that may not be executed."""
        made = Facts()
        made._parent = self
        return made

    @property
    def bounds(self) -> Mapping[str, tuple[int, int | None]]:
        """(minimum, maximum or None) of each symbol of which more is known than that it is >= 0."""
        names = {name for facts in self._chain() for name in facts._bounds}
        known = {name: self.bound(name) for name in sorted(names)}
        return {name: bound for name, bound in known.items() if bound != (0, None)}

    @property
    def obligations(self) -> tuple[Obligation, ...]:
        """Everything that was assumed, in the order of asking, the parent's first."""
        return tuple(record.obligation for facts in reversed([*self._chain()]) for record in facts._records)

    @property
    def version(self) -> int:
        """A number that grows whenever more is known than before, in this scope or an enclosing one."""
        # Asked for at every node: written out rather than over _chain.
        version, facts = self._version, self._parent
        while facts is not None:
            version += facts._version
            facts = facts._parent
        return version

    def require(self, obligation: Obligation) -> Answer:
        """Take the obligation for granted from here on, unless it follows already or cannot hold.

        "proved": it follows; nothing is recorded. "contradiction": no values of the symbols meet it and what is known,
        or one side has no value, as a divisor is 0 by what is known; nothing is recorded. "assumed": it was recorded.
        """
        difference = obligation.lhs - obligation.rhs
        equal = obligation.relation == "=="
        if isinstance(difference, int):
            return "proved" if difference == 0 or (difference > 0 and not equal) else "contradiction"
        try:
            return self._require(obligation, difference, equal)
        except ZeroDivisionError:
            return "contradiction"

    def _require(self, obligation: Obligation, difference: Dim, equal: bool) -> Answer:
        if self._is_zero(difference) if equal else self._is_nonnegative(difference):
            return "proved"
        if self._is_never_zero(difference) if equal else self._is_nonnegative(-1 - difference):
            return "contradiction"
        congruence = congruence_of(difference) if equal else None
        return self._record(Record(obligation, difference, symbols_of(difference), congruence))

    def range_of(self, d: DimLike) -> Interval:
        """(lowest, highest) value that the dim can take; None: unbounded, or not known."""
        self.open_questions += not isinstance(d, int)
        try:
            return self._range_of(d)
        except ZeroDivisionError:
            return None, None

    def prove_ge(self, a: DimLike, b: DimLike) -> bool:
        """True when a >= b for all values that the symbols can have; False when there is no proof."""
        difference = a - b
        if isinstance(difference, int):
            return difference >= 0
        return self._proves(self._is_nonnegative, difference)

    def prove_eq(self, a: DimLike, b: DimLike) -> bool:
        """True when a == b for all values that the symbols can have; False when there is no proof."""
        difference = a - b
        if isinstance(difference, int):
            return difference == 0
        return self._proves(self._is_zero, difference)

    def prove_ne(self, a: DimLike, b: DimLike) -> bool:
        """True when a == b for no values that the symbols can have; False when there is no proof."""
        difference = a - b
        if isinstance(difference, int):
            return difference != 0
        return self._proves(self._is_never_zero, difference)

    def prove_divisible(self, d: DimLike, k: int) -> bool:
        """True when k > 0 divides d for all values that the symbols can have; False when there is no proof."""
        return self.prove_eq(d % k, 0)

    def simplify(self, d: DimLike, *, fixed: bool = False) -> DimLike:
        """An equal, plainer dim, by what is known: exact quotients (with N % 2 == 0, `2*(N//2)` is N), decided maxima.

        fixed: also put the number in place of a symbol that can have only one value.
        """
        self.open_questions += not isinstance(d, int)
        try:
            return self._simplified(d, fixed=fixed)
        except ZeroDivisionError:
            return d

    def _proves(self, holds: Callable[[Dim], bool], difference: Dim) -> bool:
        try:
            proved = holds(difference)
        except ZeroDivisionError:
            # A divisor is 0 by what is known, so that there is no value to prove anything of.
            proved = False
        self.open_questions += not proved
        return proved

    def _range_of(self, d: DimLike) -> Interval:
        simple = self._simplified(d)
        if isinstance(simple, int) or not self._knows_of(symbols_of(simple)):
            return (simple, simple) if isinstance(simple, int) else simple.interval
        return interval(simple, self.interval_of)

    def _is_nonnegative(self, difference: DimLike) -> bool:
        if isinstance(difference, int):
            return difference >= 0
        if not level_of(difference):
            # Of symbols alone: what holds whatever they are is seen at once.
            low = difference.lowest
            if low is not None and low >= 0:
                return True
        if self._was_required(difference):
            return True
        if always_exists(difference):
            # Most of what holds follows from the bounds of its terms, which takes less than to look for a point where
            # it fails.
            low = termwise_bound(coefficients_of(difference), self.interval_of)
            if low is not None and low >= 0:
                return True
        if any(value < 0 for value in self._values(difference)):
            return False
        simple = self._simplified(difference)
        if self._is_positive(simple):
            return True
        solved = self.solution(simple)
        return solved is not simple and self._is_positive(self._simplified(solved))

    def _is_zero(self, difference: Dim) -> bool:
        if any(self._values(difference)):
            return False
        simple = self._simplified(self.solution(difference), fixed=True)
        if isinstance(simple, int):
            return simple == 0
        return self._is_nonnegative(difference) and self._is_nonnegative(-difference)

    def _is_never_zero(self, difference: Dim) -> bool:
        if not all(self._values(difference)):
            return False
        simple = self._simplified(self.solution(difference), fixed=True)
        if isinstance(simple, int):
            return simple != 0
        if simple.const % gcd(*(c for _, c in simple.terms)):
            return True
        for modulus in moduli_of(simple, self._residues_of(symbols_of(simple))):
            remainder = self._simplified(simple % modulus)
            if isinstance(remainder, int) and remainder:
                return True
        return any(self._is_nonnegative(d - 1) or self._is_nonnegative(-1 - d) for d in (difference, simple))

    def _simplified(self, d: DimLike, *, fixed: bool = False) -> DimLike:
        if isinstance(d, int):
            return d
        self._forget_if_outdated()
        known = self._plainer.get((d, fixed))
        if known is None:
            names = symbols_of(d)
            known = self._freshly_simplified(d, names, fixed) if self._knows_of(names) else d
            self._plainer[(d, fixed)] = known
        return known

    # What propagation asks for -----------------------------------------------------------------------------------

    def bound(self, name: str) -> tuple[int, int | None]:
        """(minimum, maximum or None) of a symbol."""
        if self._parent is None:
            return self._bounds.get(name, (0, None))
        low, high = 0, None
        for facts in self._chain():
            known = facts._bounds.get(name, (0, None))
            low = max(low, known[0])
            high = known[1] if high is None else high if known[1] is None else min(high, known[1])
        return low, high

    def tighten(self, name: str, low: int, high: int | None) -> None:
        """Take narrower bounds of a symbol for granted."""
        self._bounds[name] = (low, high)
        self._version += 1

    def interval_of(self, atom: Atom) -> Interval:
        """The interval of an atom under the bounds of the symbols."""
        self._forget_if_outdated()
        if atom not in self._intervals:
            for part in [*atoms_by_level(atom.args), atom]:
                if part.kind == SYMBOL:
                    self._intervals[part] = self.bound(part.name)
                elif part not in self._intervals:
                    self._intervals[part] = atom_interval(
                        part.kind, [interval(arg, self._intervals.__getitem__) for arg in part.args]
                    )
        return self._intervals[atom]

    def congruences_of(self, name: str) -> Sequence[Congruence]:
        """Remainders that are known of polynomials of the symbol alone."""
        return self._congruences([name])

    def inequalities_of(self, name: str) -> Iterable[Dim]:
        """Polynomials with the symbol, and few others, that are known to be >= 0."""
        for record in self._records_with(name):
            yield from record.inequalities

    # -------------------------------------------------------------------------------------------------------------

    def _record(self, record: Record) -> Answer:
        """Add the record unless it contradicts the others; all that follows is tried on a child first."""
        if record.congruence is not None and self._with_residue(record) is None:
            return "contradiction"
        trial = self.child()
        trial._add(record)
        try:
            for name in record.names if record.congruence else ():
                round_to_congruences(name, trial)
            propagate(record.inequalities, trial)
        except Contradiction:
            return "contradiction"
        moved = (other for name in trial._bounds for other in trial._records_with(name))
        touched = {id(r): r for r in [record, *islice(moved, _MOST_REVISITED)]}
        if any(trial._is_excluded(r.difference, r.obligation.relation == "==") for r in touched.values()):
            return "contradiction"
        self._add(record)
        self._bounds.update(trial._bounds)
        return "assumed"

    def _freshly_simplified(self, d: Dim, names: Iterable[str], fixed: bool) -> DimLike:
        congruences = self._congruences(names)
        if congruences or any(atom.kind != SYMBOL for monomial, _ in d.terms for atom in monomial):
            return simplified(d, congruences, self.interval_of, fixed)
        bounds = {name: self.bound(name) for name in names} if fixed else {}
        return substitute(d, {name: low for name, (low, high) in bounds.items() if low == high})

    def _forget_if_outdated(self) -> None:
        version = self.version
        if version != self._cached_version:
            self._intervals.clear()
            self._plainer.clear()
            self._positive.clear()
            self._counterexamples = None
            self._cached_version = version

    def _add(self, record: Record) -> None:
        self._records.append(record)
        if record.obligation.relation == "==":
            self._solve(record.difference)
        if record.congruence is not None:
            self._add_residue(record)
        self._version += 1
        if record.is_bound:
            return
        for polynomial in record.inequalities:
            known = self._least.get(polynomial.terms, -polynomial.const)
            self._least[polynomial.terms] = max(known, -polynomial.const)
        if len(record.difference.terms) > _WIDEST_ASSUMPTION:
            self._in_wide_records |= record.names
            return
        for name in record.names:
            self._records_of.setdefault(name, []).append(record)

    def _add_residue(self, record: Record) -> None:
        residue = self._with_residue(record)
        assert residue is not None
        terms = residue.congruence.terms
        if terms not in self._residues:
            under = min(sorted(residue.names), key=lambda name: len(self._residues_under.get(name, ())))
            self._residues_under.setdefault(under, []).append(terms)
        self._residues[terms] = residue

    def _with_residue(self, record: Record) -> Residue | None:
        """The remainder of the record together with what is known already; None when they contradict each other."""
        assert record.congruence is not None
        found = Residue(record.congruence, symbols_of(record.congruence.value), (record.congruence.modulus,))
        for facts in self._chain():
            known = facts._residues.get(record.congruence.terms)
            if known is not None:
                # A child's was put together with its parent's when it was made, but the parent may have learnt since.
                both = found.and_also(known)
                if both is None:
                    return None
                found = both
        return found

    def _solve(self, difference: Dim) -> None:
        """Note a symbol that `difference == 0` expresses through others."""
        known = self.solution(difference)
        for monomial, coefficient in known.terms if isinstance(known, Dim) and len(known.terms) < _MOST_TERMS else ():
            if len(monomial) != 1 or monomial[0].kind != SYMBOL or abs(coefficient) != 1:
                continue
            name = monomial[0].name
            value = (known - coefficient * symbol(name)) * -coefficient
            if name not in symbols_of(value) and not is_deep(value):
                for other in self._solved_with.pop(name, ()):
                    try:
                        self._note_solution(other, substitute(self._solved[other], {name: value}))
                    except ZeroDivisionError:
                        del self._solved[other]
                self._note_solution(name, value)
                return

    def _note_solution(self, name: str, value: DimLike) -> None:
        self._solved[name] = value
        for other in symbols_of(value):
            self._solved_with.setdefault(other, set()).add(name)

    def solution(self, d: DimLike) -> DimLike:
        """The dim with the symbols that equalities express through others put in terms of these."""
        for facts in [facts for facts in reversed([*self._chain()]) if facts._solved]:
            found = {name: facts._solved[name] for name in symbols_of(d) if name in facts._solved}
            d = substitute(d, found) if found else d
        return d

    def solution_of(self, name: str) -> DimLike | None:
        """What a symbol is by an equality; None where none says it."""
        return next((facts._solved[name] for facts in self._chain() if name in facts._solved), None)

    def _values(self, d: Dim) -> Iterator[int]:
        """Some values that the dim can have: what fails with one of them has no proof."""
        self._forget_if_outdated()
        if self._counterexamples is None:
            met = [(record.obligation, record.difference) for facts in self._chain() for record in facts._records]
            # Weakly, for these facts hold them: models must not wait for the collector of cycles.
            self._counterexamples = Counterexamples(proxy(self), met)
        return self._counterexamples.values(d)

    def _is_positive(self, simple: DimLike) -> bool:
        if isinstance(simple, int):
            return simple >= 0
        low = simple.lowest
        if low is not None and low >= 0:
            return True
        self._forget_if_outdated()
        known = self._positive.get(simple)
        if known is None:
            known = self._positive[simple] = self._is_positive_by_facts(simple)
        return known

    def _is_positive_by_facts(self, simple: Dim) -> bool:
        names = symbols_of(simple)
        if not self._knows_of(names):
            return False
        if self._was_required(simple):
            return True
        coefficients = coefficients_of(simple)
        low = termwise_bound(coefficients, self.interval_of)
        if low is None or low < 0:
            low = lower_bound(coefficients, self.interval_of, self._assumptions(names), 0)
        return low is not None and low >= 0

    def _was_required(self, difference: DimLike) -> bool:
        """True when an obligation says by itself that the difference is >= 0."""
        if isinstance(difference, int):
            return difference >= 0
        terms, const = difference.terms, difference.const
        return any(facts._least and facts._least.get(terms, -const - 1) >= -const for facts in self._chain())

    def _is_excluded(self, difference: Dim, equal: bool) -> bool:
        """True when the bounds alone leave no way for the difference to be 0, or >= 0."""
        low, high = self._range_of(self._simplified(difference, fixed=True))
        return (high is not None and high < 0) or (equal and low is not None and low > 0)

    def _chain(self) -> Iterator[Facts]:
        facts: Facts | None = self
        while facts is not None:
            yield facts
            facts = facts._parent

    def _records_with(self, name: str) -> Iterator[Record]:
        for facts in self._chain():
            yield from facts._records_of.get(name, ())

    def _residues_of(self, names: Iterable[str]) -> list[Residue]:
        """What is known of the remainders of polynomials of these symbols and no others, in one order."""
        found: dict[Terms, Residue] = {}
        among = frozenset(names)
        for facts in self._chain():
            if not facts._residues:
                continue
            for name in sorted(among & facts._residues_under.keys()):
                for terms in facts._residues_under[name]:
                    residue = facts._residues[terms]
                    if terms not in found and residue.names <= among:
                        found[terms] = residue
        return list(found.values())

    def _congruences(self, names: Iterable[str]) -> list[Congruence]:
        return [residue.congruence for residue in self._residues_of(names)]

    def _knows_of(self, names: Iterable[str]) -> bool:
        return any(
            name in facts._bounds or name in facts._records_of or name in facts._in_wide_records
            for facts in self._chain()
            for name in names
        )

    def _assumptions(self, names: Iterable[str]) -> list[Coefficients]:
        """Polynomials known to be >= 0 that share symbols with the names, or with such polynomials in turn."""
        found: dict[int, Record] = {}
        waiting, seen = sorted(names), set(names)
        while waiting and len(found) < _MOST_ASSUMPTIONS:
            nearest = list(islice((r for name in waiting for r in self._records_with(name)), _MOST_LOOKED_AT))
            found.update({id(record): record for record in nearest})
            waiting = sorted({name for record in nearest for name in record.names} - seen)
            seen.update(waiting)
        records = list(found.values())[:_MOST_ASSUMPTIONS]
        return [coefficients_of(polynomial) for record in records for polynomial in record.inequalities]
