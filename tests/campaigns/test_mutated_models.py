"""The campaign `tests/campaigns/mutated_models.py`: a sample of it, and that it finds the faults that are put in."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mutated_models_sources
import onnx
import pytest
from mutated_models_fields import mutate_fields, read_fields, write_fields
from mutated_models_mutants import KINDS, Mutant, Plan, make_mutant
from mutated_models_reduction import reduced
from mutated_models_sources import MODELS, Source
from mutated_models_today import known_fault
from mutated_models_trial import try_mutant

import splitgraph
from splitgraph import cli
from splitgraph.formats import onnx_file

CAMPAIGNS = Path(__file__).parent
SPLIT = (MODELS / "split13_initializer.onnx").read_bytes()
PATHS = sorted(MODELS.glob("split*.onnx"))


def python(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run Python: the campaign forks its workers, which must have no threads, and tests have some."""
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("first", "count"), [(0, 80), pytest.param(80, 2_920, marks=pytest.mark.slow)], ids=["sample", "long"]
)
def test_each_mutant_gets_an_answer(first: int, count: int) -> None:
    ran = python(CAMPAIGNS / "mutated_models.py", "--judge", "--from", first, "--count", count)
    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr
    assert f"\n{count:,} mutants: " in ran.stdout
    for outcome in ("judged: refused by splitgraph", "infer a file: ModelError", "convert a file: converted"):
        assert outcome in ran.stdout


# Mutants ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def few_sources(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Models without onnx's node tests, which take seconds to make."""
    monkeypatch.setattr(mutated_models_sources, "_node_tests", lambda: [("split", SPLIT)])
    mutated_models_sources.sources.cache_clear()
    yield
    mutated_models_sources.sources.cache_clear()


@pytest.mark.usefixtures("few_sources")
@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_is_one_mutant(kind: str) -> None:
    for seed in range(20):
        one, other = make_mutant(seed, [kind]), make_mutant(seed, [kind])
        assert str(one) == str(other)
        assert one.kind == kind
        assert written(one) == written(other)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_fields_are_written_as_they_were_read(path: Path) -> None:
    assert write_fields(read_fields(path.read_bytes())) == path.read_bytes()


def test_fields_are_changed_in_every_way() -> None:
    ways, refused = set(), 0
    for seed in range(400):
        message = read_fields(SPLIT)
        ways.add(mutate_fields(message, random.Random(seed)).split(" ", 1)[1])
        try:
            onnx.ModelProto.FromString(write_fields(message))
        except Exception:
            refused += 1
    assert len(ways) == 13
    # Enough of both: what protobuf reads goes further.
    assert 60 < refused < 340


def written(mutant: Mutant) -> bytes:
    """The bytes of a mutant."""
    return mutant.content if isinstance(mutant.content, bytes) else mutant.content.SerializeToString()


# Trials ----------------------------------------------------------------------------------------------------------


def mutant_of(content: bytes | onnx.ModelProto) -> Mutant:
    """A mutant that is converted and given to the command line."""
    plan = Plan("upgrade", [18], {}, ["--opset", "18"], is_typed=True, is_file=True)
    return Mutant(0, "objects", Source("split", SPLIT), ["nothing"], content, plan)


def fail(*_: object, **__: object) -> Any:
    raise KeyError("put in")


def clear(model: Any) -> Any:
    if isinstance(model, onnx.ModelProto):
        model.ClearField("graph")
    return splitgraph.Analysis


def refuse_in_lines(*_: object) -> Any:
    raise splitgraph.ModelError("two\nlines")


def print_twice(*_: object) -> int:
    print("{}\n{}")
    return 0


FAULTS: dict[str, tuple[object, str, Callable[..., Any], str]] = {
    "a crash": (splitgraph, "infer", fail, "KeyError"),
    "a changed model": (splitgraph, "infer", clear, "the caller's model was changed"),
    "a refusal of two lines": (splitgraph, "infer", refuse_in_lines, "a refusal of more than one line"),
    "another exit code": (cli, "main", lambda _: 70, "exit code 70"),
    "two documents": (cli, "main", print_twice, "not one JSON document"),
    "weights that are lost": (
        onnx_file,
        "whole_model",
        lambda model, _: model,
        "a file is read as something else than protobuf reads",
    ),
}


@pytest.mark.parametrize(("module", "name", "broken", "place"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_found(
    module: object, name: str, broken: Callable[..., Any], place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, broken)
    assert try_mutant(mutant_of(onnx.ModelProto.FromString(SPLIT)), tmp_path).place == place


@pytest.mark.parametrize("content", [SPLIT, onnx.ModelProto.FromString(SPLIT), b"", b"\xff" * 40, SPLIT[:-3]])
def test_what_has_no_fault_has_outcomes(content: bytes | onnx.ModelProto, tmp_path: Path) -> None:
    report = try_mutant(mutant_of(content), tmp_path)
    assert (report.fault, report.place) == ("", "")
    assert len(report.outcomes) == (5 if isinstance(content, onnx.ModelProto) else 3)


def test_a_mutant_is_made_small() -> None:
    mutant = mutant_of(SPLIT + b"\xfa\x7f\x03abc")

    def has_a_split(smaller: Mutant) -> bool:
        return any(node.op_type == "Split" for node in onnx.ModelProto.FromString(written(smaller)).graph.node)

    model = onnx.ModelProto(graph=onnx.GraphProto(node=[onnx.NodeProto(op_type="Split")]))
    assert written(reduced(mutant, has_a_split)) == model.SerializeToString()
    no_fields = b"\xff" * 12 + b"abcdef"
    assert written(reduced(mutant_of(no_fields), lambda smaller: b"d" in written(smaller))) == b"d"


def test_only_what_is_listed_is_known() -> None:
    assert known_fault("DecodeError in node.message", "objects of x: deep_graph: 40 deep; upgrade") is not None
    assert known_fault("DecodeError in node.message", "bytes of x: bit flipped; upgrade") is None
    assert known_fault("KeyError in node.message", "objects of x: deep_graph: 40 deep; upgrade") is None


# Workers ---------------------------------------------------------------------------------------------------------

WORKERS = """
import ctypes, sys
sys.path[:0] = [sys.argv[1]]
import mutated_models_workers as workers
workers.MOST_SECONDS = 1

def work(item, folder, renew):
    (folder / "file").write_text("x")
    if item == 1:
        while True: pass
    if item == 2:
        bytearray(2 * workers.MOST_BYTES)
    if item == 3:
        ctypes.string_at(0)
    if item == 4:
        bytearray(200 * 2**20)
    return {"item": item}

for item, answer in sorted(workers.work_on(range(6), int(sys.argv[2]), work)):
    print(item, answer.get("item"), answer.get("died", "").splitlines()[:1], answer.get("bytes", 0) > 100 * 2**20)
"""


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.sample(1)
def test_what_ends_a_worker_is_a_fault_of_one_case(jobs: int) -> None:
    ran = python("-c", WORKERS, CAMPAIGNS, jobs)
    assert ran.stdout.splitlines() == [
        "0 0 [] False",
        "1 None ['more than 1 s of CPU time'] False",
        "2 None ['ended with exit code 0'] False",
        "3 None ['ended by SIGSEGV'] False",
        "4 4 [] True",
        "5 5 [] False",
    ], ran.stderr
