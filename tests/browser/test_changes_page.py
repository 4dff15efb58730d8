"""The page of a rewrite: changes marked in both models, forms of a split side by side, reasons."""

from __future__ import annotations

import pytest

from . import models
from .chromium import Open

pytestmark = pytest.mark.browser


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


def test_constants_that_changed_are_listed_and_not_drawn(open_page: Open) -> None:
    page = open_page(models.sliced())
    assert "− Constant-13" in page.texts(".row b")
    page.press("b")
    assert "Constant" not in page.texts("#drawing .op")
