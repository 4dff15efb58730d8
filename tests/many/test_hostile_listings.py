"""What another machine says of its models: where they are, that they changed, and nothing at all."""

from __future__ import annotations

import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath

import pytest
from command_line.program import split_model

from splitgraph.findings.diagnostics import ModelError, SplitgraphError
from splitgraph.many.plan import Limits, place_below, plan_jobs
from splitgraph.many.remote import find_urls, localized
from splitgraph.many.sources import ModelSource, find_sources
from splitgraph.options import Converting
from splitgraph.work.task import FileTask

pytest.importorskip("aiohttp", reason="fsspec reads http with it")

# What a server answers to a path: a status, headers, a body.
Answers = dict[str, tuple[int, dict[str, str], bytes]]


@pytest.fixture
def answers() -> Answers:
    return {}


@pytest.fixture
def server(answers: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a server that answers what it is told, and nothing while it is told of /silent/."""
    monkeypatch.setenv("SPLITGRAPH_CACHE", str(tmp_path / "cache"))
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.startswith("/silent"):
                over.wait(30)
            status, headers, body = answers.get(self.path, (404, {}, b""))
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    found = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=found.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{found.server_address[1]}"
    over.set()
    found.shutdown()


def page(*links: str) -> tuple[int, dict[str, str], bytes]:
    text = "".join(f'<a href="{link}">{link}</a>' for link in links)
    return 200, {"Content-Type": "text/html"}, text.encode()


@pytest.mark.parametrize(
    ("relative", "is_url"),
    [
        ("../x.onnx", True),
        ("../x.onnx", False),
        ("a/../../x.onnx", True),
        ("a/../x.onnx", True),
        ("%2e%2e/x.onnx", True),
        ("%2E./x.onnx", True),
        ("..%2fx.onnx", True),
        ("..%5cx.onnx", True),
        ("..\\x.onnx", True),
        ("%252e%252e/x.onnx", True),
        ("a/.. /x.onnx", True),
        ("a//x.onnx%00.onnx", True),
        ("C:/x.onnx", True),
        ("C%3a/x.onnx", True),
        ("/etc/x.onnx", True),
        ("/etc/x.onnx", False),
        ("a/\tx.onnx", True),
    ],
)
def test_what_is_not_below_is_refused(relative: str, is_url: bool, tmp_path: Path) -> None:
    source = ModelSource(f"{'http://host/zoo/' if is_url else 'zoo/'}{relative}", PurePosixPath(relative))
    with pytest.raises(SplitgraphError, match="is not below the folder that it was found in"):
        place_below(str(tmp_path / "out"), relative, source)
    work = FileTask("upgrade", wanted=Converting(18))
    plan = plan_jobs(work, [source, ModelSource("b.onnx")], Limits(), str(tmp_path / "out"))
    assert [outcome.model for outcome in plan.failed] == [source.name]
    assert [job.model for job in plan.jobs] == ["b.onnx"]


@pytest.mark.parametrize(
    ("relative", "is_url"),
    [
        ("a/b/x.onnx", True),
        ("..x/a..b.onnx", True),
        ("...onnx", True),
        ("a%20b/100%25.onnx", True),
        ("2024-01-01T10:00/x.onnx", True),
        # On the disk of this machine a name means what it says.
        ("%2e%2e/x.onnx", False),
        ("a:b.onnx", False),
    ],
)
def test_what_is_below_is_placed(relative: str, is_url: bool, tmp_path: Path) -> None:
    source = ModelSource(f"{'http://host/zoo/' if is_url else 'zoo/'}{relative}", PurePosixPath(relative))
    assert place_below(str(tmp_path / "out"), relative, source) == tmp_path / "out" / relative


def test_links_in_the_folder_of_results(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "deep").symlink_to(tmp_path)
    (tmp_path / "out" / "a.onnx").symlink_to(tmp_path / "a.onnx")
    (tmp_path / "link").symlink_to(tmp_path / "out")
    for relative in ("deep/x.onnx", "a.onnx"):
        with pytest.raises(SplitgraphError, match="would be outside of"):
            place_below(str(tmp_path / "out"), relative, ModelSource(f"zoo/{relative}", PurePosixPath(relative)))
    kept = place_below(str(tmp_path / "link"), "b.onnx", ModelSource("zoo/b.onnx", PurePosixPath("b.onnx")))
    assert kept == tmp_path / "link" / "b.onnx"


def test_a_page_that_links_elsewhere(server: str, answers: Answers) -> None:
    links = ("a.onnx", "../../../x/E.onnx", "%2e%2e/E.onnx", "sub/", "../", "/", "//evil/", "b.onnx?token=1", "c.txt")
    answers["/zoo/"] = page(*links)
    answers["/zoo/sub/"] = page("../", "d.onnx", "closed/")
    answers["/zoo/sub/closed/"] = (500, {}, b"")
    found = {source.name.removeprefix(server): source for source in find_sources([f"{server}/zoo/"])}
    assert found.keys() == {
        *("/zoo/a.onnx", "/zoo/b.onnx?token=1", "/zoo/sub/d.onnx", "/zoo/sub/closed/"),
        *("/zoo/../../../x/E.onnx", "/zoo/%2e%2e/E.onnx"),
    }
    work = FileTask("upgrade", wanted=Converting(18))
    plan = plan_jobs(work, list(found.values()), Limits(), "out")
    assert sorted(outcome.model.removeprefix(server) for outcome in plan.failed) == [
        "/zoo/%2e%2e/E.onnx",
        "/zoo/../../../x/E.onnx",
        "/zoo/sub/closed/",
    ]
    assert [str(job.place) for job in plan.jobs] == ["out/a.onnx", "out/b.onnx", "out/sub/d.onnx"]


def test_names_that_become_one(server: str, answers: Answers) -> None:
    answers["/zoo/"] = page("a.onnx?rev=1", "a.onnx?rev=2")
    work = FileTask("upgrade", wanted=Converting(18))
    plan = plan_jobs(work, find_sources([f"{server}/zoo/"]), Limits(), "out")
    assert len(plan.to_do()) == 1
    assert "goes to out/a.onnx, too" in plan.failed[0].diagnostics[0].message


def test_a_listing_that_does_not_end(server: str) -> None:
    with pytest.raises(SplitgraphError, match=r"was not read within the limit of 0\.2 s") as caught:
        find_sources([f"{server}/silent/"], seconds=0.2)
    assert caught.value.diagnostics[0].code == "SG605"
    with pytest.raises(SplitgraphError, match=r"was not read within the limit of 0\.2 s"):
        localized(f"{server}/silent.onnx", 0.2)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://127.0.0.1:1/zoo/", "cannot be listed: "),
        ("http://127.0.0.1:1/zoo/*.onnx", "cannot be listed: "),
        ("http://[::1/x/", "an address in brackets"),
        ("http://[::1]/x/", "an address in brackets"),
        ("http://]/x/", "an address in brackets"),
        ("http:///x/", "names no host"),
        ("http://", "names no host"),
        ("https://h:99999/x/", "its port is no number"),
        ("http://h:port/x/*.onnx", "its port is no number"),
        ("simplecache::http://:80/x/", "names no host"),
        ("zip://**.onnx::", "cannot be "),
        ("zip://**.onnx::file:///nowhere.zip", "cannot be "),
        ("zip://a**.onnx::file:///nowhere.zip", "cannot be "),
        ("zip://x/::nothing", "cannot be "),
        ("frobnicate://x/", "cannot be opened: Protocol not known"),
        ("a+b-c.d://", "cannot be opened: Protocol not known"),
        ("file:///nowhere/", "cannot be listed: no such file or folder"),
    ],
)
def test_urls_that_lead_nowhere(url: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SplitgraphError) as caught:
        find_sources([url], seconds=20)
    assert told in str(caught.value)
    assert caught.value.diagnostics[0].location == url


def test_a_page_that_is_missing(server: str) -> None:
    with pytest.raises(SplitgraphError, match="cannot be listed: no such file or folder"):
        find_sources([f"{server}/none/"])


def test_models_in_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPLITGRAPH_CACHE", str(tmp_path / "cache"))
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        for name in ("a.onnx", "deep/b.onnx", "../../evil.onnx"):
            archive.writestr(name, split_model().SerializeToString())
    url = f"file://{tmp_path}/z.zip"
    found = [(name, relative) for name, relative, _ in find_urls(f"zip://**/*.onnx::{url}")]
    assert (f"zip://a.onnx::{url}", "a.onnx") in found
    assert (f"zip://deep/b.onnx::{url}", "deep/b.onnx") in found
    assert localized(f"zip://deep/b.onnx::{url}").read_bytes() == split_model().SerializeToString()
    assert list(find_urls(f"zip://a.onnx::{url}")) == [(f"zip://a.onnx::{url}", None, "")]


OLD = {"Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}
NEWER = {"Last-Modified": "Mon, 01 Jan 2024 00:00:01 GMT"}


@pytest.mark.parametrize(
    ("before", "after", "is_read_again"),
    [
        ({"ETag": '"1"'}, {"ETag": '"1"'}, False),
        (OLD, OLD, False),
        ({"ETag": '"1"', **OLD}, {"ETag": '"1"', **OLD}, False),
        ({"ETag": '"1"'}, {"ETag": '"2"'}, True),
        (OLD, NEWER, True),
        ({"ETag": '"1"', **OLD}, {"ETag": '"2"', **OLD}, True),
        ({"Content-MD5": "a"}, {"Content-MD5": "b"}, True),
        ({"ETag": '"1"'}, {}, True),
        # A server that tells nothing of the state of a file is asked for the file.
        ({}, {}, True),
        # This year is not over: a time that has hardly passed.
        ({"Last-Modified": "Fri, 01 Jan 2999 00:00:00 GMT"}, {"Last-Modified": "Fri, 01 Jan 2999 00:00:00 GMT"}, True),
        ({"Last-Modified": "yesterday"}, {"Last-Modified": "yesterday"}, True),
    ],
)
def test_a_model_that_changed(
    before: dict[str, str], after: dict[str, str], is_read_again: bool, server: str, answers: Answers
) -> None:
    first, second = split_model(13).SerializeToString(), split_model(14).SerializeToString()
    assert len(first) == len(second)
    answers["/m.onnx"] = (200, before, first)
    assert localized(f"{server}/m.onnx").read_bytes() == first
    answers["/m.onnx"] = (200, after, second)
    assert localized(f"{server}/m.onnx").read_bytes() == (second if is_read_again else first)


def test_a_size_that_changed(server: str, answers: Answers) -> None:
    answers["/m.onnx"] = (200, OLD, split_model(13).SerializeToString())
    localized(f"{server}/m.onnx")
    model = split_model(13)
    model.doc_string = "larger"
    larger = model.SerializeToString()
    answers["/m.onnx"] = (200, OLD, larger)
    assert localized(f"{server}/m.onnx").read_bytes() == larger


def test_a_query_is_of_the_model(server: str, answers: Answers) -> None:
    answers["/m.onnx?v=1"] = (200, {"ETag": "1"}, split_model(13).SerializeToString())
    answers["/m.onnx?v=2"] = (200, {"ETag": "1"}, split_model(14).SerializeToString())
    first, second = (localized(f"{server}/m.onnx?v={number}") for number in (1, 2))
    assert (first.name, second.name) == ("m.onnx", "m.onnx")
    assert first.read_bytes() != second.read_bytes()
    assert [source.relative for source in find_sources([f"{server}/m.onnx?v=1"])] == [None]


def test_a_model_larger_than_the_disk(server: str, answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    from splitgraph.many import remote

    answers["/m.onnx"] = (200, {}, bytes(4096))
    usage = remote.shutil.disk_usage(".")
    monkeypatch.setattr(remote.shutil, "disk_usage", lambda _: usage._replace(free=4096))
    with pytest.raises(ModelError, match="larger than 2,048 bytes, half of the free space"):
        localized(f"{server}/m.onnx")
