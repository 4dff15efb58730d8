"""Run as a program: what of ours waits for the collector of cycles after each verb on each model, as JSON. A process of
its own, for the collector looks at all that there is, and tests around this one hold much.
"""

from __future__ import annotations

import contextlib
import gc
import json
import sys
from collections.abc import Callable
from pathlib import Path

from google.protobuf.message import Message

import splitgraph

VERBS: dict[str, Callable[[str], object]] = {
    "infer": splitgraph.infer,
    "to opset 9": lambda path: splitgraph.downgrade(path, 9),
    "to opset 28": lambda path: splitgraph.upgrade(path, 28),
    "to split": lambda path: splitgraph.convert(path, "split"),
    "to variadic-split": lambda path: splitgraph.convert(path, "variadic-split"),
}


def make_a_cycle(path: str) -> None:
    """What the others must not do, so that it is seen to be found."""
    held: list[object] = [splitgraph.load(path)]
    held.append(held)


def waiting(work: Callable[[str], object], path: str) -> list[str]:
    """What of ours only the collector of cycles frees, once the result is dropped."""

    def run() -> None:
        # A refusal, too, leaves nothing behind.
        with contextlib.suppress(splitgraph.SplitgraphError):
            work(path)

    run()
    gc.collect()
    # What is there already need not be looked at again.
    gc.freeze()
    gc.disable()
    run()
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    gc.set_debug(0)
    kinds = [type(held) for held in gc.garbage]
    gc.garbage.clear()
    gc.enable()
    return sorted({kind.__name__ for kind in kinds if issubclass(kind, Message) or "splitgraph" in kind.__module__})


def main(paths: list[str]) -> None:
    """Print what waits by the name of the model and the verb."""
    works = VERBS | {"a cycle": make_a_cycle}
    found = {Path(path).name: {name: waiting(work, path) for name, work in works.items()} for path in paths}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
