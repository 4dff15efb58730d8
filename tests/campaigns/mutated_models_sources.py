"""The models that the campaign `mutated_models.py` starts from, and the values that it puts into them.

A seed stands for one mutant only as long as these models are the same, so that it belongs to a version of onnx.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import onnx
from growing_models import FAMILIES
from node_tests import node_tests

MODELS = Path(__file__).parents[2] / "models"
# Larger models take too long for thousands of cases.
MOST_BYTES = 40_000
# So many of a hundred mutants are made of a model of each kind.
_SHARES = {"node test": 55, "model of the project": 24, "file of onnx": 15, "growing model": 6}
_GROWN_TO = 6

# Numbers at the limits of the types that a field can have.
NUMBERS = (0, 1, -1, 2, 3, 7, 127, 128, 1000, 2**31 - 1, 2**31, -(2**31), 2**32, 2**40, 2**62, 2**63 - 1, -(2**63))
# Texts that a name, the name of a dimension, a domain, or a path may have.
TEXTS = (
    b"", b"x", b"?", b"-1", b"N", b"N+1", b"N//0", b"N % 0", b"2**2**99", b"N**99999", b"9" * 5000, b"(" * 3000,
    b"N*" * 2000 + b"N", b"max(N)", b"__import__('os')", b"a\nb", b"\x1b[31m", b"\0", b"\xff\xfe", b"\xed\xa0\x80",
    "Größe".encode(), b"ai.onnx", b"ai.onnx.ml", b"Split", b"If", b"Loop", b"then_branch", b"w.bin", b"../w.bin",
    b"/dev/zero", b"/dev/stdin", b".", b"/", b"y" * 70_000,
)  # fmt: skip


class Source(NamedTuple):
    """A model that is mutated: its name and its bytes."""

    name: str
    written: bytes


@cache
def sources() -> dict[str, tuple[Source, ...]]:
    """The models of each kind that are small enough."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data"
    grown = [(name, family.make(_GROWN_TO).SerializeToString()) for name, family in FAMILIES.items()]
    found: dict[str, Iterable[tuple[str, bytes]]] = {
        "node test": _node_tests(),
        "model of the project": [(path.name, path.read_bytes()) for path in sorted(MODELS.glob("*.onnx"))],
        "file of onnx": [(str(path.relative_to(folder)), path.read_bytes()) for path in sorted(folder.rglob("*.onnx"))],
        "growing model": grown,
    }
    return {
        kind: tuple(Source(*each) for each in models if len(each[1]) <= MOST_BYTES) for kind, models in found.items()
    }


def _node_tests() -> list[tuple[str, bytes]]:
    return [(case.name, case.model.SerializeToString()) for case in node_tests()]


def pick_source(rng: random.Random) -> Source:
    """A model to mutate."""
    (kind,) = rng.choices(list(_SHARES), list(_SHARES.values()))
    return rng.choice(sources()[kind])


def pick(rng: random.Random, changes: dict[str, Callable[[], object]]) -> str:
    """Make one of these changes, and return its name."""
    name = rng.choice(list(changes))
    changes[name]()
    return name
