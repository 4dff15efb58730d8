"""Acceptances as users write them: what is refused, and what they reach."""

from __future__ import annotations

from functools import partial
from typing import Any

import onnx
import onnx.parser
import pytest

import splitgraph
from splitgraph.findings.acceptance import ACCEPTABLE, Acceptance, parse_acceptances, stale, why_not
from splitgraph.findings.diagnostics import CODES, SplitgraphError, diagnostic
from splitgraph.options import STRICT, leeway_of

REFUSED = {
    "a text for a list": ("SG302", "must be a sequence of texts"),
    "nothing for a list": (None, "must be a sequence of texts, such as ['SG302'], and () for none"),
    "a number for a list": (5, "accept is 5; it must be a sequence of texts"),
    "no text": ([302], "each entry must be a text"),
    "nothing": ([""], "there is no code ''"),
    "an unknown code": (["SG399"], "there is no code 'SG399'; did you mean 'SG3"),
    "a code in lower case": (["sg302"], "did you mean 'SG302'?"),
    "only a location": (["@main/node"], "there is no code ''"),
    "a split": (["SG201"], "a split that cannot be read"),
    "a file": (["SG101"], "leaves the meaning of the whole graph or file open"),
    "a cycle": (["SG102@main/node"], "leaves the meaning of the whole graph or file open"),
    "a conversion": (["SG405"], "the conversion needs"),
    "a verification": (["SG502"], "--no-verify"),
    "a target": (["SG701"], "has to change what the target does not read"),
    "a warning": (["SG303"], "is never an error"),
    "the call": (["SG304"], "the sizes that the call gives"),
    "an empty location": (["SG302@"], "the location after @ is empty"),
    "a blank location": (["SG302@ "], "the location after @ is empty"),
    "a graph": (["SG302@main"], "a graph, not a node"),
    "no graph": (["SG302@node"], "did you mean main/node?"),
    "the second one": (["SG302", "SG2"], "there is no code 'SG2'"),
}


@pytest.mark.parametrize(("texts", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(texts: Any, message: str) -> None:
    with pytest.raises(SplitgraphError) as raised:
        parse_acceptances(texts)
    assert message in str(raised.value)
    assert [found.code for found in raised.value.diagnostics] == ["SG601"]


MODEL = onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 13]> g (float[2] x) => (y) { y = Relu(x) }')
VERBS = {
    "infer": splitgraph.infer,
    "upgrade": partial(splitgraph.upgrade, opset=18),
    "downgrade": partial(splitgraph.downgrade, opset=11),
    "convert": partial(splitgraph.convert, to="split"),
    "convert for a target": partial(splitgraph.convert, target="mnn"),
    "check": partial(splitgraph.check, target="mnn"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_arguments_of_another_type(verb: str) -> None:
    for given in ({"accept": None}, {"accept": 5}, *({"assume_defaults": each} for each in ("no", None, 0, 1))):
        (name,) = given
        with pytest.raises(SplitgraphError, match=f"{name} is .*; it must be") as raised:
            VERBS[verb](MODEL, **given)
        assert [found.code for found in raised.value.diagnostics] == ["SG601"]
    VERBS[verb](MODEL, accept=(), assume_defaults=True)


def test_nothing_is_accepted_unless_asked_for() -> None:
    assert parse_acceptances(()) == ()
    assert leeway_of((), False) == STRICT


def test_what_is_read() -> None:
    texts = ["SG302", "SG302@main/a@b", "SG214@main//h.0/*", "SG302", "SG212@l::f/node"]
    assert parse_acceptances(texts) == (
        Acceptance("SG302"),
        Acceptance("SG302", "main/a@b"),
        Acceptance("SG214", "main//h.0/*"),
        Acceptance("SG212", "l::f/node"),
    )
    assert [str(each) for each in parse_acceptances(texts)] == [*texts[:3], texts[4]]


@pytest.mark.parametrize(
    ("text", "reached", "not_reached"),
    [
        ("SG302", ["main/a", "main/a/then_branch/b"], []),
        ("SG302@main/a", ["main/a"], ["main/a/b", "main/ab", "main"]),
        ("SG302@main/a/*", ["main/a/b", "main/a/b/c", "main/a/*"], ["main/a", "main/ab"]),
        ("SG302@main/*b", ["main/*b"], ["main/ab"]),
    ],
)
def test_what_an_acceptance_reaches(text: str, reached: list[str], not_reached: list[str]) -> None:
    (accept,) = parse_acceptances([text])
    places = [*reached, *not_reached]
    assert [place for place in places if accept.reaches(diagnostic("SG302", "", place))] == reached
    assert not any(accept.reaches(diagnostic("SG212", "", place)) for place in places)


def test_a_stale_acceptance_names_the_place_that_may_be_meant() -> None:
    errors = [diagnostic("SG302", "", "main/first"), diagnostic("SG212", "", "main/node1")]
    note = stale(Acceptance("SG302", "main/fist"), errors)
    assert (note.code, note.severity) == ("SG606", "info")
    assert "did you mean SG302@main/first?" in note.message
    assert stale(Acceptance("SG214"), errors).message.endswith("the model has no error SG214")
    nodes = ["main/first", "main/second"]
    assert "did you mean SG302@main/second?" in stale(Acceptance("SG302", "main/secnd"), [], nodes).message
    for location in ("main/second", "main/second/*"):
        assert stale(Acceptance("SG302", location), [], nodes).message.endswith(f"no error SG302 at {location}")


def test_every_code_has_an_answer() -> None:
    assert {code for code in CODES if why_not(code) is None} == set(ACCEPTABLE)
    # Only what concerns one node of another operator, or has one reading.
    assert set(ACCEPTABLE) == {"SG207", "SG212", "SG214", "SG301", "SG302"}
