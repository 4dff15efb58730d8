"""The index page of many models."""

from __future__ import annotations

import pytest

from splitgraph.reports.html.page import IndexRow, index_page

from .pages import page_data, read_page


@pytest.mark.parametrize(
    ("link", "quoted"),
    [
        (None, None),
        ("pages/a.html", "./pages/a.html"),
        ("pages/a b#1?.html", "./pages/a%20b%231%3F.html"),
        ("javascript:alert(1)", "./javascript%3Aalert%281%29"),
        ("folder\\a.html", "./folder/a.html"),
        ("é.html", "./%C3%A9.html"),
    ],
)
def test_links_are_paths(link: str | None, quoted: str | None) -> None:
    [row] = page_data(index_page([IndexRow("a.onnx", "done", link=link)], title="zoo"))["rows"]
    assert row[-1] == quoted


def test_a_row_has_what_the_columns_show() -> None:
    row = IndexRow("a.onnx", "refused", None, "opset 18", "", 12, 3, 1, 2, 0, 0.12345, "SG402: no")
    [found] = page_data(index_page([row], title="zoo"))["rows"]
    assert found == ["a.onnx", "refused", "opset 18", "", 12, 3, 1, 2, 0, 0.123, "SG402: no", None]


def test_an_index_of_nothing_is_a_page() -> None:
    text = index_page([], title="zoo")
    assert page_data(text)["rows"] == []
    assert read_page(text).texts["title#"] == ["zoo"]
