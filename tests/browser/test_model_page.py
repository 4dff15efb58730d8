"""The page of a model in Chromium: drawing, lists, search, keys, themes."""

from __future__ import annotations

import pytest

from . import models
from .chromium import Open

pytestmark = pytest.mark.browser

ENTER, ESCAPE, DOWN = "\ue007", "\ue00c", "\ue015"


@pytest.mark.parametrize(
    "name",
    [
        "split_in_if.onnx",
        "split_in_function.onnx",
        "string_split20.onnx",
        "interval_split.xml",
        "lstm_loop.opset17.onnx",
    ],
)
def test_models_of_every_kind_are_drawn(name: str, open_page: Open) -> None:
    page = open_page(models.page_of(name))
    assert page.all("#drawing .box")
    assert page.texts("#title") == [name]


def test_a_split_is_drawn_with_its_parts_and_types(open_page: Open) -> None:
    page = open_page(models.page_of("c2f.opset17.onnx"))
    assert page.texts(".box.split .segment text") == ["8", "8"]
    assert page.texts(".box.split .chip text") == ["axis 1"]
    assert "[batch, 8, height, width]" in page.texts("#drawing .type text")
    widths = [each.size["width"] for each in page.all(".box.split .segment .fill")]
    assert abs(widths[0] - widths[1]) <= 1


@pytest.mark.parametrize(
    ("name", "selector", "number"),
    [
        ("split_to_sequence11_each.onnx", ".bar.sequence .bracket", 1),
        ("string_split20.onnx", ".bar.string", 1),
        ("variadic_split_rest.onnx", ".bar.variadic .rest", 1),
        ("c2f.opset17.onnx", ".bracket, .rest, .bar.string", 0),
    ],
)
def test_each_kind_of_split_looks_different(name: str, selector: str, number: int, open_page: Open) -> None:
    page = open_page(models.page_of(name))
    assert len(page.all(f"#drawing {selector}")) == number


def test_a_click_shows_the_types_of_a_box(open_page: Open) -> None:
    page = open_page(models.page_of("c2f.opset17.onnx"))
    page.one(".box.split").click()
    assert page.one("#panel h2").text.startswith("Split-13")
    assert page.texts("#panel .parts .length") == ["8", "8"]
    assert page.all(".box.split.selected")
    page.press(ESCAPE)
    assert page.one("#panel h2").text == "Model"
    assert not page.all(".selected")


def test_the_list_of_splits_goes_through_the_drawing(open_page: Open) -> None:
    page = open_page(models.yolo())
    page.press("j")
    assert page.one("#panel .where").text == "main/model.1/Split"
    page.press("j", DOWN)
    assert page.one("#panel .where").text == "main/model.3/Split"
    page.press("k")
    assert page.one("#panel .where").text == "main/model.2/Split"
    assert len(page.all('.row[aria-selected="true"]')) == 1
    assert page.visible(".box.split.selected")


def test_search_finds_nodes_values_operators_and_codes(open_page: Open) -> None:
    page = open_page(models.wrong())
    for query, tab, number in (
        ("SG206", "findings", 1),
        ("thirds", "splits", 1),
        ("relu", "nodes", 1),
        ("q", "splits", 1),
    ):
        page.press("/", *query)
        assert page.run("return document.activeElement.id") == "search"
        page.one(f'[data-tab="{tab}"]').click()
        assert len(page.all(".row")) == number, query
        page.one("#search").click()
        page.press(ESCAPE)
    page.press("/", *"nothing at all")
    assert page.texts(".row") == []
    assert page.one(".nothing").text == "Nothing matches."


def test_filters(open_page: Open) -> None:
    page = open_page(models.wrong())
    page.one('[data-tab="nodes"]').click()
    assert len(page.all(".row")) == 3
    page.one('#filter-operator option[value="Relu"]').click()
    assert len(page.all(".row")) == 1
    page.one('#filter-operator option[value=""]').click()
    page.one('#filter-severity option[value="error"]').click()
    assert len(page.all(".row")) == 1
    page.one('[data-tab="findings"]').click()
    assert len(page.all(".row")) == 1


def test_a_finding_is_at_its_node(open_page: Open) -> None:
    page = open_page(models.wrong())
    assert [text.strip("✕") for text in page.texts(".box.split.has-error .tag")] == ["SG206"]
    page.one('[data-tab="findings"]').click()
    page.one(".row").click()
    assert page.all(".box.split.has-error.selected")
    assert "does not divide" in page.one("#panel .finding.error").text
    assert "Give explicit lengths" in page.one("#panel .finding .help").text


def test_conditions_are_shown(open_page: Open) -> None:
    page = open_page(models.wrong())
    page.press(ESCAPE)
    assert "M % 3 == 0" in page.texts("#panel .conditions li")
    assert page.texts(".box.split .needs") == ["requires M % 3 == 0"]
    page.one('[data-tab="splits"]').click()
    page.press("j", "j")
    assert page.texts("#panel .conditions li") == ["M % 3 == 0"]


def test_the_body_of_an_if(open_page: Open) -> None:
    page = open_page(models.page_of("split_in_if.onnx"))
    page.one(".body-row").click()
    assert page.texts("#trail button") == ["main", "choose · then_branch"]
    assert page.all(".box.split")
    page.press("u")
    assert page.texts("#trail button") == ["main"]
    page.press("j", "j")
    assert page.texts("#trail button") == ["main", "choose · else_branch"]


@pytest.mark.parametrize("name", models.ODD)
def test_odd_models_are_drawn(name: str, open_page: Open) -> None:
    page = open_page(models.odd(name))
    assert page.all("#drawing .box")
    for _ in page.all(".tab"):
        page.press("j", "j", ENTER, "0", "s", "u")


def test_zoom(open_page: Open) -> None:
    page = open_page(models.yolo())
    before = page.one(".box.split .card").size["width"]
    page.press("+")
    assert page.one(".box.split .card").size["width"] > before
    page.press("0")
    assert page.one("#zoom").text == "100%"
    page.press("-", "-", "-", "-")
    assert page.one(".stage.far")
    assert not page.one(".box.split .name").is_displayed()


def test_the_keys_are_explained(open_page: Open) -> None:
    page = open_page(models.page_of("c2f.opset17.onnx"))
    page.press("?")
    assert page.one("#help").is_displayed()
    assert "search" in page.one("#keys").text
    page.press(ESCAPE)
    assert not page.one("#help").is_displayed()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(scheme: str, open_page: Open) -> None:
    page = open_page(models.page_of("c2f.opset17.onnx"), {"prefers-color-scheme": scheme})

    def brightness() -> float:
        colour = page.run("return getComputedStyle(document.body).backgroundColor").strip("rgb()").split(",")
        return sum(map(float, colour)) / 3

    assert (brightness() < 80) == (scheme == "dark")
    page.press("t")
    assert (brightness() < 80) == (scheme == "light")
    page.one("#theme").click()
    assert (brightness() < 80) == (scheme == "dark")


def test_everything_has_a_name_and_the_focus_is_seen(open_page: Open) -> None:
    page = open_page(models.yolo())
    unnamed = page.run("""
        const named = (each) => each.getAttribute("aria-label") || each.textContent.trim();
        return [...document.querySelectorAll("button, input, select, [role=button], [role=listbox]")]
            .filter((each) => !named(each)).map((each) => each.outerHTML);
    """)
    assert unnamed == []
    page.run("document.querySelector('.box.split').focus()")
    assert "Split-18 model.1/Split, axis 1, 4 | 4" in page.run(
        "return document.activeElement.getAttribute('aria-label')"
    )
    page.press(ENTER)
    assert page.one("#panel .where").text == "main/model.1/Split"
