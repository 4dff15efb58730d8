"""Names that are markup or addresses are text, everywhere on a page."""

from __future__ import annotations

import pytest

from splitgraph.reports.html.page import IndexRow, index_page

from . import models
from .chromium import Open, Opened

pytestmark = pytest.mark.browser

# As it is displayed: what would turn the text around is written as an escape.
SHOWN = models.HOSTILE.replace("\u202e", "\\u202e")


def assert_nothing_was_run(page: Opened) -> None:
    assert page.run("return document.title") == f"{SHOWN} · splitgraph"
    assert page.all("img, b b, main script, a[href^='javascript']") == []


def test_the_page_of_a_model(open_page: Open) -> None:
    page = open_page(models.wrong())
    assert page.texts("#title") == [SHOWN]
    for tab in ("findings", "nodes", "splits"):
        page.one(f'[data-tab="{tab}"]').click()
        page.all(".row")[0].click()
        assert SHOWN in page.one("#panel .where").get_attribute("textContent")
    assert f"{SHOWN} a" in page.texts("#panel .parts b")
    assert any("<i>N</i>" in text for text in page.texts("#drawing .name"))
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    assert any(SHOWN in text for text in page.texts("#printed h3"))
    assert_nothing_was_run(page)


def test_the_index_page(open_page: Open) -> None:
    rows = [IndexRow(models.HOSTILE, models.HOSTILE, link="javascript:document.title='hit'", message=models.HOSTILE)]
    page = open_page(index_page(rows, title=models.HOSTILE))
    assert page.texts("#folder")[0] + page.texts("tbody th")[0] == SHOWN
    assert page.texts("tbody .message") == [SHOWN]
    assert page.one("tbody a").get_attribute("href").startswith("file:///")
    assert_nothing_was_run(page)


def test_a_script_that_is_not_ours_does_not_run(open_page: Open) -> None:
    text = models.page_of("c2f.opset17.onnx").replace("</body>", "<script>document.title = 'hit'</script></body>")
    page = open_page(text)
    assert page.run("return document.title") == "c2f.opset17.onnx · splitgraph"
    assert [message for message in page.console() if "Content Security Policy" in message]
