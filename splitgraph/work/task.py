"""What a command does with one model, from file to file, and where its result goes."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from splitgraph.diagnostics import SplitgraphError, diagnostic
from splitgraph.formats import DataFile, LoadedModel, write
from splitgraph.options import NO_SIZES, STRICT, Goal, Leeway, Many, Output, Running, Shown, Sizes
from splitgraph.outcome import Verb

if TYPE_CHECKING:
    from splitgraph.formats import Model

_SEPARATORS = tuple(filter(None, (os.sep, os.altsep)))
# The tag of an earlier conversion.
_OPSET_TAG = re.compile(r"\.opset\d+$")
_DEFAULTS = Goal(), Running(), Output()


@dataclass(frozen=True, slots=True)
class Task:
    """What a command does with one model.

    model: a URL before a worker has read it. after: the second model of `verify`. before: of `report`, the model before
    a rewrite whose result `model` is. targets: of `check`; none for all. svg: the split that `report` draws as SVG
    instead of a page. title: of the page. place: the file of the result, in a folder that is made if need be;
    None for what `output` says.
    """

    verb: Verb
    model: Path = Path()
    after: Path | None = None
    before: Path | None = None
    sizes: Sizes = NO_SIZES
    leeway: Leeway = STRICT
    goal: Goal = _DEFAULTS[0]
    running: Running = _DEFAULTS[1]
    output: Output = _DEFAULTS[2]
    targets: Sequence[str] = ()
    svg: str | None = None
    title: str | None = None
    place: Path | None = None

    @property
    def is_rewrite(self) -> bool:
        """True for upgrade, downgrade and convert."""
        return self.verb in ("upgrade", "downgrade", "convert")

    @property
    def runs_models(self) -> bool:
        """True where models are run, within the limit of `running.timeout`."""
        return self.is_rewrite or self.verb == "verify"

    @property
    def ir_version(self) -> int | str | None:
        """The new IR version where nothing else is wanted, or "keep"; None where something else is."""
        is_alone = self.goal.opset is None and self.goal.to is None and self.goal.target is None
        return self.goal.ir_version if is_alone else None

    @property
    def tag(self) -> str:
        """Part of the name of a rewritten model: "opset18"."""
        tags = (
            None if self.goal.opset is None else f"opset{self.goal.opset}",
            self.goal.to,
            self.goal.target,
            None if self.ir_version is None else f"ir{self.ir_version}",
        )
        return ".".join(filter(None, tags))

    def path(self) -> Path | None:
        """Return the file of the result, None for none. Raises SplitgraphError (SG601, SG109) where nothing can be
        written, before any work.
        """
        output = self.output.output
        if self.verb in ("check", "verify"):
            return None
        if self.place is not None:
            return self.place
        if self.verb == "report":
            refuse_other_kind("page", output or "./")
            kind = "html" if self.svg is None else "svg"
            return output_path(output or "./", f"{self.model.stem}.report.{kind}")
        if self.output.in_place:
            if output is not None:
                raise _usage("--in-place overwrites the model, so -o has no meaning; give one of the two")
            return self.model
        if output is not None:
            refuse_other_kind("-o", output)
        if self.verb == "infer":
            return None if output is None else output_path(output, self.model.name)
        name = f"{_OPSET_TAG.sub('', self.model.stem)}.{self.tag}{self.model.suffix or '.onnx'}"
        return self.model.with_name(name) if output is None else output_path(output, name)

    def write(self, model: Model, path: Path, loaded: LoadedModel) -> Sequence[DataFile]:
        """Write a model, and return the data files that it depends on. The path may name a new folder."""
        path.parent.mkdir(parents=True, exist_ok=True)
        overwrite = self.output.force or self.output.in_place
        return write(model, path, source=loaded, overwrite=overwrite, external_data=self.output.external_data)


class Call(NamedTuple):
    """A call of a command on models: files, folders, patterns and URLs. task: what is done with each of them."""

    models: Sequence[str]
    task: Task
    shown: Shown
    many: Many


def output_path(output: str, name: str) -> Path:
    """The file for an output. A folder, or a path with a separator at its end, means this name in the folder.

    Raises SplitgraphError (SG109) if nothing can be written there.
    """
    if output.endswith(_SEPARATORS):
        path = Path(output) / name
        # The folder is made when there is something to write.
        existing = next(folder for folder in (path.parent, *path.parent.parents) if folder.exists())
    else:
        path = Path(output) / name if os.path.isdir(output) else Path(output)
        existing = path.parent
    problem = None
    if not existing.is_dir():
        problem = "is a file" if existing.exists() else "does not exist"
    elif not os.access(existing, os.W_OK):
        problem = "cannot be written to"
    if problem is not None:
        message = f"the folder {existing} of the output {problem}"
        raise SplitgraphError(message, [diagnostic("SG109", message, str(path))])
    return path


# What the endings of files say that is in them, and the option that writes it.
_KINDS = {
    ".onnx": ("a model", "-o FILE"),
    ".pb": ("a model", "-o FILE"),
    ".bin": ("weights", "-o FILE"),
    ".npz": ("arrays", "--inputs FILE"),
    ".html": ("a page", "splitgraph report MODEL -o FILE"),
    ".htm": ("a page", "splitgraph report MODEL -o FILE"),
    ".svg": ("a picture", "splitgraph report MODEL --svg NODE -o FILE"),
    ".json": ("JSON", "--json > FILE"),
    ".jsonl": ("lines of JSON", "--report FILE"),
    ".ndjson": ("lines of JSON", "--report FILE"),
}
_XML = {"-o": ("OpenVINO IR", "-o FILE"), "page": ("OpenVINO IR", "-o FILE")}
# What each option writes, and the endings of the table that it may have.
_WRITES = {
    "--report": ("one line of JSON for each model", (".json", ".jsonl", ".ndjson")),
    "--junit": ("JUnit XML", (".xml",)),
    "-o": ("a model", (".onnx", ".xml", ".pb", ".bin")),
    "page": ("a page", (".html", ".htm", ".svg")),
}


def refuse_other_kind(option: str, file: str) -> None:
    """Raises SplitgraphError (SG601) where the ending of a file says that something else is meant than what an option
    writes. option: "--report", "--junit", "-o" of a model, or "page" for the -o of pages.
    """
    told, endings = _WRITES[option]
    ending = Path(file).suffix.lower()
    kind, meant = _XML.get(option, ("JUnit XML", "--junit FILE")) if ending == ".xml" else _KINDS.get(ending, ("", ""))
    if not kind or ending in endings or os.path.isdir(file) or file.endswith(_SEPARATORS):
        return
    named = "-o" if option == "page" else option
    wanted = next(iter(endings))
    text = f"{named} writes {told}, and {file} is a name for {kind}"
    help = f"Give a name that ends in {wanted}, or use {meant} for {kind}."
    raise SplitgraphError(f"{text}. {help}", [diagnostic("SG601", text, file, help=help)])


def refuse_existing(path: Path, model: Path, *, force: bool, advice: str) -> None:
    """Raises SplitgraphError if the path is the model itself (SG601), or if the path exists and force is not given
    (SG108). advice: help for SG601.
    """
    # Path.exists raises for a name that is too long.
    if os.path.exists(path) and os.path.exists(model) and os.path.samefile(path, model):
        raise _usage(f"{path} is the model itself; {advice}")
    if not force and os.path.lexists(path):
        message = f"{path} exists; choose another name with -o, or pass --force to overwrite it"
        raise SplitgraphError(message, [diagnostic("SG108", message, str(path))])


def _usage(message: str) -> SplitgraphError:
    return SplitgraphError(message, [diagnostic("SG601", message)])
