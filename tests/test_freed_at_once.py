"""What a verb needed is freed when it returns: nothing of ours waits for Python's collector of reference cycles, which
a pipeline may have turned off, with a model's weights in its hands.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable
from pathlib import Path

import pytest
from google.protobuf.message import Message

import splitgraph

MODELS = Path(__file__).parents[1] / "models"
# What these have: functions with calls, branches, loops, sequences, dimensions that an author named, symbols that must
# divide, IR.
NAMES = (
    "branched_gate.opset13.onnx",
    "gpt2.opset17.onnx",
    "gpt2.opset18.dynamo.onnx",
    "lstm_loop.opset17.onnx",
    "segment_means.opset13.onnx",
    "split13_computed.onnx",
    "split_in_function.onnx",
    "split_in_loop.onnx",
    "split_in_scan.onnx",
    "split_to_sequence11_each.onnx",
    "string_split20.onnx",
    "interval_split.xml",
)
VERBS: dict[str, Callable[[str], object]] = {
    "infer": splitgraph.infer,
    "to opset 9": lambda path: splitgraph.downgrade(path, 9),
    "to opset 28": lambda path: splitgraph.upgrade(path, 28),
    "to split": lambda path: splitgraph.convert(path, "split"),
    "to variadic-split": lambda path: splitgraph.convert(path, "variadic-split"),
}


def waiting(work: Callable[[], object]) -> list[str]:
    """What of ours only the collector of cycles frees, once the result is dropped."""

    def run() -> None:
        # A refusal, too, leaves nothing behind.
        with contextlib.suppress(splitgraph.SplitgraphError):
            work()

    run()
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        run()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        kinds = [type(held) for held in gc.garbage]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        if was_enabled:
            gc.enable()
    return sorted({kind.__name__ for kind in kinds if issubclass(kind, Message) or "splitgraph" in kind.__module__})


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", NAMES)
def test_nothing_waits_for_the_collector(name: str, verb: str) -> None:
    assert waiting(lambda: VERBS[verb](str(MODELS / name))) == []


def test_a_cycle_would_be_seen() -> None:
    def work() -> None:
        held = [splitgraph.load(MODELS / "split13_equal.onnx")]
        held.append(held)

    assert waiting(work) == ["ModelProto"]
