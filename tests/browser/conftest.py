"""One Chromium for all tests of a process; each test opens its own page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .chromium import Open, Opened, start_chromium

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chrome]:
    """The browser."""
    driver = start_chromium()
    yield driver
    driver.quit()


@pytest.fixture
def open_page(chromium: Chrome, tmp_path: Path) -> Iterator[Open]:
    """Opens the text of a page; after the test, no page may have logged or requested anything."""
    pages: list[Opened] = []

    def open_text(text: str, media: dict[str, str] | None = None) -> Opened:
        path = tmp_path / f"page{len(pages)}.html"
        path.write_text(text, encoding="utf-8")
        pages.append(Opened(chromium, path, media))
        return pages[-1]

    yield open_text
    for page in pages[-1:]:
        page.assert_quiet()


Make = Callable[[], str]
