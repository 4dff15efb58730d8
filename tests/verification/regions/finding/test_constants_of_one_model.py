"""A value that one model computes and the other one has as a constant is not drawn: its readers are run with what
computes it.
"""

from __future__ import annotations

import pytest
from onnx import ModelProto, parser

import splitgraph


def model(body: str, output: str = "bool[] y") -> ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => ({output}) {{ {body} }}')


YES, NO = "c = Constant <value = bool {1}> ()  y = Not (c)", "c = Constant <value = bool {0}> ()  y = Not (c)"
TWICE, THRICE = (f"c = Constant <value = float {{{n}}}> ()  y = Mul (x, c)" for n in (2, 3))
F = "float[3] y"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (model("c = OptionalHasElement (x)  y = Not (c)"), model(NO)),
        (model("s = Size (x)  c = Cast <to = 9> (s)  y = Not (c)"), model(NO)),
        (model("l = Constant <value = float {2}> ()  c = Add (l, l)  y = Mul (x, c)", F), model(THRICE, F)),
    ],
)
def test_another_constant_is_found(before: ModelProto, after: ModelProto) -> None:
    assert splitgraph.verify(before, after).verdict == "different"
    assert splitgraph.verify(after, before).verdict == "different"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (model("c = OptionalHasElement (x)  y = Not (c)"), model(YES)),
        (model("s = SequenceConstruct (x)  c = OptionalHasElement (s)  y = Not (c)"), model(YES)),
        (model("o = Optional (x)  c = OptionalHasElement (o)  y = Not (c)"), model(YES)),
        (model("s = Size (x)  c = Cast <to = 9> (s)  y = Not (c)"), model(YES)),
        (model("l = Constant <value = float {1}> ()  c = Add (l, l)  y = Mul (x, c)", F), model(TWICE, F)),
        (model("l = Constant <value = float {2}> ()  c = Identity (l)  y = Mul (x, c)", F), model(TWICE, F)),
    ],
)
def test_what_it_computes_is_the_constant(before: ModelProto, after: ModelProto) -> None:
    assert splitgraph.verify(before, after).verdict == "equal"
    assert splitgraph.verify(after, before).verdict == "equal"


@pytest.mark.parametrize("to", [17, 14, 11])
def test_a_downgrade_that_writes_a_known_answer(to: int) -> None:
    before = model("c = OptionalHasElement (x)  y = Not (c)")
    rewrite = splitgraph.downgrade(before, to, verify=True)
    assert rewrite.verified is True
