"""Opsets that need no trial: what one conversion found in the way is in the way of the next one, too."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest

from splitgraph.conversion.targets import convert
from splitgraph.conversion.targets.prepared import Prepared
from splitgraph.conversion.targets.refusals import lies_behind
from splitgraph.findings.diagnostics import ConversionError, diagnostic
from splitgraph.options import STRICT
from splitgraph.runtimes.target import find_target


def model(body: str, data: str, more: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 13]> g ({data}) => (y) {more} {{ {body} }}')


# OpenCV 4 has no NonZero; the nodes before it go by folding.
REFUSED_ANYWAY = model("s = Shape(x) t = Concat<axis = 0>(s, o) r = Reshape(x, t) y = NonZero(r)", "float[2, 3] x",
                       "<int64[1] o = {1}>")  # fmt: skip


def refused(given: onnx.ModelProto, target: str, monkeypatch: pytest.MonkeyPatch) -> tuple[ConversionError, list[bool]]:
    """The error of a conversion, and which of its trials began with a folded model."""
    trials: list[bool] = []
    at_opset = convert._at_opset

    def counted(prepared: Prepared, *rest: object) -> object:
        trials.append(prepared.begun is not None)
        return at_opset(prepared, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(convert, "_at_opset", counted)
    with pytest.raises(ConversionError) as caught:
        convert.checked_conversion(Prepared(given, STRICT), find_target(target))
    return caught.value, trials


def test_what_is_in_the_way_of_a_folded_model_is_not_tried_without_folding(monkeypatch: pytest.MonkeyPatch) -> None:
    error, trials = refused(REFUSED_ANYWAY, "opencv@4.14", monkeypatch)
    assert [blocker.location for blocker in error.diagnostics] == ["main/NonZero#3"]
    assert trials == [True]


def test_what_folding_added_is_in_nobody_elses_way() -> None:
    prepared = Prepared(REFUSED_ANYWAY, STRICT)
    (folded,) = prepared.folded
    # Folding moved the last node; it gives the same value.
    assert prepared.names.own({"main/NonZero#1"}, folded.model) == {"main/NonZero#1": "main/NonZero#3"}
    added = onnx.ModelProto()
    added.CopyFrom(folded.model)
    added.graph.node.insert(0, onnx.helper.make_node("Shape", ["x"], ["new"]))
    assert prepared.names.own({"main/Shape#0"}, added) == {}


@pytest.mark.parametrize(
    ("end", "own", "opset", "expected"),
    [
        (8, 17, 8, True),
        (8, 17, 7, True),
        (8, 17, 9, False),
        (8, 17, 18, False),
        (20, 17, 20, True),
        (20, 17, 21, True),
        (20, 17, 18, False),
        (20, 17, 13, False),
        (None, 17, 7, False),
    ],
)
def test_an_opset_behind_the_end_of_the_way_is_not_reached(
    end: int | None, own: int, opset: int, expected: bool
) -> None:
    refusal = ConversionError("no", [diagnostic("SG404", "no", "main/a", blocking_opset=end)])
    assert lies_behind(refusal, own, opset) is expected
