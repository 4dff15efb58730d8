"""Printing: a page becomes a PDF with its drawing, splits and findings."""

from __future__ import annotations

import base64

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
    assert sheets(pdf) >= 2
    page.wait(lambda: page.texts("#printed h2") == [])


def test_what_is_printed(open_page: Open) -> None:
    page = open_page(models.wrong())
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    assert page.texts("#printed h2") == ["Splits", "Findings"]
    assert len(page.all("#printed .bar")) == 2
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert page.one("#printed").is_displayed()
    assert not page.one("#list").is_displayed()
    assert not page.one(".tools").is_displayed()
    assert page.one("#drawing .box.split").is_displayed()
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
