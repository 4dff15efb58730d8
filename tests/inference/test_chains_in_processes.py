"""What is shown of a model does not depend on the process: on addresses, hash seeds, and what was inferred before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import onnx
import pytest

import splitgraph
from splitgraph.dim import Dim
from splitgraph.inference.rules.onnx import control_flow
from splitgraph.model.value_type import ValueType

WORKER = Path(__file__).with_name("chain_worker.py")

# These were once shown in several ways: quotients came in the order of the addresses of their atoms, and the products
# of facts in that of sets.
_ONCE_SEVERAL = ("63", "263", "812", "911", "1012", "1047", "2072", "2196", "2316", "2587", "2909")
_ONCE_SEVERAL_BROADCASTS = ("203b", "349b", "636b")
_OTHERS = (*map(str, range(300, 340)), *(f"{seed}b" for seed in range(300, 320)))
# The seed of the hashes of texts, the salt of those of atoms, and what comes before each chain.
_PROCESSES = [("0", 1, "given"), ("1", 2, "reversed"), ("2", 3, "forgetful"), ("3", 4, "given")]


def _infer_in_a_process(hash_seed: str, salt: int, order: str, seeds: list[str]) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, str(WORKER), str(salt), order, *seeds]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.slow)])
def test_every_process_shows_the_same(step: int) -> None:
    seeds = [*_ONCE_SEVERAL, *_OTHERS[::step], *_ONCE_SEVERAL_BROADCASTS]
    # The last one has seen nothing before the chains that were once shown in several ways.
    asked = [*[seeds] * (len(_PROCESSES) - 1), seeds[: len(_ONCE_SEVERAL)]]
    processes = [_infer_in_a_process(*each, some) for each, some in zip(_PROCESSES, asked, strict=True)]
    first, *others = [json.loads(process.communicate()[0]) for process in processes]
    assert first.keys() == set(seeds)
    for other in others:
        assert {seed: shown for seed, shown in other.items() if shown != first[seed]} == {}


def _loop_that_makes_all_longer(count: int) -> onnx.ModelProto:
    """A loop that carries so many vectors, each of which is longer by one after each iteration."""
    places = range(count)
    joined = " ".join(f"d{place} = Concat<axis=0>(c{place}, one)" for place in places)
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        m (int64 n, bool go, {_several("float[N{0}] x{0}", places)}) => ({_several("float[L{0}] y{0}", places)}) {{
            {_several("y{0}", places)} = Loop<body = b (int64 i, bool g, {_several("float[] c{0}", places)})
                => (bool g2, {_several("float[] d{0}", places)}) {{
                    g2 = Identity(g) one = Constant<value = float[1] {{1}}>() {joined}
                }}>(n, go, {_several("x{0}", places)})
        }}"""
    )


def _several(text: str, places: Iterable[int]) -> str:
    return ", ".join(map(text.format, places))


def test_lengths_after_a_loop_are_named_in_the_order_of_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: dict[Dim, Dim] = {}
    rename = control_flow._renamed

    def noting(value: ValueType, names: dict[Dim, Dim]) -> ValueType:
        ended.update(names)
        return rename(value, names)

    monkeypatch.setattr(control_flow, "_renamed", noting)
    splitgraph.infer(_loop_that_makes_all_longer(16))
    numbers = [(int(str(before)[3:]), int(str(after)[3:])) for before, after in ended.items()]
    assert len(numbers) == 16
    assert numbers == sorted(numbers)
