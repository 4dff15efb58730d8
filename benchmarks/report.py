"""Reports: how long a page takes to make, how large it is, and when a browser shows its first drawing.

python benchmarks/report.py [RUNS]

Chromium and its driver must be installed (Debian: chromium, chromium-driver), and the extra `browser`. Each page is
opened RUNS times (5 by default), each time in a new tab; the median is shown. "First drawing" is from the start of the
navigation to the moment at which the drawing is in the document, and "painted" to the first frame that shows it. The
ratio is to an empty page of the same size in the same run: a page that holds the same data and draws nothing.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import onnx
from unrolled import unrolled

import models
import splitgraph
from splitgraph.reports.html.model_page import model_page
from splitgraph.reports.html.page import html_page

ROOT = Path(__file__).parents[1]
MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "GPT-2-like, 12 layers": lambda: models.decoder(12),
    "ShuffleNet-like": models.convolutional,
    "a third splits, 20,000 nodes": lambda: models.splits(20_000),
    "unrolled, 20,000 distinct nodes": lambda: unrolled(20_000),
    "GPT-2-like, 400 layers": lambda: models.decoder(400),
}
_PAINTED = """
const done = arguments[0];
requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())));
"""


class Figures(NamedTuple):
    """Seconds and bytes. infer, make: of inference, and of the page from its result. drawn, painted: of the first
    drawing. empty: until a page with the same data that draws nothing is loaded. search: until the list of nodes shows
    what was searched.
    """

    nodes: int
    infer: float
    make: float
    size: int
    drawn: float
    painted: float
    empty: float
    search: float
    boxes: int


def main() -> None:
    """Print the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    # The driver is a module of the tests.
    sys.path.insert(0, str(ROOT / "tests"))
    from browser.chromium import start_chromium

    driver = start_chromium()
    try:
        columns = (
            "model | nodes | infer | make the page | size | first drawing | painted | ratio to an empty page | search"
        )
        print(f"| {columns} | boxes in the document |\n|{'---|' * 10}")
        for name, make in MODELS.items():
            print(_row(name, _measure(driver, make(), runs)), flush=True)
    finally:
        driver.quit()


def _row(name: str, found: Figures) -> str:
    size = f"{found.size / 1e6:.2f} MB"
    seconds = [f"{value:.2f} s" for value in (found.infer, found.make)]
    shown = [
        f"{found.drawn:.2f} s",
        f"{found.painted:.2f} s",
        f"{found.drawn / found.empty:.1f}",
        f"{found.search:.2f} s",
    ]
    return f"| {' | '.join([name, f'{found.nodes:,}', *seconds, size, *shown, str(found.boxes)])} |"


def _measure(driver: Any, model: onnx.ModelProto, runs: int) -> Figures:
    start = time.perf_counter()
    analysis = splitgraph.infer(model)
    inferred = time.perf_counter()
    text = model_page(analysis, "model.onnx")
    made = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        page, empty = Path(folder, "page.html"), Path(folder, "empty.html")
        page.write_text(text, encoding="utf-8")
        # The same data, in a page that only reads it.
        data = text.partition('id="data">')[2].partition("</script>")[0]
        empty.write_text(
            html_page("", data, body="page.html", scripts=(), styles=("theme.css",), library=True), encoding="utf-8"
        )
        opened = [_open(driver, page) for _ in range(runs)]
        blank = [_load(driver, empty) for _ in range(runs)]
    columns = [median(values) for values in zip(*opened, strict=True)]
    drawn, painted, search, boxes = columns
    times = inferred - start, made - inferred, len(text.encode())
    return Figures(len(model.graph.node), *times, drawn, painted, median(blank), search, int(boxes))


def _open(driver: Any, page: Path) -> tuple[float, float, float, int]:
    """Seconds to the first drawing, until painted, and of a search; boxes in the document."""
    driver.switch_to.new_window("tab")
    driver.get(page.as_uri())
    painted = driver.execute_async_script(_PAINTED) / 1000
    drawn = driver.execute_script("return performance.getEntriesByName('splitgraph-drawn')[0].startTime") / 1000
    boxes = driver.execute_script("return document.querySelectorAll('#drawing .box').length")
    search = driver.execute_script("""
        const start = performance.now();
        const search = document.getElementById("search");
        search.value = "relu";
        search.dispatchEvent(new Event("input"));
        return performance.now() - start;
    """)
    _close(driver)
    return drawn, painted, search / 1000, boxes


def _load(driver: Any, page: Path) -> float:
    driver.switch_to.new_window("tab")
    driver.get(page.as_uri())
    loaded = driver.execute_script("return performance.timing.loadEventEnd - performance.timing.navigationStart")
    _close(driver)
    return max(float(loaded), 1.0) / 1000


def _close(driver: Any) -> None:
    driver.close()
    driver.switch_to.window(driver.window_handles[0])


if __name__ == "__main__":
    main()
