"""Printing: a page becomes a PDF with its drawing, splits and findings."""

from __future__ import annotations

import base64
from itertools import pairwise

import pytest

from splitgraph.reports.html.page import IndexRow, index_page

from . import models
from .chromium import Open, Opened

pytestmark = pytest.mark.browser


def printed(page: Opened) -> bytes:
    """The PDF of a page."""
    found = page.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    return base64.b64decode(found["data"])


def sheets(pdf: bytes) -> int:
    return pdf.count(b"/Type /Page\n") or pdf.count(b"/Type /Page")


def test_a_page_is_printed(open_page: Open) -> None:
    page = open_page(models.wrong())
    pdf = printed(page)
    assert pdf.startswith(b"%PDF-")
    assert sheets(pdf) >= 1
    page.wait(lambda: page.texts("#printed h2") == [])


def pieces(page: Opened) -> list[dict[str, float]]:
    """What each piece of the drawing shows, in units of the drawing, and its size on paper."""
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    return list(
        page.run("""
        return [...document.querySelectorAll("#printed .piece svg")].map((each) => {
            const { x, y, width, height } = each.viewBox.baseVal;
            return { x, y, width, height, wide: +each.getAttribute("width"), high: +each.getAttribute("height") };
        })""")
    )


def test_a_large_drawing_is_cut_between_boxes_into_pages_that_can_be_read(open_page: Open) -> None:
    page = open_page(models.unfolded())
    found = pieces(page)
    assert len(found) > 1
    for piece in found:
        assert piece["wide"] <= 680
        assert piece["high"] <= 841
        assert piece["wide"] >= 0.48 * piece["width"] - 1
    for above, below in pairwise(found):
        assert below["y"] in (0, pytest.approx(above["y"] + above["height"], abs=0.2))
    cut = page.run("""
        const cut = [];
        for (const each of document.querySelectorAll("#printed .piece svg")) {
            const { y, height } = each.viewBox.baseVal;
            for (const box of each.querySelectorAll(".box > .card")) {
                const place = box.getBBox();
                const top = box.getCTM().f / box.getCTM().d + y;
                const end = y + height;
                if (top < end - 1 && top + place.height > end + 1) cut.push(box.parentNode.getAttribute("aria-label"));
            }
        }
        return cut;
    """)
    assert cut == []
    assert sheets(printed(page)) == len(found)


def test_a_drawing_for_too_many_pages_is_left_to_a_link(open_page: Open) -> None:
    page = open_page(models.varied(3000))
    assert pieces(page) == []
    assert page.one("#printed .too-large a").get_attribute("href") == page.address


def test_what_is_printed(open_page: Open) -> None:
    page = open_page(models.wrong())
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    assert page.texts("#printed h2") == ["Splits", "Findings"]
    assert len(page.all("#printed .printed-split .bar")) == 2
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert page.one("#printed").is_displayed()
    assert not page.one("#list").is_displayed()
    assert not page.one(".tools").is_displayed()
    assert not page.one("#drawing").is_displayed()
    assert page.one("#printed .piece .box.split").is_displayed()
    for heading in page.all("#printed h2, #printed h3"):
        assert heading.value_of_css_property("break-after") == "avoid"
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_a_dark_page_is_printed_light(open_page: Open) -> None:
    page = open_page(models.wrong(), {"prefers-color-scheme": "dark"})
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert page.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_all_rows_of_an_index_are_printed(open_page: Open) -> None:
    page = open_page(index_page([IndexRow(f"m{i}.onnx", "failed") for i in range(900)], title="zoo"))
    assert sheets(printed(page)) > 15
    assert len(page.all("tbody tr")) == 900
