"""The page of a rewrite: changes marked in both models, forms of a split side by side, reasons."""

from __future__ import annotations

import pytest

from . import models
from .chromium import Open

pytestmark = pytest.mark.browser

ESCAPE = "\ue00c"


def test_the_result_is_shown_first_with_its_changes(open_page: Open) -> None:
    page = open_page(models.upgraded())
    assert page.texts('#sides [aria-pressed="true"]') == ["After"]
    assert page.texts('#tabs [aria-selected="true"]')[0].startswith("Changes")
    assert page.all(".box.split.has-changed")
    assert "opset: 11 → 18" in page.texts("#panel .conditions li")


def test_both_forms_of_a_split_and_the_reason(open_page: Open) -> None:
    page = open_page(models.upgraded())
    page.press("/", *"Split-18")
    page.one(".row").click()
    assert page.texts("#panel .form b") == ["Split-11", "Split-18"]
    assert len(page.all("#panel .form .bar")) == 2
    assert page.texts("#panel .change p")[0] == "opset 18"
    assert "attribute split: [24, 24, 24] → none" in page.texts("#panel .detail")


def test_before(open_page: Open) -> None:
    page = open_page(models.upgraded())
    assert "Split-18" in page.texts(".box.split .op")
    page.press("b")
    assert page.texts('#sides [aria-pressed="true"]') == ["Before"]
    assert "Split-11" in page.texts(".box.split .op")
    page.all("#sides button")[1].click()
    assert "Split-18" in page.texts(".box.split .op")


def test_a_removed_node_is_shown_in_the_first_model(open_page: Open) -> None:
    page = open_page(models.sliced())
    kinds = [text[0] for text in page.texts(".row b")]
    assert set(kinds) == {"−", "~", "+"}
    for _ in kinds:
        page.press("j")
    assert len(page.all('.row[aria-selected="true"]')) == 1
    page.all(".row")[kinds.index("−")].click()
    assert page.texts('#sides [aria-pressed="true"]') == ["Before"]
    assert page.texts("#panel .form b")[1] == "removed"
    page.all(".row")[kinds.index("+")].click()
    assert page.texts('#sides [aria-pressed="true"]') == ["After"]
    assert page.texts("#panel .form b")[0] == "not there"
    assert page.all(".box.has-added.selected")


def test_many_changes_are_grouped_by_kind(open_page: Open) -> None:
    page = open_page(models.normalized())
    assert page.texts("#tabs .number")[0] == "48"
    assert page.texts(".row b") == ["~ LayerNormalization-17 → Mul-13 …"]
    assert page.texts(".row .line-one span") == ["6"]
    assert "ReduceMean-13 × 2" in page.texts(".row .text")[0]
    page.one(".row").click()
    assert page.texts(".row .text.mono")[0] == "/layers.0/norm"
    assert len(page.all("#panel .values li")) == 6
    page.press("j")
    assert page.one("#panel .where").text == "main//layers.0/norm"
    page.one(".row").click()
    assert len(page.all(".row")) == 1
    page.press("/", *"layers.3")
    assert len(page.all(".row")) == 8


def test_a_group_is_marked_in_the_drawing_and_brought_into_view(open_page: Open) -> None:
    page = open_page(models.upgraded())
    assert not page.all("#drawing .of-group")
    kinds = page.texts(".row b")
    page.all(".row")[kinds.index("~ Split-11 → Split-18")].click()
    assert page.texts("#drawing .box.of-group > .op") == ["Split-18"]
    assert page.visible(".box.of-group")
    assert page.one("#panel h2").text.startswith("~ Split-11 → Split-18")
    page.all(".row")[kinds.index("~ Unsqueeze-11 → Unsqueeze-13")].click()
    marked = page.texts("#drawing .box.of-group > .op")
    assert len(marked) > 1
    assert "Split-18" not in marked
    assert page.visible(".box.selected")
    page.press(ESCAPE)
    assert not page.all("#drawing .of-group")


@pytest.mark.parametrize("make", [models.upgraded, models.exported_twice, models.normalized])
def test_each_group_says_why_or_what_differs(make: object, open_page: Open) -> None:
    page = open_page(make())  # type: ignore[operator]
    texts = [text.strip("▸ ") for text in page.texts(".group-row .text")]
    assert texts
    assert all(texts)


def test_before_and_after_keep_the_selection(open_page: Open) -> None:
    page = open_page(models.normalized())
    page.press("/", *"layers.3/norm")
    page.one('.row[title="main//layers.3/norm"]').click()
    for _ in range(2):
        assert page.one("#panel h2").text.startswith("Mul")
        assert page.one("#panel .where").text == "main//layers.3/norm"
        page.all("#sides button")[0].click()
        assert page.one("#panel h2").text.startswith("LayerNormalization")
        assert page.one("#panel .where").text == "main//layers.3/norm"
        page.press("b")
    # A node that did not change, and one that only one of the models has.
    page.one("#search").clear()
    page.one("#search").click()
    page.press(*"layers.2/relu")
    page.one('[data-tab="nodes"]').click()
    page.all(".row")[0].click()
    page.press("b")
    assert page.one("#panel .where").text == "main//layers.2/relu"
    assert page.one("#search").get_attribute("value") == "layers.2/relu"


def test_constants_that_changed_are_listed_and_not_drawn(open_page: Open) -> None:
    page = open_page(models.sliced())
    assert "− Constant-13" in page.texts(".row b")
    page.press("b")
    assert "Constant" not in page.texts("#drawing .op")
