"""The index page of many models in Chromium."""

from __future__ import annotations

import pytest

from splitgraph.reports.html.page import IndexRow, index_page

from .chromium import Open, Opened

pytestmark = pytest.mark.browser

ROWS = [
    IndexRow("zoo/b.onnx", "converted", "pages/b.html", "opset 11", "opset 18", 120, 3, seconds=0.5),
    IndexRow("zoo/a10.onnx", "refused", None, "opset 9", "", 80, 1, errors=2, seconds=2.0, message="SG402: lengths"),
    IndexRow("zoo/a9.onnx", "failed", message="the file is empty"),
    IndexRow("zoo/c.onnx", "converted", "pages/c.html", "opset 13", "opset 18", 1000, 12, warnings=4, seconds=1.25),
]


def names(page: Opened) -> list[str]:
    return [text.removesuffix(".onnx") for text in page.texts("tbody th")]


@pytest.mark.parametrize(
    ("column", "first", "second"),
    [
        ("model", ["a9", "a10", "b", "c"], ["c", "b", "a10", "a9"]),
        ("status", ["b", "c", "a9", "a10"], ["a10", "a9", "b", "c"]),
        ("opset before", ["a10", "b", "c", "a9"], ["c", "b", "a10", "a9"]),
        ("nodes", ["c", "b", "a10", "a9"], ["a10", "b", "c", "a9"]),
        ("errors", ["a10", "b", "a9", "c"], ["b", "a9", "c", "a10"]),
        ("seconds", ["a10", "c", "b", "a9"], ["b", "c", "a10", "a9"]),
    ],
)
def test_columns_are_sorted_both_ways(column: str, first: list[str], second: list[str], open_page: Open) -> None:
    page = open_page(index_page(ROWS, title="zoo"))
    assert names(page) == ["b", "a10", "a9", "c"]
    heading = next(each for each in page.all("thead th") if each.text == column)
    heading.find_element("css selector", "button").click()
    assert names(page) == first
    heading.find_element("css selector", "button").click()
    assert names(page) == second
    assert heading.get_attribute("aria-sort") in ("ascending", "descending")


def test_search_and_counts_by_status(open_page: Open) -> None:
    page = open_page(index_page(ROWS, title="zoo"))
    assert page.texts("#statuses button") == ["all 4", "converted 2", "refused 1", "failed 1"]
    page.one('[data-status="converted"]').click()
    assert names(page) == ["b", "c"]
    page.one('[data-status=""]').click()
    page.press("/", *"sg402")
    assert names(page) == ["a10"]
    page.press(*"x")
    assert names(page) == []
    assert page.one("#found").text == "No model matches."
    page.press("\ue00c")
    assert names(page) == ["b", "a10", "a9", "c"]


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (
            ROWS,
            ["model", "status", "opset before", "after", "nodes", "splits", "errors", "warnings", "seconds", "message"],
        ),
        ([IndexRow("a", "clean", before="17", splits=0)], ["model", "status", "opset", "splits"]),
        ([IndexRow("a", "clean", notes=2), IndexRow("b", "clean")], ["model", "status", "notes"]),
    ],
)
def test_columns_without_anything_are_left_out(rows: list[IndexRow], columns: list[str], open_page: Open) -> None:
    page = open_page(index_page(rows, title="zoo"))
    assert page.texts("thead button") == columns
    assert all(len(row.find_elements("css selector", "td")) == len(columns) - 1 for row in page.all("tbody tr"))


@pytest.mark.parametrize(
    ("models", "folder", "shown"),
    [
        (["zoo/a.onnx", "zoo/b.onnx"], "zoo/", ["a.onnx", "b.onnx"]),
        (["zoo/a.onnx", "zoo/text/ab.onnx"], "zoo/", ["a.onnx", "text/ab.onnx"]),
        (["zoo/a.onnx", "zoom.onnx"], "", ["zoo/a.onnx", "zoom.onnx"]),
        (["model.1.onnx", "model.2.onnx"], "", ["model.1.onnx", "model.2.onnx"]),
    ],
)
def test_the_folder_of_all_models_is_shown_once(
    models: list[str], folder: str, shown: list[str], open_page: Open
) -> None:
    page = open_page(index_page([IndexRow(name, "clean") for name in models], title="zoo"))
    assert (page.texts("#folder"), page.texts("tbody th")) == ([folder], shown)


def test_an_index_on_a_phone(open_page: Open) -> None:
    page = open_page(index_page(ROWS, title="zoo"))
    with page.narrow():
        assert page.run("return document.documentElement.scrollWidth") <= 390
        [name, *_, seconds] = [
            each for each in page.one("tbody tr").find_elements("css selector", "th, td") if each.text
        ]
        assert name.location["y"] < seconds.location["y"]


def test_links_lead_to_the_pages_of_models(open_page: Open) -> None:
    page = open_page(index_page(ROWS, title="zoo"))
    assert [link.get_attribute("href").rsplit("/", 2)[1:] for link in page.all("tbody a")] == [
        ["pages", "b.html"],
        ["pages", "c.html"],
    ]


def test_thousands_of_rows_are_added_as_they_are_scrolled_to(open_page: Open) -> None:
    rows = [IndexRow(f"m{i:05}.onnx", "converted", nodes=i) for i in range(5000)]
    page = open_page(index_page(rows, title="zoo"))
    assert len(page.all("tbody tr")) < 1500
    assert page.texts("thead button") == ["model", "status", "nodes"]
    page.all("thead button")[2].click()
    assert page.texts("tbody th")[0] == "m04999.onnx"
    page.run("window.scrollTo(0, document.documentElement.scrollHeight)")
    page.wait(lambda: len(page.all("tbody tr")) >= 500)
