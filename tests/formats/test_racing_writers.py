"""Of several writers of one new file, one writes it and the others are told: none replaces what another one wrote."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from splitgraph.findings.diagnostics import ModelError
from splitgraph.formats import load_ir, load_onnx
from splitgraph.formats.atomic_write import WriteTogether

from .openvino_ir.small_ir import BIN, XML
from .openvino_ir.small_ir import write as write_ir
from .tiny_models import add_model

CHECKOUT = Path(__file__).parents[2]


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def no_links(*_: object, **__: object) -> None:
    raise OSError(errno.EPERM, "Operation not permitted")


@pytest.fixture(params=["links", "no links"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file system with or without hard links."""
    kind: str = request.param
    if kind == "no links":
        monkeypatch.setattr(os, "link", no_links)
    return kind


def write_second_while_first_is_open(target: Path, second: Callable[[], None], **options: Any) -> None:
    """Write a file, and while it is being written let somebody else write one of the same name."""
    with WriteTogether(**options) as files, files.open(target) as file:
        file.write(b"first")
        second()


@pytest.mark.usefixtures("system")
@pytest.mark.parametrize(
    ("appeared", "options", "expected"),
    [
        (None, {"overwrite": False}, b"first"),
        (b"second", {"overwrite": False}, b"second"),
        # The same content is no excuse: the other program may go on to change it.
        (b"first", {"overwrite": False}, b"first"),
        (b"second", {"overwrite": True}, b"first"),
        (b"second", {}, b"first"),
    ],
)
def test_file_that_appears_meanwhile(
    tmp_path: Path, appeared: bytes | None, options: dict[str, bool], expected: bytes
) -> None:
    target = tmp_path / "model"

    def appear() -> None:
        if appeared is not None:
            target.write_bytes(appeared)

    is_refused = appeared is not None and options.get("overwrite") is False
    with pytest.raises(ModelError) if is_refused else ExitStack() as caught:
        write_second_while_first_is_open(target, appear, **options)
    assert not is_refused or caught.value.diagnostics[0].code == "SG108"
    assert target.read_bytes() == expected and listing(tmp_path) == ["model"]


@pytest.mark.usefixtures("system")
@pytest.mark.parametrize(("content", "is_refused"), [(b"weights", False), (b"other", True)])
def test_copy_that_another_program_made_as_well(tmp_path: Path, content: bytes, is_refused: bool) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"weights")
    with (
        pytest.raises(ModelError, match="another program") if is_refused else ExitStack(),
        WriteTogether(overwrite=False) as files,
    ):
        with files.open(target, copied=source) as file:
            file.write(source.read_bytes())
        target.write_bytes(content)
    assert target.read_bytes() == content and listing(tmp_path) == ["source", "target"]


@pytest.mark.usefixtures("system")
def test_what_was_put_in_place_before_a_refusal_goes_again(tmp_path: Path) -> None:
    with pytest.raises(ModelError), WriteTogether(overwrite=False) as files:
        for name in ("a", "b"):
            with files.open(tmp_path / name) as file:
                file.write(b"ours")
        (tmp_path / "b").write_bytes(b"theirs")
    assert listing(tmp_path) == ["b"] and (tmp_path / "b").read_bytes() == b"theirs"


@pytest.mark.parametrize(
    ("system", "name"), [("links", "link"), ("links", "unlink"), ("no links", "replace")], indirect=["system"]
)
def test_interrupt_just_behind_a_call_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str, name: str
) -> None:
    call, calls = getattr(os, name), []

    def and_interrupted(*arguments: Any, **keywords: Any) -> None:
        call(*arguments, **keywords)
        calls.append(arguments)
        if len(calls) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), WriteTogether(overwrite=False) as files, files.open(tmp_path / "m") as file:
        monkeypatch.setattr(os, name, and_interrupted)
        file.write(b"new")
    assert calls and listing(tmp_path) == []


# Waits before files get their names until all of its kind have come so far.
RACER = """
import os, sys, time
from pathlib import Path
from splitgraph import cli
from splitgraph.findings.diagnostics import ModelError
from splitgraph.formats import atomic_write, load_ir, save_ir
meeting, links, verb, *arguments = sys.argv[1:]
put = atomic_write.WriteTogether._put_in_place
def wait(files):
    Path(meeting, str(os.getpid())).touch()
    while not Path(meeting, "go").exists():
        time.sleep(0.001)
    put(files)
def no_links(*_):
    raise OSError(1, "Operation not permitted")
atomic_write.WriteTogether._put_in_place = wait
if links == "no links":
    os.link = no_links
def plain(target):
    with atomic_write.WriteTogether(overwrite=False) as files, files.open(Path(target)) as file:
        file.write(str(os.getpid()).encode())
def ir(source, target):
    save_ir(load_ir(source), target, overwrite=False)
def upgrade(source, *targets):
    # Each process has a name of its own, where there are so many.
    number = int(os.environ["RACER"]) % len(targets)
    sys.exit(cli.main(["upgrade", source, "--opset", "18", "--no-verify", "-o", targets[number]]))
try:
    {"plain": plain, "ir": ir, "upgrade": upgrade}[verb](*arguments)
except ModelError as error:
    sys.exit(error.diagnostics[0].code)
"""


def race(folder: Path, count: int, *arguments: object) -> list[tuple[int, int, str]]:
    """Let so many processes write at once; gives back the id, exit status and stderr of each."""
    meeting = folder / "meeting"
    meeting.mkdir()
    command = [sys.executable, "-c", RACER, str(meeting), *map(str, arguments)]
    racers = [
        subprocess.Popen(
            command, cwd=CHECKOUT, stderr=subprocess.PIPE, text=True, env={**os.environ, "RACER": str(number)}
        )
        for number in range(count)
    ]
    while len(listing(meeting)) < count and any(racer.poll() is None for racer in racers):
        time.sleep(0.01)
    (meeting / "go").touch()
    told = [racer.communicate()[1].strip() for racer in racers]
    return [(racer.pid, racer.returncode, said) for racer, said in zip(racers, told, strict=True)]


def test_processes_that_race_for_one_file(tmp_path: Path, system: str) -> None:
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / "model"
    told = race(tmp_path, 4, system, "plain", target)
    winners = [pid for pid, status, _ in told if status == 0]
    assert len(winners) == 1 and target.read_bytes() == str(winners[0]).encode()
    assert sorted(said for _, _, said in told) == ["", *["SG108"] * 3]
    assert listing(tmp_path / "out") == ["model"]


def test_processes_that_race_for_the_two_files_of_an_ir(tmp_path: Path, system: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    source, target = write_ir(tmp_path / "in", XML, BIN), tmp_path / "out" / "m.xml"
    told = race(tmp_path, 2, system, "ir", source, target)
    assert sorted(said for _, _, said in told) == ["", "SG108"]
    assert load_ir(target).has_weights and listing(tmp_path / "out") == ["m.bin", "m.xml"]


def external_model(folder: Path) -> Path:
    """A model of opset 13 with its weights beside it."""
    model = add_model()
    for entry in model.opset_import:
        entry.version = 13
    weights = onnx.numpy_helper.from_array(np.arange(4096, dtype=np.float32), "weights")
    model.graph.initializer.append(weights)
    onnx.save(model, folder / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    return folder / "m.onnx"


def test_commands_that_race_for_one_model(tmp_path: Path, system: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / "new.onnx"
    told = race(tmp_path, 3, system, "upgrade", external_model(tmp_path / "in"), target)
    assert sorted(status for _, status, _ in told) == [0, 2, 2]
    assert sum("new.onnx: exists already" in said and "[SG108]" in said for _, _, said in told) == 2
    assert listing(tmp_path / "out") == ["m.data", "new.onnx"] and load_onnx(target).opset_import[0].version == 18


def test_commands_that_copy_the_same_weights_at_once(tmp_path: Path, system: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    targets = [tmp_path / "out" / name for name in ("a.onnx", "b.onnx")]
    told = race(tmp_path, 2, system, "upgrade", external_model(tmp_path / "in"), *targets)
    assert [(status, said) for _, status, said in told] == [(0, ""), (0, "")]
    assert listing(tmp_path / "out") == ["a.onnx", "b.onnx", "m.data"] and all(map(load_onnx, targets))
