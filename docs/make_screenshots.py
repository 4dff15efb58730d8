"""Writes the pictures of docs/report.md to docs/images, with Chromium: `python docs/make_screenshots.py`.

Needs Debian's packages chromium and chromium-driver, the extra `browser`, and Pillow, which writes small files. The
models are those of the tests.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import splitgraph
from splitgraph.reports.html.page import IndexRow, index_page
from splitgraph.reports.html.split_svg import find_split, split_svg

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT / "tests"))

# The tests' own modules.
from browser import models  # noqa: E402
from browser.chromium import Opened, start_chromium  # noqa: E402

_SIZE = (1440, 940)


class Picture(NamedTuple):
    """A page, what is done on it before the picture is taken, and light or dark."""

    make: Callable[[], str]
    act: Callable[[Opened], Any]
    scheme: str = "light"


def _index() -> str:
    kinds = [("converted", ""), ("converted", ""), ("converted", ""), ("already", "the model is at opset 18 already")]
    kinds += [
        ("refused", "SG402: Split with lengths known only at run time needs opset 10"),
        ("failed", "the file is empty"),
    ]
    rows = []
    for i in range(240):
        status, message = kinds[(i * 5 + i // 7) % len(kinds)]
        name = f"zoo/{('vision', 'text', 'audio')[i % 3]}/model_{i:03}.onnx"
        before = "opset 18" if status == "already" else f"opset {9 + i % 8}"
        after = "opset 18" if status in ("converted", "already") else ""
        rows.append(
            IndexRow(
                name,
                status,
                link=f"pages/{i}.html" if status != "failed" else None,
                before=before if status != "failed" else "",
                after=after,
                nodes=100 + 37 * i if status != "failed" else None,
                splits=i % 13 if status != "failed" else None,
                errors=2 if status == "refused" else 0,
                warnings=i % 3 if status == "converted" else 0,
                seconds=0.05 + i % 29 / 12,
                message=message,
            )
        )
    return index_page(rows, title="upgrade zoo/ --opset 18")


_OPEN_LARGEST_STRETCH = """
const boxes = [...document.querySelectorAll(".box.repeat .box.stretch")];
const number = (each) => parseInt(each.querySelector(".op").textContent, 10);
boxes.sort((a, b) => number(b) - number(a))[0].dispatchEvent(new MouseEvent("dblclick", { bubbles: true }));
"""


def _open_stretch(page: Opened) -> None:
    page.run(_OPEN_LARGEST_STRETCH)


def _first_finding(page: Opened) -> None:
    page.one('[data-tab="findings"]').click()
    page.press("j")


def _changed_split(page: Opened) -> None:
    page.press("/", *"Split-18")
    page.one(".row").click()


def _by_seconds(page: Opened) -> None:
    next(each for each in page.all("thead button") if each.text == "seconds").click()


def _constants(page: Opened) -> None:
    page.press("/", *"ln_f", "\ue007")


PICTURES = {
    "gpt2": Picture(models.gpt2, lambda page: page.press("j", "j", "j")),
    "gpt2-dark": Picture(models.gpt2, lambda page: page.press("j"), "dark"),
    "opened": Picture(models.gpt2, _open_stretch),
    "yolo": Picture(models.yolo, lambda page: page.press("j")),
    "large": Picture(models.large, lambda page: page.press("j")),
    "findings": Picture(
        models.with_findings, lambda page: (page.one('[data-tab="findings"]').click(), page.press("j"))
    ),
    "changes": Picture(models.upgraded, _changed_split),
    "groups": Picture(models.normalized, lambda page: page.one(".row").click()),
    "node": Picture(lambda: models.page_of("gpt2.opset17.onnx"), _constants),
    "index": Picture(_index, _by_seconds),
}
SPLITS = {
    "split-gpt2": ("gpt2.opset17.onnx", "/h.0/attn/Split"),
    "split-uneven": ("split_in_function.onnx", "main/gate_sequence/split"),
    "split-variadic": ("interval_split.xml", "heads"),
    "split-sequence": ("split_to_sequence11_each.onnx", "split"),
}


def _write(picture: bytes, path: Path) -> None:
    """Write a picture with 192 colours, which is as good to the eye and takes half of the space."""
    from PIL import Image

    reduced = Image.open(io.BytesIO(picture)).convert("RGB").quantize(192, dither=Image.Dither.NONE)
    reduced.save(path, optimize=True)


def main() -> None:
    """Write every picture."""
    IMAGES.mkdir(exist_ok=True)
    for name, (model, split) in SPLITS.items():
        analysis = splitgraph.infer(ROOT / "models" / model)
        (IMAGES / f"{name}.svg").write_text(split_svg(analysis, find_split(analysis, split)), encoding="utf-8")
    driver = start_chromium("--hide-scrollbars")
    driver.set_window_size(*_SIZE)
    try:
        with tempfile.TemporaryDirectory() as folder:
            for name, picture in PICTURES.items():
                path = Path(folder, "page.html")
                path.write_text(picture.make(), encoding="utf-8")
                page = Opened(driver, path, {"prefers-color-scheme": picture.scheme})
                picture.act(page)
                page.run("document.activeElement.blur()")
                _write(driver.get_screenshot_as_png(), IMAGES / f"{name}.png")
    finally:
        driver.quit()


if __name__ == "__main__":
    main()
