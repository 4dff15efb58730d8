"""Infers random chains, for tests that compare processes: `python chain_worker.py SALT ORDER SEED...`.

Prints, as JSON, everything that is shown of each chain; a seed that ends with "b" is that of a chain of broadcasts.

SALT: atoms and dims hash by their address, so that what is in a set of them comes in an order of its own in each
process; another salt stands for other addresses. ORDER: "given", "reversed", or "forgetful" for no warm cache.
"""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from types import ModuleType

sys.path.insert(0, str(Path(__file__).parents[1]))

from chain_models import model_of_chain
from random_chains import random_chain

import splitgraph
from splitgraph.dim import Dim
from splitgraph.dim.atoms import Atom


def main(salt: int, order: str, seeds: list[str]) -> None:
    _scatter(Atom, salt)
    _scatter(Dim, salt)
    shown = {}
    for seed in reversed(seeds) if order == "reversed" else seeds:
        if order == "forgetful":
            _forget()
        shown[seed] = _shown(seed)
    print(json.dumps(shown))


def _shown(seed: str) -> list[str]:
    chain, _ = random_chain(int(seed.rstrip("b")), broadcasts=seed.endswith("b"))
    analysis = splitgraph.infer(model_of_chain(chain))
    return [
        *(f"{name}: {value}" for name, value in analysis.types.items()),
        *(f"obligation {each}" for each in analysis.obligations),
        *(f"assumption {each}" for each in analysis.assumptions),
        *(f"symbol {name}: {bounds}" for name, bounds in analysis.symbols.items()),
        *(f"{found.location}: {found.message}" for found in analysis.diagnostics),
        *(f"split {list(map(str, split.lengths))} {list(map(str, split.obligations))}" for split in analysis.splits),
    ]


def _scatter(kind: type, salt: int) -> None:
    kind.__hash__ = lambda self: hash((salt, id(self)))  # type: ignore[assignment, method-assign]


def _forget() -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("splitgraph.") and isinstance(module, ModuleType):
            for held in vars(module).values():
                if hasattr(held, "cache_clear"):
                    held.cache_clear()
    gc.collect()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
