"""docs/how-a-node-is-converted.md lists the files that two conversions enter, in order."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType

import onnx
import pytest

import splitgraph

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-a-node-is-converted.md"
PACKAGE = str(ROOT / "splitgraph")

SPLIT = (
    '<ir_version: 8, opset_import: ["" : 18]> g (float[N,6] x) => (float[N,A] a, float[N,B] b)'
    " { a, b = Split<axis=1,num_outputs=2>(x) }"
)
RESIZE = (
    '<ir_version: 8, opset_import: ["" : 13]> g (float[1,3,8,8] x, float[4] scales) => (float[N,C,H,W] y)'
    ' { y = Resize<mode="linear">(x, , scales) }'
)


def files_entered(text: str, target: int) -> list[str]:
    """The files of conversion and the API whose functions a downgrade calls, each where it is first entered."""
    model = onnx.parser.parse_model(text)
    # The first conversion loads modules and fills tables.
    splitgraph.downgrade(model, target)
    entered: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(PACKAGE):
            entered.setdefault(path[len(PACKAGE) + 1 :])

    sys.setprofile(note)
    try:
        splitgraph.downgrade(model, target)
    finally:
        sys.setprofile(None)
    files = [path.removeprefix("conversion/") for path in entered if path.startswith("conversion/") or path == "api.py"]
    return ["splitgraph/api.py" if path == "api.py" else path for path in files]


@pytest.mark.parametrize(("start", "text", "target"), [("split", SPLIT, 13), ("Resize", RESIZE, 11)])
def test_the_page_lists_the_files_in_order(start: str, text: str, target: int) -> None:
    found = re.search(rf"A model with one {start} enters: ([^:]*)\.\n", PAGE.read_text(encoding="utf-8"))
    assert found is not None
    assert re.findall(r"`([^`]+)`", found[1]) == files_entered(text, target)


def test_every_file_and_type_exists() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name in dict.fromkeys(re.findall(r"`([\w/]+\.py)`", page)):
        assert (ROOT / name).exists() or (ROOT / "splitgraph" / "conversion" / name).exists(), name
    for kind, path in re.findall(r"^\| `(\w+)` \|.*\| `([\w/.]+)` \|$", page, re.M):
        held = ROOT / path if path.startswith("splitgraph/") else ROOT / "splitgraph" / "conversion" / path
        assert f"class {kind}" in held.read_text(encoding="utf-8"), kind
