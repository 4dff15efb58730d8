"""The page of a model in Chromium: drawing, lists, search, keys, themes."""

from __future__ import annotations

from xml.etree import ElementTree

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


def test_a_node_shows_its_attributes_and_the_values_of_constants(open_page: Open) -> None:
    page = open_page(models.constants())
    page.press("/", *"conv", ENTER)
    assert page.texts("#panel .facts th") == ["pads", "strides"]
    assert page.texts("#panel .facts td") == ["[1, 1, 1, 1]", "[2, 2]"]
    assert page.texts("#panel .elements") == ["[-13.5, -13.375, -13.25, -13.125, -13, … (216 in all)]"]
    assert page.texts("#panel .range") == ["-13.5 … 13.375"]
    page.press(ESCAPE, "/", *"flat", ENTER)
    assert page.texts("#panel .elements") == ["[0, -1]"]


def test_the_panel_of_the_model_has_its_metadata_and_operator_sets(open_page: Open) -> None:
    page = open_page(models.constants())
    facts = dict(zip(page.texts("#panel .facts th"), page.texts("#panel .facts td"), strict=True))
    wanted = {"producer": "exporter 2.1", "IR version": "8", "licence": "MIT", "ai.onnx": "13", "com.example": "3"}
    assert wanted.items() <= facts.items()


def test_what_is_said_of_generated_symbols_is_folded(open_page: Open) -> None:
    page = open_page(models.symbols())
    visible = [each.text for each in page.all("#panel .conditions li, #panel .facts.mono th") if each.is_displayed()]
    assert visible == ["M % 2 == 0", "M", "N"]
    page.one("#panel summary").click()
    assert "unk0 % 2 == 0" in [each.text for each in page.all("#panel .conditions li") if each.is_displayed()]


@pytest.mark.parametrize(
    ("make", "tab", "chosen"),
    [
        (models.wrong, "findings", 1),
        (models.normalized, "changes", 0),
        (models.yolo, "splits", 0),
        (models.unfolded, "nodes", 0),
    ],
)
def test_a_page_opens_on_what_people_look_for(make: object, tab: str, chosen: int, open_page: Open) -> None:
    page = open_page(make())  # type: ignore[operator]
    assert page.one('#tabs [aria-selected="true"]').get_attribute("data-tab") == tab
    assert len(page.all('.row[aria-selected="true"]')) == chosen
    assert len(page.all("#panel .finding.error")) == chosen
    assert len(page.all("#drawing .box.selected")) == chosen


def test_a_model_without_splits_is_drawn_node_by_node(open_page: Open) -> None:
    page = open_page(models.unfolded())
    assert len(page.all("#drawing .box.node")) == 35
    assert not page.all("#drawing .box.stretch")


def test_a_large_model_without_splits_opens_as_stretches(open_page: Open) -> None:
    page = open_page(models.unfolded(1600))
    assert len(page.all("#drawing .box.open > g .box.stretch")) == 40
    assert not page.all("#drawing .box.node")


@pytest.mark.parametrize("make", [models.gpt2, models.large, models.unfolded, models.varied_wide])
def test_the_drawing_starts_where_its_frame_starts(make: object, open_page: Open) -> None:
    page = open_page(make())  # type: ignore[operator]
    frame, lefts = page.run("""
        const frame = document.getElementById("drawing").getBoundingClientRect();
        const cards = [...document.querySelectorAll("#drawing .box > .card")];
        const seen = cards.map((each) => each.getBoundingClientRect()).filter((each) => each.top < frame.bottom);
        return [[frame.left, frame.right], seen.map((each) => each.left)];
    """)
    assert frame[0] <= min(lefts) < frame[1] - 100


_OPENED = """
    const frame = document.getElementById("drawing").getBoundingClientRect();
    const shown = [...document.querySelectorAll("#drawing text")].filter((each) => each.checkVisibility());
    const zoom = parseInt(document.getElementById("zoom").textContent) / 100;
    const cards = [...document.querySelectorAll("#drawing .box > .card")].map((each) => each.getBoundingClientRect());
    const seen = cards.filter(({ top, bottom }) => top < frame.bottom && bottom > frame.top);
    return {
      smallest: Math.min(...shown.map((each) => zoom * parseFloat(getComputedStyle(each).fontSize))),
      seen: seen.length,
      cut: seen.filter(({ left, right }) => left < frame.left || right > frame.right).length,
    };
"""


@pytest.mark.parametrize(
    "make",
    [
        models.gpt2,
        models.yolo,
        models.wrong,
        models.with_findings,
        models.upgraded,
        models.normalized,
        models.unfolded,
        models.varied_wide,
        lambda: models.page_of("lstm_unrolled.opset17.onnx"),
    ],
)
@pytest.mark.parametrize("width", [1300, 390])
def test_the_drawing_opens_with_text_to_read_and_whole_boxes(make: object, width: int, open_page: Open) -> None:
    page = open_page(make())  # type: ignore[operator]
    with page.narrow(width):
        page.run("document.getElementById('show-drawing').click()")
        opened = page.run(_OPENED)
    assert opened["smallest"] >= 11
    assert opened["seen"] > 1
    assert opened["cut"] == 0


def test_another_width_arranges_the_boxes_anew(open_page: Open) -> None:
    page = open_page(models.yolo(1))
    script = "return Math.max(...[...document.querySelectorAll('.band')].map((each) => each.offsetWidth))"
    wide = page.run(script)
    page.resize(390)
    page.wait(lambda: page.run(script) <= 390 < wide)
    assert page.run(_OPENED)["cut"] == 0
    page.resize(None)
    page.wait(lambda: page.run(script) == wide)


def test_names_in_lists_lose_what_they_share_in_front(open_page: Open) -> None:
    page = open_page(models.long_names())
    assert page.texts(".row b") == ["…layers.0/attention/Split", "…layers.1/attention/Split"]
    page.press("/", *"layers.1")
    assert page.texts(".row b") == ["…Split"]


def test_a_filter_and_a_search_show_the_list_that_has_results(open_page: Open) -> None:
    page = open_page(models.yolo())
    assert page.one('#tabs [aria-selected="true"]').get_attribute("data-tab") == "splits"
    page.one('#filter-operator option[value="Sigmoid"]').click()
    assert page.one('#tabs [aria-selected="true"]').get_attribute("data-tab") == "nodes"
    assert set(page.texts(".row b")) == {"Sigmoid"}
    page.one('#filter-operator option[value=""]').click()
    page.one("#search").click()
    page.press(*"cv1/conv", ENTER)
    assert page.one("#panel .where").text == "main/model.1/cv1/conv"
    assert page.run("return document.activeElement.id") == "search"


@pytest.mark.parametrize(
    ("query", "reason", "marked"),
    [
        ("weight conv", "reads weight", ["weight"]),
        ("x weight", "reads x · reads weight", ["x", "weight"]),
        ("conv", "", []),
        ("[n,", "type float32[N, 8, 4, 4]", ["[N,"]),
    ],
)
def test_a_hit_says_why_it_matched(query: str, reason: str, marked: list[str], open_page: Open) -> None:
    page = open_page(models.constants())
    page.press("/", *query)
    first = page.all(".row")[0]
    assert first.find_element("css selector", "b").text == "Conv"
    found = first.find_elements("css selector", ".reason")
    assert [each.text.strip() for each in found] == ([reason] if reason else [])
    assert [each.text for each in first.find_elements("css selector", "mark")] == marked


def test_a_phone_shows_one_of_list_drawing_and_details(open_page: Open) -> None:
    page = open_page(models.wrong())
    with page.narrow():
        assert page.run("return document.documentElement.scrollWidth") <= 390
        shown = {"show-list": "#list", "show-drawing": "#drawing", "show-details": "#panel"}
        for tab, pane in shown.items():
            page.one(f"#{tab}").click()
            assert [each for each in shown.values() if page.one(each).is_displayed()] == [pane]
            assert page.one("#title").is_displayed()
            assert page.one(pane).size["height"] > 500
        page.one("#show-list").click()
        page.one('[data-tab="splits"]').click()
        page.all(".row")[1].click()
        assert page.one("#drawing .box.selected").is_displayed()
        page.one("#drawing .box.selected").click()
        assert page.one("#panel").is_displayed()


def test_the_whole_drawing_as_one_svg(open_page: Open) -> None:
    page = open_page(models.unfolded())
    script = """
        const kept = URL.createObjectURL;
        URL.createObjectURL = (blob) => (window.saved = blob, kept(blob));
        document.getElementById("save").click();
        URL.createObjectURL = kept;
        const done = arguments[0];
        window.saved.text().then(done);
    """
    drawing = ElementTree.fromstring(page.driver.execute_async_script(script))
    texts = {each.text for each in drawing.iter("{http://www.w3.org/2000/svg}text")}
    assert {f"/encoder/layer/node_{i}" for i in range(60)} <= texts
    for each in drawing.iter("{http://www.w3.org/2000/svg}rect"):
        assert each.get("fill", "").startswith("rgb") or each.get("fill") == "none"
    assert not [each for each in drawing.iter() if each.get("class")]


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
