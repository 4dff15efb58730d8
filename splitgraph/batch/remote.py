"""Models at URLs (s3://, hf://, https:// and others), read by fsspec into a local cache."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from splitgraph.batch.sources import is_pattern, is_url
from splitgraph.cache_folder import cache_folder
from splitgraph.diagnostics import ModelError, SplitgraphError, diagnostic
from splitgraph.formats.external_data import is_inside
from splitgraph.formats.onnx_file import external_locations

_MODELS = (".onnx", ".xml")
# Beside a file of the cache: what the other machine said of the file's state when it was read.
_STATE = ".state"


def find_urls(url: str) -> Iterator[tuple[str, PurePosixPath | None]]:
    """The models of a URL, each with its path below the URL's folder: of a model that URL itself, without a path; of a
    folder or a pattern those in it. Raises SplitgraphError where fsspec, or its part for the protocol, is missing.
    """
    if url.endswith(_MODELS) and not is_pattern(url):
        yield url, None
        return
    system, path = _system(url)
    base = path.rstrip("/")
    if is_pattern(path):
        found = system.glob(path)
        base = path[: next(index for index, char in enumerate(path) if char in "*?[")].rpartition("/")[0]
    else:
        found = system.find(path)
    for each in sorted(found):
        if each.endswith(_MODELS):
            relative = each.removeprefix(base).lstrip("/")
            yield system.unstrip_protocol(each), PurePosixPath(relative)


def localized(name: str) -> Path:
    """The path of a model; one at a URL is read into the cache first, with its data files. Raises SplitgraphError."""
    if not is_url(name):
        return Path(name)
    system, path = _system(name)
    folder = cache_folder() / "remote" / hashlib.sha256(name.rpartition("/")[0].encode()).hexdigest()[:16]
    remote_folder, _, last = path.rpartition("/")
    local = folder / last
    _read(system, path, local, name)
    if local.suffix == ".xml":
        weights = path.removesuffix(".xml") + ".bin"
        if system.exists(weights):
            _read(system, weights, local.with_suffix(".bin"), name)
        return local
    for location in external_locations(local):
        # What lies outside is refused when the model is opened.
        if is_inside(folder, location):
            _read(system, f"{remote_folder}/{location}", folder / location, name)
    return local


def _system(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it."""
    try:
        import fsspec
    except ImportError as error:
        text = f"{url} is a URL, and fsspec is not installed, which reads URLs"
        help = "Install it: pip install 'onnx-splitgraph[fsspec]'."
        raise SplitgraphError(text, [diagnostic("SG601", text, url, help=help)]) from error
    try:
        system, path = fsspec.core.url_to_fs(url)
    except Exception as error:
        # Each protocol has a package and errors of its own.
        text = f"{url} cannot be opened: {error}"
        raise SplitgraphError(text, [diagnostic("SG601", text, url, help="Check the protocol of the URL.")]) from error
    return system, path


def _read(system: Any, path: str, local: Path, url: str) -> None:
    """Read a file into the cache, unless the cache has the file in the state that it has now."""
    state = local.with_name(f".{local.name}{_STATE}")
    try:
        told = str(system.ukey(path))
        if local.exists() and state.exists() and state.read_text("utf-8") == told:
            return
        local.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=local.parent, prefix=".")
        os.close(descriptor)
        try:
            system.get_file(path, temporary)
            os.replace(temporary, local)
        finally:
            Path(temporary).unlink(missing_ok=True)
        state.write_text(told, "utf-8")
    except Exception as error:
        # Each protocol has errors of its own.
        text = f"{url} cannot be read: {path}: {error or type(error).__name__}"
        raise ModelError(text, [diagnostic("SG101", text, url)]) from error
