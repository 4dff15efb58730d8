"""Models at URLs (s3://, hf://, https:// and others), read by fsspec into a local cache."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeVar
from urllib.parse import urlsplit

from splitgraph.findings.diagnostics import ModelError, SplitgraphError, diagnostic
from splitgraph.formats.external_data import is_inside
from splitgraph.formats.onnx_file import external_locations
from splitgraph.processes.folders import cache_folder

_Result = TypeVar("_Result")
# A URL may begin with the protocols that read it, as in simplecache::http://host/model.onnx.
_URL = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*::)*[A-Za-z][A-Za-z0-9+.-]*://")
_MODELS = (".onnx", ".xml")
# Beside a file of the cache: what the other machine said of the file's state when it was read.
_STATE = ".state"
# The names that file systems give to the state of a file's content, in small letters without dashes and underscores.
_CONTENT = frozenset(
    {
        "blobid",
        "checksum",
        "contenthash",
        "contentmd5",
        "crc",
        "crc32c",
        "digest",
        "etag",
        "generation",
        "md5",
        "md5hash",
    }
    | {"oid", "sha", "sha1", "sha256", "versionid"}
)
_TIMES = frozenset({"datetime", "lastcommit", "lastmodified", "modified", "mtime", "updated"})
# A time of change that is younger than this many seconds tells nothing: the file may change again within one tick of
# the other machine's clock.
_SETTLED = 60.0
_PORT_OR_ADDRESS = "Write http://HOST/... or http://HOST:PORT/..., with the name of the host."


def is_url(text: str) -> bool:
    """Return True for a URL, such as s3://bucket/model.onnx."""
    return _URL.match(text) is not None


def is_model_url(text: str) -> bool:
    """Return True for the URL of one model, as its ending says."""
    return is_url(text) and "::" not in text and _is_model(without_query(text)) and not is_pattern(text)


def without_query(url: str) -> str:
    """Return a web address without the query, as ?token=1; return any other text unchanged."""
    return re.split("[?#]", url, maxsplit=1)[0] if url.lower().startswith(("http://", "https://")) else url


def file_name(name: str) -> str:
    """Return the name of the file at a path or a URL, also in an archive (zip://a.onnx::http://host/b.zip)."""
    if not is_url(name) and "::" not in name:
        return Path(name).name
    parts = [part for part in name.split("::") if "://" in part]
    return without_query(parts[0] if parts else name).rpartition("/")[2]


def is_pattern(text: str) -> bool:
    """Return True for a text with wildcards, such as zoo/*.onnx."""
    if is_url(text):
        # The brackets of an address, and the query of a web address, stand for themselves.
        return glob.has_magic(re.sub(r"https?://[^/]*", "", without_query(text), flags=re.IGNORECASE))
    return glob.has_magic(text)


def find_urls(url: str, seconds: float | None = None) -> Iterator[tuple[str, str | None, str]]:
    """Find the models of a URL. Each comes with its path below the URL's folder, None for a URL of one model, and with
    the reason if the model or a folder cannot be read, else "".

    seconds: the limit for the whole search. Raises SplitgraphError for a URL that cannot be read, and if fsspec, or its
    part for the protocol, is missing.
    """
    if is_model_url(url):
        yield url, None, ""
        return
    yield from _in_time(seconds, url, lambda stop: list(_models_at(url, stop)))


def _models_at(url: str, stop: Event) -> Iterator[tuple[str, str | None, str]]:
    system, path = _system(url)
    if _is_model(path) and not is_pattern(path):
        yield url, None, ""
        return
    base = path.rstrip("/")
    if is_pattern(path):
        base = path[: next(index for index, char in enumerate(path) if char in "*?[")].rpartition("/")[0]
    try:
        for address, reason in _listed(system, path, base, stop):
            if reason or _is_model(without_query(address)):
                yield _url_of(url, system, address), _relative(without_query(address), base), reason
    except Exception as error:
        # Each protocol has errors of its own.
        raise _unreadable(url, "listed", error) from error


def _relative(name: str, base: str) -> str:
    """Return the path below a folder; it begins with .. if the path is elsewhere."""
    folder = f"{base}/" if base else ""
    return name.removeprefix(folder) if name.startswith(folder) else f"../{name.rpartition('/')[2]}"


def _listed(system: Any, path: str, base: str, stop: Event) -> Iterator[tuple[str, str]]:
    """Find the files of a folder or a pattern, in order; and each subfolder that cannot be read, with the reason."""
    from fsspec.asyn import AsyncFileSystem
    from fsspec.spec import AbstractFileSystem
    from fsspec.utils import glob_translate

    kind = type(system)
    if kind.find is not AbstractFileSystem.find or getattr(kind, "_find", None) not in (None, AsyncFileSystem._find):
        # A system that has a listing of its own for whole trees tells of every error.
        yield from ((address, "") for address in sorted(system.glob(path) if is_pattern(path) else system.find(path)))
        return
    fits = re.compile(glob_translate(path) if is_pattern(path) else "")
    entries = list(_walk(system, base if is_pattern(path) else path, stop))
    yield from (
        (address, reason) for address, reason in sorted(entries) if reason or fits.match(without_query(address))
    )


def _walk(system: Any, base: str, stop: Event) -> Iterator[tuple[str, str]]:
    left, seen = [base], {base.rstrip("/")}
    while left and not stop.is_set():
        folder = left.pop()
        try:
            entries = system.ls(folder, detail=True)
        except Exception as error:
            # Each protocol has errors of its own.
            if folder == base:
                raise
            yield folder, _said(error)
            continue
        for entry in entries:
            name = entry["name"]
            if entry["type"] != "directory":
                yield name, ""
            # A page lists the folders above it, too.
            elif name.rstrip("/") not in seen and _is_below(name, base):
                seen.add(name.rstrip("/"))
                left.append(name)


def _is_below(name: str, base: str) -> bool:
    return ".." not in name.split("/") and name.startswith(base.rstrip("/"))


def _is_model(name: str) -> bool:
    return name.lower().endswith(_MODELS)


def _url_of(url: str, system: Any, name: str) -> str:
    """Return the URL of a file that was listed for another URL; a file in an archive keeps the URL of the archive."""
    first, chain, rest = url.partition("::")
    if not chain:
        return str(system.unstrip_protocol(name))
    protocol, named, _ = first.partition("://")
    return f"{protocol}://{name.lstrip('/')}::{rest}" if named else f"{first}::{system.unstrip_protocol(name)}"


def localized(name: str, seconds: float | None = None) -> Path:
    """Return the local path of a model; a model at a URL is first read into the cache, with its data files.

    seconds: the limit for that. Raises SplitgraphError.
    """
    if not is_url(name):
        return Path(name)
    return _in_time(seconds, name, lambda stop: _read_model(name))


def _read_model(name: str) -> Path:
    system, path = _system(name)
    bare = without_query(path)
    query = path.removeprefix(bare)
    # Models of one folder share its data files.
    of_folder = name.replace(file_name(name), "", 1)
    folder = cache_folder() / "remote" / hashlib.sha256(of_folder.encode()).hexdigest()[:16]
    remote_folder = bare.rpartition("/")[0]
    local = folder / file_name(name)
    _read(system, path, local, name)
    if local.suffix.lower() == ".xml":
        weights = str(Path(bare).with_suffix(".bin")) if "://" not in bare else bare[: -len(".xml")] + ".bin"
        if _exists(system, weights + query):
            _read(system, weights + query, local.with_suffix(".bin"), name)
        return local
    for location in external_locations(local):
        # Data files outside the folder are refused when the model is opened.
        if is_inside(folder, location):
            there = f"{remote_folder}/{location}" if remote_folder else location
            _read(system, there + query, folder / location, name)
    return local


def _exists(system: Any, path: str) -> bool:
    try:
        return bool(system.exists(path))
    except Exception:
        # Each protocol has errors of its own; whoever opens the IR says that its weights are missing.
        return False


def _system(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it. Old listings are dropped."""
    try:
        import fsspec
    except ImportError as error:
        text = f"{url} is a URL, and fsspec is not installed, which reads URLs"
        help = "Install it: pip install 'onnx-splitgraph[fsspec]'."
        raise SplitgraphError(text, [diagnostic("SG601", text, url, help=help)]) from error
    _require_host(url)
    try:
        system, path = fsspec.core.url_to_fs(url, skip_instance_cache=True)
    except Exception as error:
        # Each protocol has a package and errors of its own.
        raise _unreadable(url, "opened", error) from error
    return system, path


def _require_host(url: str) -> None:
    """Raise SplitgraphError for a web address without a host that fsspec can read."""
    for address in re.findall(r"https?://[^/?#]*", url, re.IGNORECASE):
        problem = "it names no host"
        if "[" in address or "]" in address:
            problem = "an address in brackets (IPv6) is not read"
        elif (parts := urlsplit(address)).hostname and " " not in address:
            problem = "its port is no number from 1 to 65535"
            # A port that is no number raises.
            with contextlib.suppress(ValueError):
                if parts.port is None or parts.port:
                    continue
        text = f"{url} cannot be opened: {problem}"
        raise SplitgraphError(text, [diagnostic("SG601", text, url, help=_PORT_OR_ADDRESS)])


def _said(error: Exception) -> str:
    """Return the message of an error of another package in one line."""
    if isinstance(error, FileNotFoundError):
        # fsspec says so of a server that nobody reaches, too; what it met comes before.
        unreached = next((each for each in _causes(error) if not isinstance(each, FileNotFoundError)), None)
        if isinstance(unreached, OSError):
            return f"its server cannot be reached: {' '.join(str(unreached).split())}"
        return "no such file or folder"
    return " ".join(str(error).split()) or type(error).__name__


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors that led to an error, the last one first."""
    cause = error.__cause__ or error.__context__
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _unreadable(url: str, how: str, error: Exception) -> SplitgraphError:
    if isinstance(error, SplitgraphError):
        return error
    text = f"{url} cannot be {how}: {_said(error)}"
    return SplitgraphError(text, [diagnostic("SG601", text, url, help="Check the URL, its protocol and its server.")])


def _in_time(seconds: float | None, url: str, work: Callable[[Event], _Result]) -> _Result:
    """Do work that waits for another machine. Raises SplitgraphError (SG605) after the limit: the work is told to stop,
    and is left behind if it does not.
    """
    if seconds is None:
        return work(Event())
    stop, results, errors = Event(), list[_Result](), list[BaseException]()

    def run() -> None:
        try:
            results.append(work(stop))
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if results:
        return results[0]
    stop.set()
    text = f"{url} was not read within the limit of {seconds:g} s"
    raise SplitgraphError(text, [diagnostic("SG605", text, url)])


def _state(told: Mapping[str, Any]) -> str | None:
    """Return how a file system describes the state of a file, None if the description may miss a change."""
    known = {re.sub("[-_]", "", name).lower(): value for name, value in told.items() if value not in (None, "")}
    content = {name: value for name, value in known.items() if name in _CONTENT}
    times = {name: value for name, value in known.items() if name in _TIMES}
    if not content and not (times and all(map(_is_settled, times.values()))):
        return None
    return repr(
        sorted(
            {**content, **times, "size": known.get("size"), "ino": known.get("ino")}.items(), key=lambda item: item[0]
        )
    )


def _is_settled(changed: object) -> bool:
    """Return True if a time of change is long enough ago."""
    try:
        if isinstance(changed, str):
            changed = parsedate_to_datetime(changed)
        if isinstance(changed, datetime):
            changed = changed.timestamp()
        if not isinstance(changed, (int, float)):
            return False
        # A clock with fractions of a second has ticks that are shorter than any write.
        return changed != int(changed) or time.time() - changed > _SETTLED
    except ValueError:
        return False


def _read(system: Any, path: str, local: Path, url: str) -> None:
    """Read a file into the cache, unless the cache already has its present state."""
    state = local.with_name(f".{local.name}{_STATE}")
    try:
        told = system.info(path)
        now = _state(told)
        if now is not None and local.exists() and state.exists() and state.read_text("utf-8") == now:
            return
        local.parent.mkdir(parents=True, exist_ok=True)
        state.unlink(missing_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=local.parent, prefix=".")
        os.close(descriptor)
        try:
            system.get_file(path, temporary, callback=_limited(local.parent, told.get("size")))
            os.replace(temporary, local)
        finally:
            Path(temporary).unlink(missing_ok=True)
        if now is not None:
            state.write_text(now, "utf-8")
    except Exception as error:
        # Each protocol has errors of its own.
        # The weights of a model have a path of their own.
        which = "" if url.endswith(path) else f"{path}: "
        text = f"{url} cannot be read: {which}{_said(error)}"
        raise ModelError(text, [diagnostic("SG101", text, url)]) from error


def _limited(folder: Path, size: int | None) -> Any:
    """Return a callback for a download that ends it if it takes more than half of the free space of a folder."""
    from fsspec.callbacks import Callback

    most = shutil.disk_usage(folder).free // 2

    class Limited(Callback):  # type: ignore[misc, unused-ignore]
        def set_size(self, size: int | None) -> None:
            if size is not None and size > most:
                raise OSError(_too_large(folder, most))

        def relative_update(self, inc: int = 1) -> None:
            self.value += inc
            if self.value > most:
                raise OSError(_too_large(folder, most))

    limit = Limited()
    limit.set_size(size)
    return limit


def _too_large(folder: Path, most: int) -> str:
    return f"it is larger than {most:,} bytes, half of the free space of the cache {folder} (SPLITGRAPH_CACHE)"
