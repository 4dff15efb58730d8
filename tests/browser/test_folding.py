"""Folded layers and stretches, and models of 20,000 nodes: little is laid out, and everything can be reached."""

from __future__ import annotations

import pytest

from . import models
from .chromium import Open

pytestmark = pytest.mark.browser

ENTER = "\ue007"


def test_twelve_equal_layers_are_one(open_page: Open) -> None:
    page = open_page(models.gpt2())
    assert page.texts(".box.repeat .badge text") == ["× 12"]
    assert len(page.all("#drawing .box.split")) == 1
    assert page.texts(".row b")[:2] == ["Split_16", "Split_156"]


def test_folded_layers_open_and_close(open_page: Open) -> None:
    page = open_page(models.gpt2())
    page.one(".box.repeat > .corner").click()
    assert page.texts(".band-title span")[:2] == ["layer 1 of 12", "layer 2 of 12"]
    assert not page.all(".box.repeat")
    page.one(".fold").click()
    assert page.texts(".box.repeat .badge text") == ["× 12"]


def test_a_split_of_a_folded_layer_is_shown_by_the_first_one(open_page: Open) -> None:
    page = open_page(models.gpt2())
    page.press("j", "j", "j")
    assert page.one("#panel .where").text == "main/Split_296"
    assert "In layer 3 of 12" in page.one("#panel .note").text
    assert page.visible(".box.split.selected")
    page.one("#panel .note button").click()
    assert page.one("#panel .where").text == "main/Split_296"
    assert page.one(".box.split.selected .name").text == "Split_296"
    assert page.visible(".box.split.selected")


def test_enter_opens_what_hides_the_chosen_split(open_page: Open) -> None:
    page = open_page(models.gpt2())
    page.press("j", "j", ENTER)
    assert page.one(".box.split.selected .name").text == "Split_156"
    assert page.texts(".band-title span")[0] == "layer 1 of 12"


def test_a_stretch_opens_with_the_keyboard(open_page: Open) -> None:
    page = open_page(models.gpt2())
    page.run("document.querySelector('.box.repeat .box.stretch').focus()")
    page.press(ENTER)
    opened = page.one(".box.open")
    assert opened.get_attribute("aria-label") is not None
    assert len(page.all(".box.open .box.node")) > 1


@pytest.mark.parametrize("width", [1440, 1300, 390])
def test_edges_stay_inside_their_frame(width: int, open_page: Open) -> None:
    page = open_page(models.gpt2())
    with page.narrow(width):
        page.run("""
            const stretch = [...document.querySelectorAll(".box.repeat .box.stretch")].at(-1);
            stretch.dispatchEvent(new MouseEvent("dblclick", { bubbles: true }));
        """)
        beyond = page.run("""
            return [...document.querySelectorAll(".box.open, .box.repeat")].flatMap((box) => {
              const frame = box.querySelector(":scope > .card").getBoundingClientRect();
              const lines = [...box.querySelectorAll(":scope > g > .lines .line")];
              const places = lines.map((each) => each.getBoundingClientRect());
              return places.filter(({ left, right }) => left < frame.left || right > frame.right).length;
            });
        """)
    assert beyond == [0, 0]


def test_search_reaches_a_node_in_a_stretch(open_page: Open) -> None:
    page = open_page(models.gpt2())
    page.press("/", *"Softmax")
    assert len(page.all(".row")) >= 12
    page.all(".row")[0].click()
    assert "folded box" in page.one("#panel .note").text
    page.one("#panel .note button").click()
    assert page.one(".box.selected .op").text == "Softmax"
    assert page.visible(".box.selected")


def test_arithmetic_on_shapes_is_shown_when_asked_for(open_page: Open) -> None:
    page = open_page(models.gpt2())
    page.press("/", *"Unsqueeze")
    page.all(".row")[0].click()
    assert page.one("#shapes").get_attribute("aria-pressed") == "true"
    assert page.all(".box.selected")
    page.one("#shapes").click()
    assert page.one("#shapes").get_attribute("aria-pressed") == "false"


def test_yolo_blocks_are_folded(open_page: Open) -> None:
    page = open_page(models.yolo(4))
    assert page.texts(".box.repeat .badge text") == ["× 4"]
    assert page.texts(".box.repeat .segment text") == ["4", "4"]


@pytest.mark.parametrize("make", [models.large, lambda: models.varied(20_000)], ids=["equal layers", "no two alike"])
def test_20_000_nodes(make: object, open_page: Open) -> None:
    page = open_page(make())  # type: ignore[operator]
    assert page.all("#drawing .box.split")
    assert len(page.all("#drawing .box")) < 400
    assert len(page.all(".row")) < 60
    last = page.run("return document.getElementById('list').scrollTop = 1e9") or 0
    page.wait(lambda: page.texts(".row b")[-1].lower() == "split_6665")
    page.all(".row")[-1].click()
    assert last >= 0
    assert page.one("#panel .where").text.lower() == "main/split_6665"
    assert page.visible(".box.split.selected")
    page.press("/", *"relu_6000")
    page.wait(lambda: len(page.all(".row")) == 1)
    page.one(".row").click()
    assert page.one("#panel .where").text.lower().endswith("relu_6000")


def test_what_is_far_out_of_view_is_not_in_the_document(open_page: Open) -> None:
    page = open_page(models.varied(20_000))
    page.run("document.getElementById('drawing').scrollTop = 40000")
    page.wait(
        lambda: page.texts("#drawing .box.split .name") and "split_0" not in page.texts("#drawing .box.split .name")
    )
    assert len(page.all("#drawing .box")) < 400
    page.run("document.getElementById('drawing').scrollTop = 0")
    page.wait(lambda: "split_0" in page.texts("#drawing .box.split .name"))
