"""Which test modules pytest leaves out, in whole or in part, where a module of another package is missing.

    python tests/left_out_tests.py openvino

prints them: CI runs them again where everything is installed.
"""

from __future__ import annotations

import importlib.util
import runpy
import sys
from collections.abc import Collection
from pathlib import Path
from unittest.mock import patch

TESTS = Path(__file__).parent


def left_out(missing: Collection[str]) -> set[Path]:
    """Return the test modules that the conftest files leave out."""
    find, found = importlib.util.find_spec, set[Path]()
    with patch.object(importlib.util, "find_spec", lambda name, *rest: None if name in missing else find(name, *rest)):
        for conftest in TESTS.rglob("conftest.py"):
            if "collect_ignore" in conftest.read_text(encoding="utf-8"):
                names = runpy.run_path(str(conftest))["collect_ignore"]
                found.update(conftest.parent / name for name in names)
    return found


def asking(name: str) -> set[Path]:
    """Return the test modules that ask whether a module is there."""
    asks = (
        f'find_spec("{name}")',
        f'importorskip("{name}"',
        "find_spec(name)",
        "find_spec(module)",
        "find_spec(engine)",
    )
    texts = ((path, path.read_text(encoding="utf-8")) for path in TESTS.rglob("test_*.py"))
    return {path for path, text in texts if any(ask in text for ask in asks)}


if __name__ == "__main__":
    sys.path[:0] = [str(TESTS)]
    (name,) = sys.argv[1:]
    for path in sorted((left_out({name}) - left_out(())) | asking(name)):
        print(path.relative_to(TESTS.parent))
