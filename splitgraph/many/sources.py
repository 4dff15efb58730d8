"""Find the models of a call: files, folders, patterns and URLs; and the pairs of models in two folders."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from splitgraph.findings.diagnostics import Diagnostic, SplitgraphError, diagnostic
from splitgraph.formats.recognition import begins_as_ir
from splitgraph.many.remote import find_urls, is_pattern, is_url

_ONNX, _IR = ".onnx", ".xml"
# The tag of a conversion to another opset.
_OPSET_TAG = re.compile(r"(\.opset\w*)?(\.ml\d+)?$")


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model of a call.

    name: the path or URL, as shown to the user. relative: the path below the folder, or below the first folder of the
    pattern, in which the model was found (`places` says where the result goes); None for a file that the user named.
    problem: the reason why the model, or a folder, cannot be read.
    """

    name: str
    relative: PurePosixPath | None = None
    problem: Diagnostic | None = None

    @property
    def is_found_ir(self) -> bool:
        """Return True for an OpenVINO IR that was found, not named."""
        return self.relative is not None and self.relative.suffix.lower() == _IR

    @property
    def is_url(self) -> bool:
        """Return True for the URL of a model on another machine."""
        return is_url(self.name)


def find_sources(
    arguments: Sequence[str],
    exclude: Sequence[str] = (),
    *,
    below: Path | None = None,
    only_onnx: bool = False,
    seconds: float | None = None,
) -> list[ModelSource]:
    """Find the models of the arguments, each once, in order; and the folders in them that cannot be read.

    exclude: patterns of models that are left out. below: the folder of the results, whose models are left out.
    only_onnx: leave out OpenVINO IR, except files that the user named. seconds: the limit for listing a URL. Raises
    SplitgraphError (SG601) for a folder or a pattern without a model. Named files are not opened.
    """
    if not arguments:
        text = "there are no models: the list of sources is empty"
        raise SplitgraphError(text, [diagnostic("SG601", text)])
    by_identity: dict[str, ModelSource] = {}
    for argument in arguments:
        sources = [
            candidate for candidate in _sources(argument, below, seconds) if not (only_onnx and candidate.is_found_ir)
        ]
        sources = [candidate for candidate in sources if not _is_result(candidate, argument, below)]
        if not sources:
            raise _nothing_found(argument)
        for source in sources:
            if not _is_excluded(source, exclude):
                identity = source.name if source.is_url else os.path.realpath(source.name)
                by_identity.setdefault(identity, source)
    if not by_identity:
        text = f"--exclude leaves out every model of {', '.join(arguments)}"
        raise SplitgraphError(text, [diagnostic("SG601", text)])
    return list(by_identity.values())


def without_results(
    sources: Sequence[ModelSource], is_tag: Callable[[str], bool]
) -> tuple[list[ModelSource], list[ModelSource]]:
    """Return the models, and apart from them the results of earlier calls that were found beside their models:
    a.opset18.onnx is a result if a.onnx is among the models. is_tag: tells whether a part of a name is the tag of a
    result.
    """
    names = {source.name for source in sources}

    def is_result(source: ModelSource) -> bool:
        if source.relative is None or source.is_url:
            return False
        path = Path(source.name)
        first, *tags = path.stem.split(".")
        stems = [(".".join((first, *tags[:number])), ".".join(tags[number:])) for number in range(len(tags))]
        return any(str(path.with_name(stem + path.suffix)) in names and is_tag(tag) for stem, tag in stems)

    results = [source for source in sources if is_result(source)]
    return [source for source in sources if source not in results], results


def _nothing_found(argument: str) -> SplitgraphError:
    kind = "folder" if os.path.isdir(argument) else "pattern"
    if is_url(argument):
        kind = "URL"
    text = f"there is no model in the {kind} {argument}; models are files that end in .onnx, and OpenVINO IR (.xml)"
    return SplitgraphError(text, [diagnostic("SG601", text, argument)])


def _sources(argument: str, below: Path | None, seconds: float | None) -> Iterator[ModelSource]:
    # fsspec puts what reads another URL before it: zip://a.onnx::http://host/b.zip, simplecache::http://host/a.onnx.
    if is_url(argument):
        for url, relative, reason in find_urls(argument, seconds):
            problem = _cannot_be_read(url, reason) if reason else None
            yield ModelSource(url, None if relative is None else PurePosixPath(relative), problem)
    elif os.path.isdir(argument):
        yield from _in_folder(Path(argument), below)
    elif os.path.lexists(argument) or not is_pattern(argument):
        yield ModelSource(argument)
    else:
        yield from _of_pattern(argument, below)


def _in_folder(folder: Path, below: Path | None) -> Iterator[ModelSource]:
    """Find the models in a folder and its subfolders, but not in hidden ones."""
    closed: list[OSError] = []
    for parent, folders, files in os.walk(folder, onerror=closed.append):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and not _is_at(parent, name, below))
        for name in sorted(files):
            path = Path(parent, name)
            if not name.startswith(".") and _is_model(path):
                yield ModelSource(str(path), PurePosixPath(path.relative_to(folder).as_posix()))
    # Their models must not be left out in silence.
    for error in closed:
        path = Path(error.filename)
        problem = _cannot_be_read(str(path), error.strerror or str(error))
        yield ModelSource(str(path), PurePosixPath(path.relative_to(folder).as_posix()), problem)


def _cannot_be_read(folder: str, reason: str) -> Diagnostic:
    return diagnostic("SG601", f"the folder {folder} cannot be read: {reason}", folder, help="Check who may read it.")


def _of_pattern(pattern: str, below: Path | None) -> Iterator[ModelSource]:
    parts = Path(pattern).parts
    fixed = next(index for index, part in enumerate(parts) if glob.has_magic(part))
    base = Path(*parts[:fixed])
    for name in sorted(glob.glob(pattern, recursive=True)):
        path = Path(name)
        if path.is_dir():
            # "models/*" names the folders in models, too.
            sources = _in_folder(path, below)
            yield from (ModelSource(source.name, _below(base, Path(source.name)), source.problem) for source in sources)
        elif _is_model(path):
            yield ModelSource(name, _below(base, path))


def _below(base: Path, path: Path) -> PurePosixPath:
    """Return the path below a folder, by names alone; it begins with .. if the pattern leaves the folder."""
    return PurePosixPath(Path(os.path.relpath(os.path.normpath(path), os.path.normpath(base))).as_posix())


def _is_result(source: ModelSource, argument: str, below: Path | None) -> bool:
    """Return True for a model that was found in the folder of the results, unless the user named that folder."""
    if below is None or source.relative is None or source.is_url or not below.exists():
        return False
    if os.path.isdir(argument) and os.path.samefile(argument, below):
        return False
    return Path(os.path.realpath(source.name)).is_relative_to(os.path.realpath(below))


def _is_at(parent: str, name: str, below: Path | None) -> bool:
    return below is not None and below.exists() and os.path.samefile(os.path.join(parent, name), below)


def _is_model(path: Path) -> bool:
    """Return True for a file to read as a model: every .onnx, and an .xml that is an IR."""
    ending = path.suffix.lower()
    return ending == _ONNX or (ending == _IR and begins_as_ir(path))


def _is_excluded(source: ModelSource, patterns: Iterable[str]) -> bool:
    """Return True if the path or the name of a model, or one of its folders, matches."""
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


def find_pairs(before: Sequence[ModelSource], after: Sequence[ModelSource]) -> list[tuple[str, str | None]]:
    """Find the second model for each first model, None without one. It is the model at the same path, or else the only
    one beside that path whose name is the first name with a tag: model.opset18.onnx for model.onnx. A second model
    belongs to the first model with the longest such name.
    """
    exact = {source.relative: source.name for source in after}
    names = {key: source.relative for source in before if source.relative is not None for key in _keys(source.relative)}
    tagged: dict[PurePosixPath, list[str]] = defaultdict(list)
    for source in after:
        untagged = [] if source.relative is None else _without_tags(source.relative)
        owner = next((names[name] for name in reversed(untagged) if name in names), None)
        if owner is not None:
            tagged[owner].append(source.name)
    pairs: list[tuple[str, str | None]] = []
    for source in before:
        second = exact.get(source.relative)
        if second is None and source.relative is not None:
            candidates = [name for name in tagged[source.relative] if name != source.name]
            second = candidates[0] if len(candidates) == 1 else None
        pairs.append((source.name, second))
    return pairs


def _without_tags(path: PurePosixPath) -> list[PurePosixPath]:
    """Return the names of which a name may be a tagged form: model.opset18 and model, for model.opset18.onnx."""
    parts = path.stem.split(".")
    return [path.with_name(".".join(parts[:length])) for length in range(1, len(parts))]


def _keys(path: PurePosixPath) -> list[PurePosixPath]:
    """Return a name without its ending, and without the opset tag that a conversion replaces."""
    stem = path.stem
    head = _OPSET_TAG.sub("", stem)
    known = [stem, head] if head and head != stem else [stem]
    return [path.with_name(name) for name in known]
