"""Finds the models of a call: files, folders, patterns and URLs; and the place of each result."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from splitgraph.diagnostics import SplitgraphError, diagnostic
from splitgraph.formats.recognition import begins_as_ir

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_ONNX, _IR = ".onnx", ".xml"


@dataclass(frozen=True, slots=True)
class Source:
    """A model of a call.

    name: the path or URL, as it is shown. relative: the path below the folder, or below the first folder of the
    pattern, that led to the model; None for a file that was named.
    """

    name: str
    relative: PurePosixPath | None = None

    @property
    def is_found_ir(self) -> bool:
        """True for an OpenVINO IR that was not named, but found."""
        return self.relative is not None and self.relative.suffix.lower() == _IR

    @property
    def is_url(self) -> bool:
        """True for the URL of a model on another machine."""
        return is_url(self.name)


def is_url(text: str) -> bool:
    """True for a URL, such as s3://bucket/model.onnx."""
    return _URL.match(text) is not None


def needs_onnx(verb: str, options: Mapping[str, Any]) -> bool:
    """True for a verb that OpenVINO IR has no meaning for: it has no opset and no IR version of ONNX, and targets
    read ONNX."""
    if verb in ("upgrade", "downgrade", "check") or options.get("opset") or options.get("target"):
        return True
    return verb == "convert" and options.get("to") is None


def is_pattern(text: str) -> bool:
    """True for a text with characters that stand for others, such as zoo/*.onnx."""
    return glob.has_magic(text)


def find_sources(
    arguments: Sequence[str], exclude: Sequence[str] = (), *, below: Path | None = None, only_onnx: bool = False
) -> list[Source]:
    """The models of the arguments, each once, in order.

    exclude: patterns of models that are left out. below: a folder whose models are none, that of the results.
    only_onnx: leave out OpenVINO IR, except files that were named.
    Raises SplitgraphError (SG601) for a folder or a pattern without a model. A file that was named is not looked at.
    """
    found: dict[str, Source] = {}
    for argument in arguments:
        sources = [each for each in _sources(argument, below) if not (only_onnx and each.is_found_ir)]
        sources = [each for each in sources if not _is_result(each, argument, below)]
        if not sources:
            raise _nothing_found(argument)
        for source in sources:
            if not _is_excluded(source, exclude):
                found.setdefault(_identity(source), source)
    if not found:
        text = f"--exclude leaves out every model of {', '.join(arguments)}"
        raise SplitgraphError(text, [diagnostic("SG601", text)])
    return list(found.values())


def _nothing_found(argument: str) -> SplitgraphError:
    kind = "folder" if os.path.isdir(argument) else "pattern"
    if is_url(argument):
        kind = "URL"
    text = f"there is no model in the {kind} {argument}; models are files that end in .onnx, and OpenVINO IR (.xml)"
    return SplitgraphError(text, [diagnostic("SG601", text, argument)])


def _identity(source: Source) -> str:
    return source.name if source.is_url else os.path.realpath(source.name)


def _sources(argument: str, below: Path | None) -> Iterator[Source]:
    if is_url(argument):
        from splitgraph.batch.remote import find_urls

        yield from (Source(url, relative) for url, relative in find_urls(argument))
    elif os.path.isdir(argument):
        yield from _in_folder(Path(argument), below)
    elif os.path.lexists(argument) or not is_pattern(argument):
        yield Source(argument)
    else:
        yield from _of_pattern(argument, below)


def _in_folder(folder: Path, below: Path | None) -> Iterator[Source]:
    """The models in a folder and its subfolders, but not in hidden ones."""
    for parent, folders, files in os.walk(folder, onerror=_cannot_be_read):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and not _is_at(parent, name, below))
        for name in sorted(files):
            path = Path(parent, name)
            if not name.startswith(".") and _is_model(path):
                yield Source(str(path), PurePosixPath(path.relative_to(folder).as_posix()))


def _cannot_be_read(error: OSError) -> None:
    """Raise the error of a folder that cannot be read: its models must not be left out in silence."""
    text = f"the folder {error.filename} cannot be read: {error.strerror}"
    raise SplitgraphError(text, [diagnostic("SG601", text, str(error.filename))])


def _of_pattern(pattern: str, below: Path | None) -> Iterator[Source]:
    parts = Path(pattern).parts
    fixed = next(index for index, part in enumerate(parts) if glob.has_magic(part))
    base = Path(*parts[:fixed])
    for name in sorted(glob.glob(pattern, recursive=True)):
        path = Path(name)
        if path.is_dir():
            # "models/*" names the folders in models, too.
            yield from (Source(each.name, _below(base, Path(each.name))) for each in _in_folder(path, below))
        elif _is_model(path):
            yield Source(name, _below(base, path))


def _below(base: Path, path: Path) -> PurePosixPath:
    """The path below a folder; a path that leaves the folder is the name alone: no result goes elsewhere."""
    relative = os.path.normpath(path.relative_to(base))
    return PurePosixPath(path.name if relative.startswith("..") else Path(relative).as_posix())


def _is_result(source: Source, argument: str, below: Path | None) -> bool:
    """True for a model that was found in the folder of the results, unless that folder is what was named."""
    if below is None or source.relative is None or source.is_url or not below.exists():
        return False
    if os.path.isdir(argument) and os.path.samefile(argument, below):
        return False
    return Path(os.path.realpath(source.name)).is_relative_to(os.path.realpath(below))


def _is_at(parent: str, name: str, below: Path | None) -> bool:
    return below is not None and below.exists() and os.path.samefile(os.path.join(parent, name), below)


def _is_model(path: Path) -> bool:
    """True for a file that is to be read as a model: every .onnx, and an .xml that is an IR."""
    ending = path.suffix.lower()
    return ending == _ONNX or (ending == _IR and begins_as_ir(path))


def _is_excluded(source: Source, patterns: Iterable[str]) -> bool:
    """True for a model whose path, name, or one of whose folders matches."""
    path = PurePosixPath(source.name.replace(os.sep, "/"))
    relative = path if source.relative is None else source.relative
    texts = {str(path), str(relative), path.name}
    folders = set(relative.parts[:-1]) | {str(parent) for parent in (*relative.parents, *path.parents)}
    for pattern in patterns:
        if pattern.endswith("/"):
            if any(fnmatch.fnmatchcase(folder, pattern.rstrip("/")) for folder in folders):
                return True
        elif any(fnmatch.fnmatchcase(text, pattern) for text in (*texts, *folders)):
            return True
    return False
