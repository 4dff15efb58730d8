"""Every verb on every kind of source, from Python, on the command line and in worker processes: done, or refused as
documented; what is written is read back and run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from command_line.program import Run

import splitgraph
from splitgraph import SplitgraphError

from .every_source import (
    COMMANDS,
    FILES,
    GIVING,
    IN_MEMORY,
    NOT_OF_IR,
    check_result,
    in_memory,
    path_of,
    served,
    write_files,
)

KINDS = (*FILES, *IN_MEMORY)


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("zoo")
    write_files(folder)
    return folder


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPLITGRAPH_CACHE", str(tmp_path / "cache"))
    return tmp_path


def source_of(zoo: Path, kind: str) -> Any:
    return path_of(zoo, kind) if kind in FILES else in_memory(kind)


def is_refused(verb: str, kind: str) -> bool:
    return kind in ("ir", "openvino") and verb in NOT_OF_IR


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb", GIVING)
def test_functions_that_give_a_model(verb: str, kind: str, zoo: Path, work: Path) -> None:
    source = source_of(zoo, kind)
    if is_refused(verb, kind):
        with pytest.raises(SplitgraphError, match="OpenVINO"):
            GIVING[verb](source)
        return
    result = GIVING[verb](source)
    name = "out.xml" if kind in ("ir", "openvino") else "out.onnx"
    splitgraph.save(result, work / name)
    check_result(work / name)
    if verb not in ("infer", "split"):
        return
    # A model that the caller holds is written from memory, too.
    splitgraph.save(
        result.model, work / f"again.{name}", **({} if name.endswith("xml") else {"external_data": "beside"})
    )
    check_result(work / f"again.{name}")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sample(3)
def test_functions_that_say_something(kind: str, zoo: Path, work: Path) -> None:
    source = source_of(zoo, kind)
    if is_refused("check", kind):
        with pytest.raises(SplitgraphError, match="OpenVINO"):
            splitgraph.check(source, "ncnn")
    else:
        assert all(found.code.startswith("SG7") for found in splitgraph.check(source, ["ncnn", "mnn", "openvino"]))
    assert not splitgraph.diff(source, source)
    assert splitgraph.verify(source, source, samples=1).verdict == "equal"


# A model at a URL goes to a worker process in every verb, as in the calls with many models below.
@pytest.mark.parametrize(("verb", "kind"), [*product(COMMANDS, FILES), ("upgrade", "url")])
@pytest.mark.sample(10)
def test_commands_that_write(verb: str, kind: str, zoo: Path, work: Path, run: Run, url: str) -> None:
    source = f"{url}/external/m.onnx" if kind == "url" else str(path_of(zoo, kind))
    checked = () if verb == "infer" else ("--no-verify",)
    code, out, err = run(*COMMANDS[verb], source, "-o", "out/", *checked)
    if is_refused(verb, kind):
        assert code == 2, (out, err)
        assert "OpenVINO" in err
        assert not list((work / "out").rglob("*.*"))
        return
    assert code == 0, (out, err)
    written = [path for path in (work / "out").iterdir() if path.suffix in (".onnx", ".xml")]
    assert len(written) == 1, (out, err)
    check_result(written[0])


@pytest.mark.parametrize("kind", [*FILES, "url"])
@pytest.mark.sample(2)
def test_commands_that_say_something(kind: str, zoo: Path, work: Path, run: Run, url: str) -> None:
    source = f"{url}/weights/m.onnx" if kind == "url" else str(path_of(zoo, kind))
    for arguments in (("check", "--target", "ncnn", source), ("check", "--all-targets", source)):
        code, out, err = run(*arguments)
        # OpenVINO reads IR, and no other runtime does.
        is_all = "--all-targets" in arguments
        wanted = (0 if is_all else 2) if is_refused("check", kind) else 1 if is_all else 0
        assert code == wanted, (out, err)
        assert "internal error" not in err
    code, out, err = run("report", source, "-o", "page.html" if kind != "url" else "pages/")
    assert code == 0, (out, err)
    if kind != "url":
        for arguments in (("diff", source, source), ("verify", source, source, "--samples", "1")):
            code, out, err = run(*arguments)
            assert code == 0, (out, err)


@pytest.mark.parametrize("verb", ["infer", "upgrade", "split", "variadic-split", "target", "check", "report"])
@pytest.mark.sample(2)
def test_many_models(verb: str, zoo: Path, work: Path, run: Run, url: str) -> None:
    command = {"check": ("check", "--target", "ncnn"), "report": ("report",), **COMMANDS}[verb]
    # A folder gives a verb the files that it takes; what lies there beside them is passed over.
    sources = [kind for kind in FILES if not is_refused(verb, kind)]
    output = () if verb == "check" else ("-o", "out/")
    checked = () if verb in ("infer", "check", "report") else ("--no-verify",)
    code, out, err = run(
        *command, str(zoo), f"{url}/weights/m.onnx", *output, *checked, "--jobs", "2", "--report", "r.jsonl"
    )
    lines = [json.loads(line) for line in (work / "r.jsonl").read_text().splitlines()]
    assert len(lines) == len(sources) + 1, (out, err)
    assert {line["status"] for line in lines} <= {"clean", "converted", "unchanged"}, (out, err)
    assert code == 0, (out, err)
    if verb not in ("check", "report"):
        written = [path for path in (work / "out").rglob("*") if path.suffix in (".onnx", ".xml")]
        assert len(written) == len(lines)
        for path in written:
            check_result(path)


@pytest.fixture(scope="module")
def url(zoo: Path) -> Iterator[str]:
    with served(zoo) as address:
        yield address
