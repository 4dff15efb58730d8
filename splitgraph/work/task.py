"""The work of a command on one model, from file to file, and the place of its result."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from splitgraph.findings.diagnostics import SplitgraphError, diagnostic, meant
from splitgraph.findings.outcome import REWRITING, Verb
from splitgraph.formats import DataFile, LoadedModel, write
from splitgraph.model.scopes import plain_domain
from splitgraph.options import NO_SIZES, STRICT, Converting, Leeway, Many, Opset, Output, Running, Shown, Sizes, Wanted

if TYPE_CHECKING:
    from splitgraph.dim import Dim
    from splitgraph.formats import Model


_SEPARATORS = tuple(filter(None, (os.sep, os.altsep)))
# The tag of a result for which a caller asked no more than to read nodes by their form, or to fix defaults.
_CORRECTED = "corrected"
# The tag of an earlier conversion.
_OPSET_TAG = re.compile(r"\.opset\d+(\.ml\d+)?$|\.ml\d+$")


@dataclass(frozen=True, slots=True)
class FileTask:
    """The work of a command on one model.

    model: a URL before a worker has read it. after: the second model of `verify`. before: of `report`, the model before
    a rewrite whose result is `model`. targets: of `check`, none for all; and the two runtimes of `verify`. run: whether
    `check` runs the model in the runtimes of its targets. svg: the split that `report` draws as SVG instead of a page.
    title: of the page. wanted: what a rewriting verb is asked for. place: the file of the result, in a folder that is
    made if needed; None for the file that `output` says. source: the URL that the model was read from, if it was.
    """

    verb: Verb
    model: Path = Path()
    after: Path | None = None
    before: Path | None = None
    sizes: Sizes = NO_SIZES
    leeway: Leeway = STRICT
    wanted: Wanted = field(default_factory=Converting)
    running: Running = field(default_factory=Running)
    output: Output = field(default_factory=Output)
    targets: Sequence[str] = ()
    run: bool = False
    svg: str | None = None
    title: str | None = None
    place: Path | None = None
    source: str = ""

    @property
    def name(self) -> str:
        """Return the model as the caller names it."""
        return self.source or str(self.model)

    @property
    def is_rewrite(self) -> bool:
        """Return True for upgrade, downgrade, convert and reshape."""
        return self.verb in REWRITING

    @property
    def runs_models(self) -> bool:
        """Return True if models are run, within the limit of `running.timeout`."""
        return self.is_rewrite or self.verb == "verify"

    @property
    def converting(self) -> Converting:
        """Return what upgrade, downgrade or convert is asked for; nothing for the other verbs."""
        return self.wanted if isinstance(self.wanted, Converting) else Converting()

    @property
    def needs_onnx(self) -> bool:
        """Return True for work that has no meaning for OpenVINO IR: an IR has no opset and no IR version of ONNX, and
        targets read ONNX.
        """
        if self.verb == "convert":
            return bool(self.converting.opset or self.converting.target) or self.converting.to is None
        return self.verb in ("upgrade", "downgrade", "check")

    def path(self) -> Path | None:
        """Return the file of the result, None for none. Raises SplitgraphError (SG601, SG109) before any work if
        nothing can be written.
        """
        output = self.output.output
        if self.verb in ("check", "verify"):
            return None
        if self.place is not None:
            return self.place
        if self.output.in_place and self.verb != "report":
            if output is not None:
                raise _usage("--in-place overwrites the model, so -o has no meaning; give one of the two")
            return self.model
        if output is not None:
            refuse_other_kind("page" if self.verb == "report" else "-o", output)
            return output_path(output, self._default_name())
        return None if self.verb == "infer" else self.model.with_name(self._default_name())

    def _default_name(self) -> str:
        """Return the name of the result for a caller who names at most a folder."""
        if self.verb == "infer":
            return self.model.name
        if self.verb == "report":
            return f"{self.model.stem}.report.{'html' if self.svg is None else 'svg'}"
        return f"{_OPSET_TAG.sub('', self.model.stem)}.{self.wanted.tag or _CORRECTED}{self.model.suffix or '.onnx'}"

    def write(self, model: Model, path: Path, loaded: LoadedModel) -> Sequence[DataFile]:
        """Write a model, and return the data files that it depends on. The path may name a new folder."""
        path.parent.mkdir(parents=True, exist_ok=True)
        overwrite = self.output.force or self.output.in_place
        return write(model, path, source=loaded, overwrite=overwrite, external_data=self.output.external_data)


class Call(NamedTuple):
    """A call of a command on models: files, folders, patterns and URLs. task: the work on each of them."""

    models: Sequence[str]
    task: FileTask
    shown: Shown
    many: Many


def output_path(output: str, name: str) -> Path:
    """Return the file for an output. A folder, or a path with a separator at its end, means this name in the folder.

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


# The kind of file that an ending stands for, and the option that writes it beside the one that was given; "" for none.
_KINDS = {
    ".onnx": ("a model", ""),
    ".pb": ("a model", ""),
    ".bin": ("weights", ""),
    ".npz": ("arrays", ""),
    ".html": ("a page", "splitgraph report MODEL -o FILE"),
    ".htm": ("a page", "splitgraph report MODEL -o FILE"),
    ".svg": ("a picture", "splitgraph report MODEL --svg NODE -o FILE"),
    ".json": ("JSON", "--json > FILE"),
    ".jsonl": ("lines of JSON", "--report FILE"),
    ".ndjson": ("lines of JSON", "--report FILE"),
}
_XML = {"-o": ("OpenVINO IR", ""), "page": ("OpenVINO IR", "")}
# The file that each option writes, and the endings of the table that the file may have.
_WRITES = {
    "--report": ("one line of JSON for each model", (".json", ".jsonl", ".ndjson")),
    "--junit": ("JUnit XML", (".xml",)),
    "-o": ("a model", (".onnx", ".xml", ".pb", ".bin")),
    "page": ("a page", (".html", ".htm", ".svg")),
}


def refuse_other_kind(option: str, file: str) -> None:
    """Raise SplitgraphError (SG601) if the ending of a file belongs to another kind of file than the option writes.

    option: "--report", "--junit", "-o" of a model, or "page" for the -o of pages.
    """
    told, endings = _WRITES[option]
    ending = Path(file).suffix.lower()
    kind, meant = _XML.get(option, ("JUnit XML", "--junit FILE")) if ending == ".xml" else _KINDS.get(ending, ("", ""))
    if not kind or ending in endings or os.path.isdir(file) or file.endswith(_SEPARATORS):
        return
    named = "-o" if option == "page" else option
    wanted = next(iter(endings))
    text = f"{named} writes {told}, and {file} is a name for {kind}"
    help = f"Give a name that ends in {wanted}{f', or use {meant} for {kind}' if meant else ''}."
    raise SplitgraphError(f"{text}. {help}", [diagnostic("SG601", text, file, help=help)])


def refuse_existing(path: Path, model: Path, *, force: bool, advice: str) -> None:
    """Raise SplitgraphError if the path is the model itself (SG601), or if the path exists and force is not given
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


# Texts of the command line --------------------------------------------------------------------------------------------


_MOST_SHOWN = 200
_FORM = "INPUT=DIMENSION,..., such as x=1,3,H,W"
_DIMENSION = "integers of at least 0, names, expressions such as N + 2 or (N + 1)//2, and ? for an unknown dimension"


def parse_bindings(texts: Iterable[str], option: str = "--bind") -> dict[str, int]:
    """Return the values of `--bind N=4` or `--try N=4`, by symbol. Raises SplitgraphError (SG601) for all but
    NAME=NUMBER.
    """
    from splitgraph.dim import is_size

    bindings: dict[str, int] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        if not name or not is_size(number):
            form = "NAME=NUMBER with a number of at least 0 and at most 19 digits, such as N=4"
            raise _usage(f"{option} {_shortened(text)} is not of the form {form}")
        if bindings.setdefault(name, int(number)) != int(number):
            raise _usage(f"{option} gives {name} two values, {bindings[name]} and {number}")
    return bindings


def parse_opsets(pairs: Iterable[tuple[str, int]]) -> Opset | None:
    """Return the opsets that several `--opset` ask for, None without any; a number if only that of ai.onnx is asked
    for. pairs: domains and versions. Raises SplitgraphError (SG601) for two versions of one domain.
    """
    opsets: dict[str, int] = {}
    for name, version in pairs:
        domain = plain_domain(name)
        if opsets.setdefault(domain, version) != version:
            raise _usage(f"--opset gives {name or 'ai.onnx'} two versions, {opsets[domain]} and {version}")
    return opsets[""] if opsets.keys() == {""} else opsets or None


def read_input_shapes(given: Any, model: Model) -> Any:
    """Return the shapes of inputs that a command was given: texts are read with the names of the model."""
    if not isinstance(given, tuple):
        return given
    from splitgraph.model.names import dimension_names
    from splitgraph.model.onnx_proto import ModelProto

    if not isinstance(model, ModelProto):
        from splitgraph.inference.openvino_ir import input_names

        return parse_input_shapes(given, (), input_names(model))
    return parse_input_shapes(given, dimension_names(model), [value.name for value in model.graph.input])


def parse_input_shapes(
    texts: Iterable[str], names: Collection[str], inputs: Collection[str] | None = None
) -> dict[str, tuple[int | Dim | None, ...]]:
    """Return the shapes of `--input-shape x=1,3,H,W`, by input; `x=` is a scalar, `?` an unknown dimension.

    A shape may be in brackets, its dimensions may be separated by x (1x3x224x224), and a colon may replace the `=`.
    names: the dimension names of the model. inputs: the names of its inputs, None if any name may be one. Raises
    SplitgraphError (SG601) for anything else.
    """
    shapes: dict[str, tuple[int | Dim | None, ...]] = {}
    for text in texts:
        name, shape = _input_and_shape(text, inputs)
        if name in shapes:
            raise _usage(f"--input-shape gives {name} two shapes")
        shapes[name] = tuple(_parse_dimension(dim, text, names) for dim in _dimensions(shape, names))
    return shapes


def _input_and_shape(text: str, inputs: Collection[str] | None) -> tuple[str, str]:
    """Return the name of an input and the text of its shape. A name may contain = and :, a dimension may contain :."""
    for sign in "=:":
        places = [place for place, char in enumerate(text) if char == sign]
        for place in reversed(places[-1:] if inputs is None else places):
            name = text[:place] if text[:place] in (inputs or ()) else text[:place].strip()
            if name and (inputs is None or name in inputs):
                return name, text[place + 1 :]
    name, sign, _ = text.rpartition("=")
    if inputs is None or not name or not sign:
        raise _usage(f"--input-shape {_shortened(text)} is not of the form {_FORM}")
    several = f". Give one --input-shape for each input, {_FORM}" if re.search(r"[,;\s]", name.strip()) else ""
    near = meant(name.strip(), inputs)
    unknown = f"the model has no input {_shortened(name.strip())!r}{near}; it has: {', '.join(inputs) or 'none'}"
    raise _usage(f"--input-shape {_shortened(text)}: {unknown}{several}")


def _parse_dimension(text: str, argument: str, names: Collection[str]) -> int | Dim | None:
    from splitgraph.dim import parse_given_dim

    try:
        return parse_given_dim(text, names)
    except ValueError as error:
        wrong = f"{_shortened(text.strip())!r} is not a dimension: {error}" if text.strip() else "a dimension is empty"
        several = "Give one --input-shape for each input. " if re.search("[=:].*[=:;]", argument) else ""
        allowed = f"{several}Write for example x=1,3,H,W; allowed are {_DIMENSION}"
        raise _usage(f"--input-shape {_shortened(argument)}: {wrong}. {allowed}") from error


def _dimensions(text: str, names: Collection[str]) -> list[str]:
    """Return the texts of the dimensions of a shape."""
    text = text.strip()
    listed = _is_enclosed(text, "[]") or _is_enclosed(text, "()")
    if listed and text not in names:
        text = text[1:-1].strip()
    if not text:
        return []
    dims = _split_at_commas(text)
    if len(dims) == 1:
        return _split_at_x(text, names)
    return dims[:-1] if listed and not dims[-1].strip() else dims


def _split_at_x(text: str, names: Collection[str]) -> list[str]:
    """Return the dimensions of 4x3x640x640, 1x3xHxW or Nx3x224: numbers and names of the model; after a number also new
    names. Any other text is one dimension.
    """
    if text in names:
        return [text]
    pieces = [piece.strip() for piece in text.split("x")]
    if all(_is_size(piece) or piece in names for piece in pieces):
        return pieces
    if _is_size(pieces[0]) and all(_is_size(piece) or piece.isidentifier() for piece in pieces):
        return pieces
    pieces = [piece.strip() for piece in re.split("[xX×]", text)]
    return pieces if all(map(_is_size, pieces)) else [text]


def _is_size(text: str) -> bool:
    return text == "?" or text.isdecimal()


def _is_enclosed(text: str, pair: str) -> bool:
    """Return True for a text whose first bracket is closed by its last character."""
    depths = list(accumulate((char in "([") - (char in ")]") for char in text))
    return text[:1] == pair[0] and text[-1:] == pair[1] and 0 not in depths[:-1]


def _split_at_commas(text: str) -> list[str]:
    """Return the pieces between the commas outside parentheses: min(N, 8) is one dimension."""
    pieces = [""]
    depth = 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += char
    return pieces


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
