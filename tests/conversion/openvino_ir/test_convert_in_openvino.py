"""IRs whose splits were rewritten, run in OpenVINO itself: they give what they gave before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
REFUSED = {f"{name} to split" for name in ("uneven", "uneven dynamic", "one length pinned", "two lengths pinned")}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[object]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parents[2]), *filter(None, sys.path)])}
    command = [sys.executable, str(HERE / "openvino_rewriting.py"), str(tmp_path_factory.mktemp("rewriting"))]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[object]] = json.loads(done.stdout)
    return found


def test_what_cannot_be_a_split_is_refused(told: dict[str, list[object]]) -> None:
    assert {name for name, (verdict, _) in told.items() if verdict == "refused"} == REFUSED
    assert all(told[name] == ["refused", ["SG408"]] for name in REFUSED)


def test_everything_else_is_rewritten_and_equal(told: dict[str, list[object]]) -> None:
    assert len(told) == 36
    for name, (verdict, layers) in told.items():
        if name not in REFUSED:
            wanted = "VariadicSplit" if name.endswith("variadic-split") else "Split"
            assert verdict == "equal", name
            assert isinstance(layers, list) and set(layers) == {wanted}, name
