"""One split as SVG: parsed, not compared as text."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from onnx import helper

import splitgraph
from splitgraph.reports.html.split_svg import WIDTH, find_split, split_svg

from .pages import HOSTILE, split_model

MODELS = Path(__file__).parents[3] / "models"
SVG = "{http://www.w3.org/2000/svg}"


def drawn(model: object, name: str = "") -> ElementTree.Element:
    analysis = splitgraph.infer(model)  # type: ignore[call-overload]
    return ElementTree.fromstring(split_svg(analysis, find_split(analysis, name) if name else analysis.splits[0]))


def texts(root: ElementTree.Element) -> list[str]:
    parts = [list(each) or [each] for each in root.iter(f"{SVG}text")]
    return [each.text or "" for part in parts for each in part]


def bar(root: ElementTree.Element) -> list[tuple[float, float]]:
    """Left end and width of each segment."""
    fills = [each for each in root.iter(f"{SVG}rect") if each.get("class") == "fill"]
    return [(float(each.get("x", "")), float(each.get("width", ""))) for each in fills]


def test_what_is_written_on_a_split() -> None:
    root = drawn(MODELS / "gpt2.opset17.onnx", "/h.0/attn/Split")
    shown = texts(root)
    assert shown[:5] == [
        "Split-13",
        "/h.0/attn/Split",
        "axis 2",
        "/h.0/attn/c_attn/Add_output_0",
        "float32[batch, seq, 72]",
    ]
    assert shown[5:8] == ["24", "24", "24"]
    assert shown[8:11] == ["24", "/h.0/attn/Split_output_0", "float32[batch, seq, 24]"]
    assert root.get("aria-label") == "Split-13 /h.0/attn/Split: 24 | 24 | 24"


@pytest.mark.parametrize(
    ("lengths", "shares"),
    [((1, 1), (1, 1)), ((2, 6), (1, 3)), ((1, 2, 5), (1, 2, 5)), ((768, 768, 768), (1, 1, 1))],
)
def test_the_bar_is_cut_in_proportion(lengths: tuple[int, ...], shares: tuple[int, ...]) -> None:
    names = tuple(f"p{i}" for i in range(len(lengths)))
    model = split_model(parts=names, shape=("N", sum(lengths)))
    model.opset_import[0].version = 11
    del model.graph.node[1].attribute[1:]
    model.graph.node[1].attribute.append(helper.make_attribute("split", lengths))
    segments = bar(drawn(model))
    widths = [width / share for (_, width), share in zip(segments, shares, strict=True)]
    assert max(widths) - min(widths) < 0.1
    ends = [x + width for x, width in segments]
    assert all(start > end for (start, _), end in zip(segments[1:], ends, strict=False))
    assert ends[-1] == pytest.approx(WIDTH - 24, abs=0.1)


def test_symbolic_widths_are_written_on_the_bar() -> None:
    assert {"(M + 1)//2", "M//2"} <= set(texts(drawn(split_model(shape=("N", "M")))))


@pytest.mark.parametrize(
    ("name", "shown", "segments"),
    [
        ("split_to_sequence11_each.onnx", ["SplitToSequence-11", "axis 1", "sequence(float32[batch, width])"], 3),
        ("string_split20.onnx", ["StringSplit-20", "cuts text", "counts"], 1),
        ("variadic_split_rest.onnx", ["VariadicSplit", "length - 3 (-1)", "requires length >= 3"], 3),
        ("interval_split.xml", ["VariadicSplit", "hidden_2 - 48", "heads.1"], 3),
    ],
)
def test_each_kind_is_shown_as_what_it_is(name: str, shown: list[str], segments: int) -> None:
    root = drawn(MODELS / name)
    assert set(shown) <= set(texts(root))
    assert len(bar(root)) == segments
    brackets = [each for each in root.iter(f"{SVG}path") if each.get("class") == "bracket"]
    assert len(brackets) == (name.startswith("split_to_sequence"))


def test_names_are_text() -> None:
    root = drawn(split_model(HOSTILE, (HOSTILE, "b")))
    tags = {each.tag.removeprefix(SVG) for each in root.iter()}
    assert tags == {"svg", "title", "style", "rect", "g", "text", "tspan"}
    assert "onerror=alert(1)" in (root.get("aria-label") or "")
    assert not [text for text in texts(root) if not text.isprintable()]


def test_many_parts_are_abridged() -> None:
    root = drawn(split_model(parts=tuple(f"p{i}" for i in range(300)), shape=("N", 600)))
    assert len(bar(root)) < 40
    assert "… 272 more …" in texts(root)
    assert "p299" in texts(root)
    assert float(root.get("height", "0")) < 700


def test_an_invalid_split_has_parts_of_unknown_length() -> None:
    model = split_model(shape=("N", 7))
    model.opset_import[0].version = 13
    del model.graph.node[1].attribute[1:]
    assert "parts of unknown length" in texts(drawn(model))
