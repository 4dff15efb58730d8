"""Models on other machines, and workers on other machines: fsspec, and dask.distributed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import onnx
import pytest
from command_line.program import Run, split_model

import splitgraph
from splitgraph import SplitgraphError
from splitgraph.many import run_jobs
from splitgraph.many.remote import find_urls, localized


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPLITGRAPH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def external_model(path: Path) -> None:
    """A model whose weights are in a file of a folder beside it."""
    model = split_model(shape=(4, 6))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((64, 64), np.float32), "w"))
    model.graph.node.append(onnx.helper.make_node("Relu", ["w"], ["r"]))
    model.graph.output.append(onnx.helper.make_tensor_value_info("r", 1, [64, 64]))
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parent / "data").mkdir(exist_ok=True)
    onnx.save(model, path, save_as_external_data=True, location="data/w.bin", size_threshold=0)


def test_urls_are_found(zoo: Path, cache: Path) -> None:
    url = f"file://{zoo}"
    assert [(name, str(relative)) for name, relative, _ in find_urls(url)] == [
        (f"{url}/.hidden/c.onnx", ".hidden/c.onnx"),
        (f"{url}/a.onnx", "a.onnx"),
        (f"{url}/deep/b.onnx", "deep/b.onnx"),
        (f"{url}/deep/new.onnx", "deep/new.onnx"),
        (f"{url}/page.xml", "page.xml"),
    ]
    assert [str(relative) for _, relative, _ in find_urls(f"{url}/deep/*.onnx")] == ["b.onnx", "new.onnx"]
    assert list(find_urls(f"{url}/a.onnx")) == [(f"{url}/a.onnx", None, "")]


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("frobnicate://x/y.onnx", "frobnicate://x/y.onnx cannot be opened: Protocol not known: frobnicate"),
        ("file:///nowhere/y.onnx", "file:///nowhere/y.onnx cannot be read"),
    ],
)
def test_urls_that_cannot_be_read(url: str, told: str, cache: Path) -> None:
    with pytest.raises(SplitgraphError) as caught:
        localized(url)
    assert str(caught.value).startswith(told)


def test_a_model_is_read_again_only_if_it_changed(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "far" / "m.onnx"
    external_model(path)
    local = localized(f"file://{path}")
    assert local.is_relative_to(cache)
    assert (local.parent / "data" / "w.bin").read_bytes() == (path.parent / "data" / "w.bin").read_bytes()
    assert splitgraph.infer(local).ok
    read = local.stat().st_ino
    assert localized(f"file://{path}").stat().st_ino == read
    onnx.save(split_model(14), path)
    os.utime(path, (1, 1))
    assert localized(f"file://{path}").read_bytes() == path.read_bytes()


def test_data_files_outside_the_folder_are_not_read(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "far" / "m.onnx"
    external_model(path)
    model = onnx.load(path, load_external_data=False)
    (tmp_path / "secret").write_bytes(b"x" * 64 * 64 * 4)
    model.graph.initializer[0].external_data[0].value = "../secret"
    onnx.save(model, path)
    local = localized(f"file://{path}")
    assert not (local.parent.parent / "secret").exists()
    assert [found.code for found in next(splitgraph.map_models("infer", [f"file://{path}"])).diagnostics] == ["SG107"]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def served(zoo: Path) -> Iterator[str]:
    """The URL of a server of HTTP, with the models of the zoo."""
    handler = partial(Quiet, directory=str(zoo))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


def test_a_model_of_a_server(served: str, zoo: Path, cache: Path, run: Run) -> None:
    pytest.importorskip("aiohttp", reason="fsspec reads http with aiohttp")
    code, out, err = run("upgrade", f"{served}/a.onnx", "--opset", "18", "--no-verify", "-o", "out/")
    assert (code, err) == (0, "")
    assert os.listdir("out") == ["a.opset18.onnx"]
    assert out.endswith("wrote out/a.opset18.onnx\n")
    code, out, err = run("infer", f"{served}/a.onnx")
    assert (code, out.startswith(f"{served}/a.onnx · opset 13"), err) == (0, True, "")
    code, out, err = run("upgrade", f"{served}/no.onnx", "--opset", "18", "-o", "out/")
    assert (code, out) == (2, "")
    assert "no such file or folder [SG101]" in err


def test_the_result_of_one_url_goes_to_the_current_folder(
    zoo: Path, cache: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, here = f"file://{zoo}/a.onnx", tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    assert run("upgrade", url, "--opset", "18", "--no-verify")[:2] == (
        0,
        "opset 13 → 18 · 1 split rewritten · not verified\nwrote a.opset18.onnx\n",
    )
    code, _, err = run("upgrade", url, "--opset", "18", "--no-verify")
    assert (code, "a.opset18.onnx exists" in err) == (2, True)
    code, _, err = run("upgrade", url, "--opset", "18", "--in-place")
    assert (code, "a URL is not written to" in err) == (2, True)
    assert os.listdir(here) == ["a.opset18.onnx"]


def test_the_results_of_many_urls_need_a_folder(zoo: Path, cache: Path, run: Run) -> None:
    code, out, _ = run("upgrade", f"file://{zoo}/a.onnx", "--opset", "18", "--jobs", "1")
    assert (code, "the result of a model at a URL needs a folder" in out) == (1, True)


def test_a_server_that_nobody_reaches_is_no_missing_file(cache: Path, run: Run) -> None:
    pytest.importorskip("aiohttp", reason="fsspec reads http with aiohttp")
    code, _, err = run("infer", "http://host.invalid/a.onnx")
    assert (code, "its server cannot be reached" in err) == (2, True)


@contextlib.contextmanager
def cluster(workers: int) -> Iterator[object]:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as found:
        yield found


@pytest.mark.slow
@pytest.mark.usefixtures("faulty")
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_cluster_that_loses_a_worker(zoo: Path) -> None:
    for number in range(60):
        shutil.copy("zoo/a.onnx", f"zoo/{number}.onnx")
    shutil.copy("zoo/a.onnx", "zoo/crash.onnx")
    with cluster(3) as found:
        from distributed import Client

        with Client(found) as client:
            pids = list(client.run(os.getpid).values())
            executor = client.get_executor()
            outcomes = []
            output = str(zoo.parent / "out")
            for outcome in splitgraph.map_models("upgrade", [str(zoo)], opset=18, output=output, executor=executor):
                outcomes.append(outcome)
                if len(outcomes) == 10:
                    os.kill(pids[0], signal.SIGKILL)
                    time.sleep(0.1)
    names = [Path(outcome.model).name for outcome in outcomes]
    assert len(names) == len(set(names)) == 64
    assert [name for name, outcome in zip(names, outcomes, strict=True) if not outcome.ok] == ["crash.onnx"]


def test_a_scheduler_that_does_not_answer(zoo: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(run_jobs, "CONNECTING", 0.5)
    code, out, err = run("infer", "zoo", "--scheduler", "tcp://127.0.0.1:1")
    assert (code, out) == (2, "")
    assert "no scheduler of dask answers at tcp://127.0.0.1:1" in err
