"""The models of `models/` as parameters of tests that take long with each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest


def one_of_each(paths: Sequence[Path]) -> list[Any]:
    """Return the models as parameters. An architecture is there as several exporters and opsets give it: the default
    tests take one of them, the slow tests take the others.
    """
    chosen = {path.name.partition(".")[0]: path for path in sorted(paths, key=lambda path: crc32(path.name.encode()))}
    return [path if path in chosen.values() else pytest.param(path, marks=pytest.mark.slow) for path in paths]
