"""Facts about symbols: bounds, obligations, and proofs from them.

Every question is reduced to one: does `e >= 0` follow? It follows if no integers satisfy the facts together with
`e <= -1` (`linear_systems`, `integer_systems`). `e == 0` is two such questions; `e != 0` is the question with `e == 0`
added; facts contradict each other if no integers satisfy them. Plain intervals are tried first, because they are quick.

The answer depends on what is known, never on names, on the order of facts or on earlier questions: only facts connected
with the question take part, all of one distance or none, and limits are counted for one question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from functools import lru_cache
from itertools import islice
from typing import Literal

from splitgraph.dim.arithmetic import Dim, DimLike, symbol
from splitgraph.dim.atoms import SYMBOL, Atom, Interval, Terms, always_exists, coefficients_of, is_deep, is_linear
from splitgraph.dim.bounds import (
    Bound,
    SymbolBounds,
    both,
    bounds_given,
    interval,
    interval_under,
    narrowed,
    termwise_bound,
)
from splitgraph.dim.linear_systems import LinearSystem, TooLarge, is_nonnegative
from splitgraph.dim.obligation import Fact, Obligation
from splitgraph.dim.operations import names_in, substitute_names, symbols_of
from splitgraph.dim.simplification import simplified

Answer = Literal["proved", "assumed", "contradiction"]

# The most facts for one question. A symbol with more facts than _MOST_OF_ONE connects no others: a symbol that the
# whole model shares, such as that of the batch, does not draw in all facts of the model.
_MOST_FACTS = 24
_MOST_OF_ONE = 8
# If a fact has more symbols, the shown bounds of its symbols come from intervals alone: a system for each symbol would
# take most of the time, and a relation of many symbols hardly bounds one of them.
_MOST_NEIGHBOURS = 8
# Facts with more terms only bound their symbols; questions do not use them.
_WIDEST_FACT = 64
# Questions that are remembered.
_REMEMBERED = 8192
# Equalities with more terms are not solved for a symbol: its solution would grow with each.
_MOST_TERMS = 8


class _Questions:
    """Counts answers that might change if more were known."""

    __slots__ = ("open",)

    def __init__(self) -> None:
        self.open = 0


class Facts:
    """Facts about symbols: they are integers >= 0, have bounds, and meet the obligations assumed so far.

    bounds: (minimum, maximum or None) of symbols with known bounds.
    """

    def __init__(self, bounds: Mapping[str, tuple[int, int | None]] = {}) -> None:
        self._parent: Facts | None = None
        self._bounds = SymbolBounds({name: (max(low, 0), high) for name, (low, high) in bounds.items()}, None)
        self._obligations: list[Obligation] = []
        # Symbols of the facts; facts by each name in them, of a symbol or a large atom; and each under one name, that
        # with the fewest.
        self._symbols: set[str] = set()
        self._of: dict[str, list[Fact]] = {}
        self._under: dict[str, list[Fact]] = {}
        # Terms that are known to be at least a number, as a fact of any width says.
        self._least: dict[Terms, int] = {}
        # Solutions: symbols that equalities express through others. And for each symbol, the symbols whose solution
        # contains it.
        self._solved: dict[str, DimLike] = {}
        self._solved_with: dict[str, set[str]] = {}
        self._questions = _Questions()
        self._version = 0
        self._cached_version = 0
        self._intervals: dict[Atom, Interval] = {}
        self._first_intervals: dict[Atom, Interval] = {}
        self._impossible: dict[tuple[Dim, bool], bool] = {}
        self._ranges: dict[Dim, Interval] = {}
        self._known_bounds: dict[str, Bound] = {}
        # By symbols, the facts that are connected with them.
        self._further: dict[frozenset[str], Mapping[Fact, None]] = {}
        self._plainer: dict[tuple[Dim, bool], DimLike] = {}

    def child(self) -> Facts:
        """New facts on top of these, for a scope that may not run."""
        child = Facts()
        child._parent = self
        child._bounds = SymbolBounds({}, self._bounds)
        child._questions = self._questions
        return child

    @property
    def open_questions(self) -> int:
        """The number of answers so far that might change if more were known: a proof stays, but a missing proof may be
        found later. Answers of a child count too, because they use these facts.
        """
        return self._questions.open

    def enclosing(self) -> Iterator[Facts]:
        """Return the facts around these, from the inside out."""
        return islice(self._chain(), 1, None)

    @property
    def bounds(self) -> Mapping[str, tuple[int, int | None]]:
        """(minimum, maximum or None) of each symbol with other bounds than >= 0."""
        names = {name for facts in self._chain() for name in (facts._bounds.names() | facts._symbols)}
        known = {name: self._shown_bound(name) for name in sorted(names)}
        return {name: bound for name, bound in known.items() if bound != (0, None)}

    @property
    def obligations(self) -> tuple[Obligation, ...]:
        """All assumed obligations, in order, the parent's first."""
        return tuple(obligation for facts in reversed([*self._chain()]) for obligation in facts._obligations)

    @property
    def version(self) -> int:
        """A number that grows whenever more is known than before, in this scope or an enclosing one."""
        # Asked for at every node: written out rather than over _chain.
        version, facts = self._version, self._parent
        while facts is not None:
            version += facts._version
            facts = facts._parent
        return version

    # Questions -------------------------------------------------------------------------------------------------------

    def require(self, obligation: Obligation) -> Answer:
        """Assume an obligation from here on, unless it follows already or cannot hold.

        "proved": it follows; no obligation is added. "contradiction": no values of the symbols meet it and what is
        known, or one side has no value, as a divisor is 0 by what is known; nothing is recorded. "assumed": it is one
        of the obligations from here on.
        """
        difference = obligation.lhs - obligation.rhs
        equal = obligation.relation == "=="
        if isinstance(difference, int):
            return "proved" if difference == 0 or (difference > 0 and not equal) else "contradiction"
        fact = Fact(difference, equal)
        if all(map(self._is_plain, fact.sides)):
            return "proved"
        if not equal and always_exists(difference) and is_nonnegative(difference):
            # For any symbols: to keep it would make later questions longer, and say nothing that they do not find.
            return "proved"
        # Everything follows from contradictory facts, so that this question comes first.
        if self._cannot_be(difference, is_equality=equal):
            return "contradiction"
        if all(map(self._is_nonnegative, fact.sides)):
            # A fact that follows may still help where a proof is long, and the order of the facts must not decide which
            # facts are kept. If the difference may have no value, its proof does not say that it has one.
            if always_exists(difference):
                self._record(fact)
            return "proved"
        try:
            solved = self._solved_form(difference) if equal else 0
        except ZeroDivisionError:
            return "contradiction"
        self._obligations.append(obligation)
        self._record(fact)
        self._note_equality(solved)
        # What a child takes for granted may be a contradiction with more known; the version of its parent stays.
        self._questions.open += self._parent is not None
        return "assumed"

    def range_of(self, d: DimLike) -> Interval:
        """Return (lowest, highest) value that the dim can take; None: unbounded, or not known."""
        self._questions.open += not isinstance(d, int)
        return (d, d) if isinstance(d, int) else self._range_of(d)

    def prove_ge(self, a: DimLike, b: DimLike) -> bool:
        """Return True when a >= b for all values that the symbols can have; False when there is no proof."""
        difference = a - b
        if isinstance(difference, int):
            return difference >= 0
        return self._counted(self._is_nonnegative(difference))

    def prove_eq(self, a: DimLike, b: DimLike) -> bool:
        """Return True when a == b for all values that the symbols can have; False when there is no proof."""
        difference = a - b
        if isinstance(difference, int):
            return difference == 0
        return self._counted(self._is_nonnegative(difference) and self._is_nonnegative(-difference))

    def prove_ne(self, a: DimLike, b: DimLike) -> bool:
        """Return True when a == b for no values that the symbols can have; False when there is no proof."""
        difference = a - b
        if isinstance(difference, int):
            return difference != 0
        return self._counted(self._cannot_be(difference, is_equality=True) and not self._has_no_value(difference))

    def prove_divisible(self, d: DimLike, k: int) -> bool:
        """Return True when k > 0 divides d for all values that the symbols can have; False when there is no proof."""
        return self.prove_eq(d % k, 0)

    def simplify(self, d: DimLike, *, fixed: bool = False) -> DimLike:
        """Return an equal, simpler dim by these facts: exact quotients (with N % 2 == 0, `2*(N//2)` is N) and decided
        maxima.

        fixed: also replace a symbol that can have only one value by the number.
        """
        if isinstance(d, int):
            return d
        self._questions.open += 1
        self._forget_if_outdated()
        known = self._plainer.get((d, fixed))
        if known is None:
            try:
                known = self._simplified(d, fixed)
            except ZeroDivisionError:
                # A divisor is 0 by what is known.
                known = d
            self._plainer[(d, fixed)] = known
        return known

    def solution(self, d: DimLike) -> DimLike:
        """Return the dim with symbols replaced that equalities express through others.

        A dim with a symbol in a divisor is returned unchanged.
        """
        self._questions.open += not isinstance(d, int)
        return self._solved_form(d)

    def _solved_form(self, d: DimLike) -> DimLike:
        if not always_exists(d):
            # A divisor is positive if it has a value; its solution need not be written as a positive value.
            return d
        for facts in [facts for facts in reversed([*self._chain()]) if facts._solved]:
            solutions = {name: facts._solved[name] for name in names_in(d) if name in facts._solved}
            d = substitute_names(d, solutions) if solutions else d
        return d

    def bound(self, name: str) -> tuple[int, int | None]:
        """Return (minimum, maximum or None) of a symbol, from each fact about it by itself."""
        self._forget_if_outdated()
        bound = self._bounds.bound(name)
        for fact in self._few_of(name):
            for polynomial in fact.sides:
                for one, given in bounds_given(polynomial, self._first_interval_of):
                    bound = narrowed(bound, given) if one == name else bound
        return bound

    def tighten(self, name: str, low: int, high: int | None) -> None:
        """Assume narrower bounds of a symbol."""
        self._bounds.declare(name, (low, high))
        self._version += 1

    # How they are decided --------------------------------------------------------------------------------------------

    def _counted(self, is_proved: bool) -> bool:
        self._questions.open += not is_proved
        return is_proved

    def _is_nonnegative(self, difference: DimLike) -> bool:
        if isinstance(difference, int):
            return difference >= 0
        if self._is_plain(difference):
            return True
        return self._cannot_be(-1 - difference, is_equality=False) and not self._has_no_value(difference)

    def _is_plain(self, difference: Dim) -> bool:
        """Return True when the difference is >= 0 by the intervals of its terms, or by a single fact that says so."""
        low = termwise_bound(coefficients_of(difference), self.interval_of)
        if low is not None and low >= 0:
            return True
        terms, const = difference.terms, difference.const
        return any(facts._least and facts._least.get(terms, -const - 1) >= -const for facts in self._chain())

    def _cannot_be(self, difference: DimLike, *, is_equality: bool) -> bool:
        """Return True if `difference == 0`, or `difference >= 0`, contradicts what is known."""
        if isinstance(difference, int):
            return difference != 0 if is_equality else difference < 0
        self._forget_if_outdated()
        claim = Fact(difference, is_equality)
        known = self._impossible.get(claim)
        if known is None:
            known = self._impossible[claim] = self._is_impossible(claim)
        return known

    def _is_impossible(self, claim: Fact) -> bool:
        difference = claim.difference
        may_be_alone = claim.is_equality or not is_linear(difference)
        if not may_be_alone:
            # Without facts, all terms reach their largest values together.
            low = termwise_bound(coefficients_of(difference, -1), self.interval_of)
            if low is not None and low > 0:
                return True
        facts: list[Fact] = []
        for facts in self._connected(names_in(difference)):
            if (facts or may_be_alone) and self._have_no_integers(facts, claim):
                return True
        together = [claim, *facts]
        if not any(len(monomial) > 1 for fact in together for monomial, _ in fact.difference.terms):
            return False
        # As one more fact, the claim bounds factors as every fact does. So the products do not depend on which of
        # several facts was told last.
        supposed = self.child()
        supposed._record(claim)
        return supposed._have_no_integers(together)

    def _has_no_value(self, d: DimLike) -> bool:
        """Return True if a divisor is known to be 0, so that the value does not exist and nothing can be proved about
        it.
        """
        if isinstance(d, int) or always_exists(d):
            return False
        return any(self._have_no_integers(facts, defined=d) for facts in self._connected(names_in(d)))

    def _have_no_integers(self, facts: Sequence[Fact], claim: Fact | None = None, defined: DimLike = 0) -> bool:
        """Return True if no integers satisfy the facts together with the claim. defined: a dim that must have a
        value.
        """
        known = facts if claim is None else (claim, *facts)
        names = names_in(defined).union(*(fact.difference.names for fact in known))
        self._forget_if_outdated()
        bounds = self._known_bounds
        for name in names:
            if name not in bounds:
                bounds[name] = self.bound(name)
        return _no_integers(tuple(facts), claim, defined, tuple((name, bounds[name]) for name in sorted(names)))

    def _range_of(self, d: Dim) -> Interval:
        self._forget_if_outdated()
        known = self._ranges.get(d)
        if known is not None:
            return known
        known = interval(d, self.interval_of)
        for facts in self._connected(names_in(d)):
            try:
                system = LinearSystem(self.interval_of)
                for fact in facts:
                    system.add(fact.difference, is_equality=fact.is_equality)
                known = both(known, system.range_of(d))
            except TooLarge:
                break
        self._ranges[d] = known
        return known

    def _shown_bound(self, name: str) -> tuple[int, int | None]:
        if any(len(fact.difference.names) > _MOST_NEIGHBOURS for fact in self._few_of(name)):
            return self.bound(name)
        low, high = self._range_of(symbol(name))
        return max(low or 0, 0), high

    def _connected(self, names: frozenset[str]) -> Iterator[list[Fact]]:
        """Yield growing lists of facts for a proof: first the facts about these symbols only, then also the facts that
        share symbols with them.
        """
        self._forget_if_outdated()
        nearest = self._among(names)
        yield list(nearest)
        further = self._further.get(names)
        if further is None:
            further = self._further[names] = self._beyond(names, nearest)
        if len(further) > len(nearest):
            yield list(further)

    def _beyond(self, reached: frozenset[str], known: Mapping[Fact, None]) -> Mapping[Fact, None]:
        """Return the facts found about these symbols, and those connected with them."""
        edge = reached
        while True:
            # What is about a symbol that was reached before has been found.
            near = dict.fromkeys(fact for name in sorted(edge) for fact in self._few_of(name))
            edge = frozenset[str]().union(*(fact.difference.names for fact in near)) - reached
            reached |= edge
            more = {**known, **near, **self._among(reached)}
            if len(more) > _MOST_FACTS or len(more) == len(known):
                return known
            known = more

    def _among(self, names: Set[str]) -> dict[Fact, None]:
        """Return the facts that contain only these symbols."""
        in_order = sorted(names)
        return {
            fact: None
            for facts in self._chain()
            if facts._under
            for name in in_order
            for fact in facts._under.get(name, ())
            if fact.difference.names <= names
        }

    def _few_of(self, name: str) -> list[Fact]:
        """Return the facts about a symbol; none if they are many."""
        about = [fact for facts in self._chain() for fact in facts._of.get(name, ())]
        return about if len(about) <= _MOST_OF_ONE else []

    def interval_of(self, atom: Atom) -> Interval:
        """Return the interval of an atom under the bounds of the symbols."""
        self._forget_if_outdated()
        return interval_under(atom, self.bound, self._intervals)

    def _first_interval_of(self, atom: Atom) -> Interval:
        """Return the interval of an atom under the bounds of the first round."""
        return interval_under(atom, self._bounds.bound, self._first_intervals)

    def _simplified(self, d: Dim, fixed: bool) -> DimLike:
        if not any(name in facts._bounds or name in facts._of for facts in self._chain() for name in names_in(d)):
            return d
        equalities = [fact.difference for fact in self._among(names_in(d)) if fact.is_equality]
        return simplified(d, equalities, self.interval_of, self._is_nonnegative, fixed)

    def _forget_if_outdated(self) -> None:
        version = self.version
        if version != self._cached_version:
            for cache in (self._intervals, self._first_intervals, self._impossible, self._ranges, self._plainer):
                cache.clear()
            self._further.clear()
            self._known_bounds.clear()
            self._cached_version = version

    # What is recorded ------------------------------------------------------------------------------------------------

    def _record(self, fact: Fact) -> None:
        for polynomial in fact.sides:
            self._bounds.note(polynomial)
            known = self._least.get(polynomial.terms, -polynomial.const)
            self._least[polynomial.terms] = max(known, -polynomial.const)
        self._version += 1
        terms = fact.difference.terms
        if len(terms) > _WIDEST_FACT or (len(terms) == 1 and len(terms[0][0]) == 1 and terms[0][0][0].kind == SYMBOL):
            # Of one symbol: its bounds say it all.
            return
        names = sorted(names_in(fact.difference))
        self._symbols |= symbols_of(fact.difference).intersection(names)
        self._under.setdefault(min(names, key=lambda name: len(self._of.get(name, ()))), []).append(fact)
        for name in names:
            self._of.setdefault(name, []).append(fact)

    def _note_equality(self, known: DimLike) -> None:
        """Note a symbol that `known == 0` expresses through others."""
        for monomial, coefficient in known.terms if isinstance(known, Dim) and len(known.terms) < _MOST_TERMS else ():
            if len(monomial) != 1 or monomial[0].kind != SYMBOL or abs(coefficient) != 1:
                continue
            name = monomial[0].name
            value = (known - coefficient * symbol(name)) * -coefficient
            if name not in names_in(value) and not is_deep(value):
                for other in self._solved_with.pop(name, set()) & self._solved.keys():
                    try:
                        self._note_solution(other, substitute_names(self._solved[other], {name: value}))
                    except ZeroDivisionError:
                        del self._solved[other]
                self._note_solution(name, value)
                return

    def _note_solution(self, name: str, value: DimLike) -> None:
        self._solved[name] = value
        for other in names_in(value):
            self._solved_with.setdefault(other, set()).add(name)

    def _chain(self) -> Iterator[Facts]:
        facts: Facts | None = self
        while facts is not None:
            yield facts
            facts = facts._parent


@lru_cache(_REMEMBERED)
def _no_integers(
    facts: tuple[Fact, ...], claim: Fact | None, defined: DimLike, bounds: tuple[tuple[str, Bound], ...]
) -> bool:
    """Return True if no integers within bounds satisfy facts together with a claim. defined: a dim that must have a
    value. Remembered, since nothing else decides: what is learned of other symbols, and the next walk over the same
    model, ask the same again.
    """
    bound_of, intervals = dict(bounds), dict[Atom, Interval]()
    try:
        system = LinearSystem(lambda atom: interval_under(atom, bound_of.__getitem__, intervals))
        system.define(defined)
        for fact in facts if claim is None else (claim, *facts):
            system.add(fact.difference, is_equality=fact.is_equality)
        system.add_products(facts)
    except TooLarge:
        return False
    return system.is_impossible()
