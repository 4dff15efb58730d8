"""What measured cases say of a node (splitgraph/runtimes/verdicts.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from splitgraph.runtimes.verdicts import FactorCase, Judged, MeasuredOperator, factors_text

# A base and what is changed of it: "axis=first" for a new value.
BASE = "T=float32 axis=last rank=3"


def factors(text: str, base: str = "") -> frozenset[tuple[str, str]]:
    """Factors as they are written, over those of a base."""
    pairs: dict[str, str] = dict(each.split("=") for each in base.split())
    pairs.update(each.split("=") for each in text.split())
    return frozenset(pairs.items())


def operator(letters: str, changes: Sequence[str], label: str = "Op-1", *, has_base: bool = True) -> MeasuredOperator:
    """A base with its changes, and one letter for each."""
    base = 0 if has_base else -1
    cases = [FactorCase(factors("", BASE), base), *(FactorCase(factors(change, BASE), base) for change in changes)]
    return MeasuredOperator(label, cases, letters, "no")


@pytest.mark.parametrize(
    ("letters", "changes", "node", "expected"),
    [
        # Refusals: the only factor that was not seen is to blame.
        (".r", ["axis=first"], "axis=first", "refuses"),
        (".r", ["axis=first"], "axis=first rank=3", "refuses"),
        (".W", ["axis=first"], "axis=first", "wrong"),
        (".k", ["axis=first"], "axis=first", "wrong"),
        (".X", ["axis=first"], "axis=first", "refuses"),
        (".r.", ["axis=first", "rank=4"], "axis=first rank=4", "refuses"),
        # Two that were not seen: nobody knows which is to blame.
        (".r", ["axis=first rank=4"], "axis=first", "unmeasured"),
        (".r", ["axis=first rank=4"], "rank=4", "unmeasured"),
        # The very case is refused, and what runs with one of them tells which it was.
        (".r", ["axis=first rank=4"], "axis=first rank=4", "refuses"),
        (".r.", ["axis=first rank=4", "rank=4"], "axis=first", "refuses"),
        # Each runs, and both together do not.
        ("...r", ["axis=first", "rank=4", "axis=first rank=4"], "axis=first rank=4 T=float32", "refuses"),
        ("...r", ["axis=first", "rank=4", "axis=first rank=4"], "axis=first", "reads"),
        # What runs with another type is to blame with this one.
        ("...r.", ["axis=first T=int64", "T=int64", "axis=first", "rank=4"], "axis=first rank=4", "refuses"),
        ("...r.", ["axis=first T=int64", "T=int64", "axis=first", "rank=4"], "axis=first rank=4 T=int64", "reads"),
        ("...r.", ["axis=first T=int64", "T=int64", "axis=first", "rank=4"], "rank=4", "reads"),
        # A case that says nothing, and one that was never made.
        (".?", ["axis=first"], "axis=first", "unmeasured"),
        (".", [], "axis=first", "unmeasured"),
        # Some models with these factors run: the reader lacks a key.
        (".m", ["axis=first"], "axis=first", "unmeasured"),
        # A base that fails blames nothing, and neither do its changes.
        ("rr", ["axis=first"], "rank=4", "refuses"),
        ("Wr", ["axis=first"], "rank=4", "wrong"),
        ("r.", ["axis=first"], "axis=first", "reads"),
        # Something rescues the base: a node that has it may run, too.
        ("r.", ["axis=first"], "axis=first rank=4", "unmeasured"),
        # The base was rescued by a change that the node has, and the rest of it runs, too.
        ("r..", ["axis=first", "rank=4"], "axis=first rank=4", "reads"),
        # Its own change does not rescue it, and the other one is not known.
        ("r.r", ["axis=first", "rank=4"], "rank=4", "refuses"),
        # What was seen runs, also several at once.
        ("...", ["axis=first", "rank=4"], "axis=first rank=4", "reads"),
        (".", [], "", "reads"),
    ],
)
def test_the_verdict_of_a_node(letters: str, changes: Sequence[str], node: str, expected: str) -> None:
    kind = tuple(sorted(factors(node, BASE)))
    assert operator(letters, changes).judge(kind).verdict == expected


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        # Only the second base has a B from sizes, which runs nowhere: it says nothing of nodes without one.
        ("B=init use=scale kind=new", "unmeasured"),
        ("B=init use=scale", "reads"),
        ("B=shape use=scale", "wrong"),
        ("B=shape", "wrong"),
    ],
)
def test_a_base_that_fails_because_of_what_the_node_does_not_have(node: str, expected: str) -> None:
    cases = [
        FactorCase(factors("B=init", BASE), 0),
        FactorCase(factors("B=shape use=scale", BASE), 1),
        FactorCase(factors("B=init use=scale", BASE), 0),
    ]
    held = MeasuredOperator("Op-1", cases, ".W.", "no")
    assert held.judge(tuple(sorted(factors(node, BASE)))).verdict == expected


# Two bases: a number from shapes, which fails although both run elsewhere; and other data, with its changes.
APART = ["B=shape other=number rank=3", "B=data other=same rank=3", "B=node other=number rank=3"]
APART += ["B=shape other=same rank=3", "B=data other=same rank=4"]


@pytest.mark.parametrize(
    ("letters", "node", "expected"),
    [
        # A change of the base that runs is a number, too, and has the node's B.
        ("W....", "B=node other=number rank=4", "reads"),
        # Nothing nearer runs: that change fails, or its base does.
        ("W.?..", "B=node other=number rank=4", "wrong"),
        ("WW...", "B=node other=number rank=4", "unmeasured"),
        # What runs is no nearer: it has another B.
        ("W....", "B=shape other=number rank=4", "unmeasured"),
    ],
)
def test_a_base_that_fails_says_nothing_of_what_is_nearer_to_one_that_runs(
    letters: str, node: str, expected: str
) -> None:
    cases = [FactorCase(factors(text), base) for text, base in zip(APART, (0, 1, 1, 1, 1), strict=True)]
    measured = MeasuredOperator("Op-1", cases, letters, "no")
    assert measured.judge(tuple(sorted(factors(node)))).verdict == expected


@pytest.mark.parametrize(
    ("letters", "number", "expected"),
    [
        ("r", 0, "unmeasured"),
        ("rr", 1, "unmeasured"),
        ("rrr", 2, "refuses"),
        ("rr.", 2, "unmeasured"),
        (".rr", 2, "reads"),
    ],
)
def test_cases_without_a_base(letters: str, number: int, expected: str) -> None:
    """Few cases that fail refuse nothing: they may be special."""
    held = operator(letters, ["rank=4 axis=first", "rank=5 axis=second"][:number], has_base=False)
    assert held.judge(tuple(sorted(factors("" if expected == "reads" else "T=int8", BASE)))).verdict == expected


@pytest.mark.parametrize(
    ("letters", "expected"), [("...r", "unmeasured"), ("...W", "unmeasured"), ("..rr", "refuses"), ("....", "reads")]
)
def test_a_failing_case_without_a_control_is_not_believed_over_those_with_one(letters: str, expected: str) -> None:
    """Both factors run alone: the graph of the case without a base may be what failed."""
    based = [FactorCase(factors(change, BASE), 0) for change in ("", "axis=first", "rank=4")]
    held = MeasuredOperator("Op-1", [*based, FactorCase(factors("axis=first rank=4", BASE), -1)], letters)
    assert held.judge(tuple(sorted(factors("axis=first rank=4", BASE)))).verdict == expected


def test_a_case_without_a_base_that_runs_does_not_acquit_what_fails_in_one_with_a_base() -> None:
    """It may run by its numbers."""
    based = [FactorCase(factors(change, BASE), 0) for change in ("", "axis=first", "rank=4", "axis=first rank=4")]
    older = FactorCase(factors("axis=first rank=4 T=int8", BASE), -1)
    held = MeasuredOperator("Op-1", [*based, older], "...W.")
    assert held.judge(tuple(sorted(older.factors))).verdict == "wrong"


def test_words_name_the_factor_and_a_death() -> None:
    held = operator(".X", ["axis=first"])
    kind = tuple(sorted(factors("axis=first T=float32 rank=3")))
    # The very case was measured, and it says what is to blame.
    assert held.judge(kind) == Judged("refuses", "Op-1 with axis=first", True, (("axis", "first"),))
    more = operator(".X.", ["axis=first", "rank=4"]).judge(tuple(sorted(factors("axis=first rank=4", BASE))))
    assert more == Judged("refuses", "Op-1 with axis=first", True, (("axis", "first"),))


def test_versions_of_one_meaning_share_their_cases() -> None:
    old = operator(".r.", ["axis=first", "rank=4"], "Op-1")
    new = MeasuredOperator("Op-13", [FactorCase(factors("", BASE), 0)], ".", alike=(old,))
    verdicts: Mapping[str, str] = {
        text: new.judge(tuple(sorted(factors(text, BASE)))).verdict for text in ("axis=first", "rank=4", "rank=5")
    }
    assert verdicts == {"axis=first": "refuses", "rank=4": "reads", "rank=5": "unmeasured"}


@pytest.mark.parametrize(("own", "other"), [("r", "."), (".", "r")])
def test_a_version_that_does_not_run_gives_and_takes_nothing(own: str, other: str) -> None:
    old = operator(f"{other}.", ["rank=4"], "Op-1")
    new = MeasuredOperator("Op-13", [FactorCase(factors("", BASE), 0)], own, alike=(old,))
    assert new.judge(tuple(sorted(factors("rank=4", BASE)))).verdict == ("refuses" if own == "r" else "unmeasured")


def test_an_attribute_is_an_input_at_another_version() -> None:
    held = MeasuredOperator("Squeeze-13", [FactorCase(factors("axes=init T=float32"), 0)], ".")
    kind = tuple(sorted(factors("axes=attribute T=float32 unknown=yes")))
    assert held.at_this_version(kind) == (("T", "float32"), ("axes", "init"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("axis=first", "axis=first"),
        ("B=computed", "B computed at run time"),
        ("Y_h=absent", "Y_h left out"),
        ("Y_h=unused C=init", "C as an initializer and Y_h given and not used"),
        ("rank=4", "data of rank 4"),
        ("use.Gather=yes", "use Gather"),
        ("a=1 b=2 c=3", "a=1, b=2 and c=3"),
        ("a=1 b=2 c=3 d=4", "a=1, b=2 and 2 more"),
    ],
)
def test_factors_in_words(text: str, words: str) -> None:
    assert factors_text(sorted(factors(text))) == words
