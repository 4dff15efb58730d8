"""What a caller may set: each option once, with its type, its default, and what the command line shows of it.

The functions of the API and the commands of the command line build these records, and all that is below passes them on.
`parameters` makes the options of a command from the fields. This module is imported for `splitgraph --help`, so it
imports little: `NamedTuple` and not `dataclass`, whose module takes longer to import than everything here.
"""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args

if TYPE_CHECKING:
    from splitgraph.dim import Dim
    from splitgraph.findings.acceptance import Acceptance

Engine = Literal["auto", "reference", "onnxruntime", "openvino"]
Form = Literal["split", "variadic-split", "slice"]
# In which services for continuous integration show findings.
Format = Literal["github", "sarif"]
ExternalData = Literal["beside", "link"]
# A number; "keep" for the version of the model; None to let a downgrade lower it.
IRVersion = int | Literal["keep"] | None
# The version of ai.onnx; or of several domains, by their names: {"": 17, "ai.onnx.ml": 3}.
Opset = int | Mapping[str, int]
StrPath = str | os.PathLike[str]
# Arrays by the names of inputs, several such cases, or the path of test data.
GivenInputs = Mapping[str, Any] | Sequence[Mapping[str, Any]] | StrPath
InputShapes = Mapping[str, Sequence["int | str | Dim | None"]]

RTOL, ATOL = 1e-5, 1e-6
# Where operators were written out. Written as numbers: ten times 1e-6 is a little less than 1e-5.
RTOL_WRITTEN_OUT, ATOL_WRITTEN_OUT = 1e-4, 1e-5
# Without --timeout, everything that is run ends after so many seconds.
TIMEOUT = 300.0


class Option(NamedTuple):
    """How the command line shows a field.

    flags: () for the name of the field, with dashes. kind: of a value: "file", "integer", "number", "positive" for a
    finite number of more than 0, "IR version", "opset", or "" for what the type of the field says; least: its minimum.
    repeats: the option may be given several times. choices: of the texts that are allowed. empty: the value of an
    option that is given without one. shows: whether `--help` shows the default; or a text to show instead. group: the
    title that `--help` shows it under, if that is not the one of its record.
    """

    help: str
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    kind: str = ""
    least: int | None = None
    repeats: bool = False
    choices: tuple[str, ...] = ()
    empty: str | None = None
    shows: bool | str = False
    group: str = ""


class Sizes(NamedTuple):
    """The sizes that a caller gives.

    bind: values for symbols. input_shapes: shapes that replace the declared ones; the texts of the command line are
    read when the names in the model are known.
    """

    bind: Annotated[
        Mapping[str, int] | None,
        Option("Set a symbolic dimension to a number; repeatable.", metavar="N=4", repeats=True),
    ] = None
    input_shapes: Annotated[
        "InputShapes | tuple[str, ...] | None",
        Option(
            "Set the shape of an input, ? for unknown; also x=[1,3,H,W], x=1x3xHxW; repeatable.",
            ("--input-shape",),
            metavar="x=1,3,H,W",
            repeats=True,
        ),
    ] = None


NO_SIZES = Sizes()


class NewSizes(NamedTuple):
    """The sizes that a model is to get.

    shapes: the new shape of an input, each dimension a number or a name; the texts of the command line are read when
    the names in the model are known. batch: the first dimension of every input. follow: what numbers in the model say
    in terms of dimensions. keep: the numbers that stay whatever the sizes. folder: of the model's data files; None if
    it is not known.
    """

    shapes: Annotated[
        "InputShapes | tuple[str, ...] | None",
        Option(
            "The new shape of an input, each dimension a number or a name; also x=[1,3,H,W], x=1x3xHxW; repeatable.",
            ("--input-shape",),
            metavar="x=N,3,H,W",
            repeats=True,
        ),
    ] = None
    batch: Annotated[
        int | str | None, Option("The new first dimension of every input, a number or a name.", metavar="N|8")
    ] = None
    follow: Annotated[
        Sequence[str],
        Option(
            "What a number in the model says in terms of dimensions, such as main/reshape[0]=N; repeatable.",
            metavar="NODE[I]=DIM",
            repeats=True,
        ),
    ] = ()
    keep: Annotated[
        Sequence[str],
        Option(
            "A number in the model that stays as it is, whatever the sizes, such as main/topk[0]; repeatable.",
            metavar="NODE[I]",
            repeats=True,
        ),
    ] = ()
    folder: StrPath | None = None

    @property
    def tag(self) -> str:
        """Return the tag in the name of the result."""
        return "reshaped"


class Leeway(NamedTuple):
    """What a user permits to take for granted about a model.

    accept: findings that the user accepts; nothing is concluded from their nodes. assume_defaults: no caller of the
    model replaces a default of an input. read_by_form: a node in the form of another version is of that version, which
    the rewriting functions have. empty_chunks: what num_outputs chunks beyond the dimension are.
    tells_stale: notes are wanted about acceptances that no error needs. fix_defaults: as assume_defaults, and
    initializers are no inputs of the result of a rewriting function.
    """

    accept: Annotated[
        tuple["Acceptance", ...],
        Option(
            "Accept an error that has nothing to do with the splits, such as SG302 or SG302@main/node; LOCATION/* "
            "stands for all below it; repeatable. Also a list in [tool.splitgraph] of pyproject.toml.",
            metavar="CODE[@LOCATION]",
            repeats=True,
        ),
    ] = ()
    assume_defaults: Annotated[
        bool, Option("Treat initializers that are also inputs as constants (explain SG305).")
    ] = False
    empty_chunks: Literal["clamp", "error"] = "clamp"
    tells_stale: bool = True
    read_by_form: Annotated[
        bool,
        Option(
            "Read a node in the form of another version as that version, such as ReduceMean with axes as an attribute "
            "at opset 18 (explain SG212)."
        ),
    ] = False
    fix_defaults: Annotated[
        bool,
        Option(
            "Take initializers out of the inputs, so that they are constants and no defaults (explain SG305).",
            group="Options",
        ),
    ] = False


STRICT = Leeway()


class Converting(NamedTuple):
    """What `convert` is asked for; upgrade and downgrade, which go in one direction, take the opset and the IR version.

    opset: of ai.onnx, or of several domains; None keeps the model's own. to: the form of the splits. target: the
    runtime that the model is for. explicit_lengths: splits get explicit lengths, and functions are inlined. ir_version:
    of the result. fold: what is known of the model is written first. standard: operators of other domains are written
    in those of ai.onnx. drop_zipmap: outputs that are maps become the tensors of their numbers.
    """

    opset: Annotated[
        Opset | None,
        Option(
            "The ai.onnx opset to convert to; ai.onnx.ml=N for that of classical machine learning; repeatable.",
            metavar="[DOMAIN=]N",
            kind="opset",
            repeats=True,
        ),
    ] = None
    to: Annotated[Form | None, Option("The form of the splits.", choices=get_args(Form))] = None
    target: Annotated[str | None, Option("The runtime, as `check --targets` lists it.", metavar="NAME[@VERSION]")] = (
        None
    )
    explicit_lengths: Annotated[bool, Option("Give every split explicit lengths; inline functions.")] = False
    ir_version: Annotated[
        IRVersion,
        Option(
            "IR version of the result. Default: the model's own, raised if the opset needs more; a downgrade lowers it "
            "to the opset's. keep: never lower it.",
            metavar="N|keep",
            kind="IR version",
        ),
    ] = None
    fold: Annotated[
        bool,
        Option("Write what is known: values that are the same in every run, and sizes, without the nodes for them."),
    ] = False
    standard: Annotated[
        bool, Option("Write operators of com.microsoft, and of ai.onnx.ml where they have a form, in those of ai.onnx.")
    ] = False

    drop_zipmap: Annotated[
        bool, Option("Give the numbers of a classifier as a tensor, and not as maps from labels to numbers (ZipMap).")
    ] = False

    @property
    def opsets(self) -> Mapping[str, int]:
        """Return the versions that are wanted, by domain."""
        return opsets_of(self.opset)

    @property
    def only_folds(self) -> bool:
        """Return True if no form, opset or runtime is wanted beside folding."""
        return self.fold and not self._wants_more

    @property
    def only_ir_version(self) -> int | str | None:
        """Return the new IR version, or "keep", if nothing else is wanted; None otherwise."""
        return None if self.fold or self._wants_more else self.ir_version

    @property
    def _wants_more(self) -> bool:
        """Return True if more is wanted than folding and another IR version."""
        return self.standard or self.drop_zipmap or (self.opset, self.to, self.target) != (None,) * 3

    @property
    def tag(self) -> str:
        """Return the tag in the name of the result: "opset18.split", "opset17.ml3"."""
        opsets = sorted(self.opsets.items())
        opset = ".".join(f"{domain.rpartition('.')[2] if domain else 'opset'}{version}" for domain, version in opsets)
        ir_version = None if self.only_ir_version is None else f"ir{self.only_ir_version}"
        kinds = {"nozipmap": self.drop_zipmap, "standard": self.standard, "folded": self.fold}
        done = [name for name, is_wanted in kinds.items() if is_wanted]
        return ".".join(filter(None, (opset, self.to, self.target, *done, ir_version)))


def opsets_of(opset: Opset | None) -> Mapping[str, int]:
    """Return the versions that are wanted, by domain; none for None."""
    return {} if opset is None else {"": opset} if isinstance(opset, int) else opset


Wanted = Converting | NewSizes


class Running(NamedTuple):
    """How two models are run and compared.

    verify: of a rewrite, whether its result is verified. Without a verdict, the command line writes the result for
    None, and not for True. try_sizes: sizes to run at. rtol, atol: None for the tolerances of the rewrite. timeout: in
    seconds, for everything; None for what the models take to run (see `splitgraph.verification.budget`). longest: the
    seconds after which everything ends without a timeout. runtime_python: the Pythons
    that have the runtimes of targets. The others are described by `splitgraph.verify`.
    """

    verify: Annotated[
        bool | None,
        Option(
            "Run the model and the result, and compare them. Default: verify, warn if impossible. --verify: fail if "
            "impossible. --no-verify: skip.",
            ("--verify/--no-verify",),
        ),
    ] = None
    samples: Annotated[int, Option("Sets of inputs.", metavar="N", kind="integer", least=1, shows=True)] = 3
    seed: Annotated[int, Option("Seed of the random inputs.", metavar="N", kind="integer", least=0, shows=True)] = 0
    try_sizes: Annotated[
        Mapping[str, int] | None,
        Option(
            "Run with this size of a dimension, and fix nothing; repeatable.", ("--try",), metavar="N=4", repeats=True
        ),
    ] = None
    inputs: Annotated[
        GivenInputs | None,
        Option(
            "Run on these inputs: data.npz with an array for each input name, or a folder of test data as onnx has "
            "them (test_data_set_0/input_0.pb). Other inputs are generated.",
            metavar="DATA",
            kind="file",
        ),
    ] = None
    custom_ops: Annotated[
        StrPath | Sequence[StrPath],
        Option(
            "Load operators from this library, built for onnxruntime or as an extension of OpenVINO; repeatable. A "
            "library runs code: name only those that you trust.",
            metavar="LIBRARY",
            kind="file",
            repeats=True,
        ),
    ] = ()
    providers: Annotated[
        str | Sequence[str],
        Option(
            "Run on this execution provider of onnxruntime, such as cuda, or on this device of OpenVINO, such as GPU; "
            "repeatable, the preferred one first.",
            ("--provider",),
            metavar="NAME",
            repeats=True,
        ),
    ] = ()
    engine: Annotated[
        Engine,
        Option("Runtime for both models.", choices=get_args(Engine), shows=True),
    ] = "auto"
    rtol: Annotated[
        float | None,
        Option(
            "Relative tolerance.",
            metavar="NUMBER",
            kind="number",
            least=0,
            shows=f"{RTOL:g}, or more if a rewrite rounds differently",
        ),
    ] = None
    atol: Annotated[
        float | None,
        Option(
            "Absolute tolerance.",
            metavar="NUMBER",
            kind="number",
            least=0,
            shows=f"{ATOL:g}, or more if a rewrite rounds differently",
        ),
    ] = None
    timeout: Annotated[
        float | None,
        Option(
            "For everything that is run; with many models, for each model.",
            metavar="SECONDS",
            kind="positive",
            shows=f"20 runs of both models and a few seconds, at most {TIMEOUT:g}",
        ),
    ] = None
    longest: float = TIMEOUT
    runtime_python: Annotated[
        Sequence[str],
        Option(
            "The Python that has the runtime, if it is not this one; NAME=PATH for one of several runtimes; "
            "repeatable. Also in the environment variable SPLITGRAPH_RUNTIME_<name>.",
            metavar="[NAME=]PATH",
            repeats=True,
        ),
    ] = ()


class Output(NamedTuple):
    """Where and how a result is written.

    output: a file or a folder; None for the default, or for nothing. in_place: over the model. force: over an existing
    file. external_data: see `splitgraph.save`. dry_run: write no model. skip_newer: a model beyond the opset is left as
    it is, without an error; None means so with many models.
    """

    output: Annotated[
        str | None,
        Option("Output file, or a folder for the default file name.", ("-o", "--output"), metavar="OUT", kind="file"),
    ] = None
    in_place: Annotated[bool, Option("Overwrite the input model.")] = False
    force: Annotated[bool, Option("Overwrite an existing output.")] = False
    external_data: Annotated[
        ExternalData | None,
        Option(
            "beside, or no value: write the weights to OUT.data, beside the model. link: make hard links to the "
            "model's data files instead of copies.",
            choices=get_args(ExternalData),
            empty="beside",
        ),
    ] = None
    dry_run: Annotated[bool, Option("Do everything, and write no model.")] = False
    skip_newer: Annotated[
        bool | None,
        Option(
            "Whether a model beyond the opset is left as it is, without an error. Default: with many models.",
            ("--skip-newer/--no-skip-newer",),
            group="Many models",
        ),
    ] = None


class Shown(NamedTuple):
    """What a command prints. values: every value with its type. why: the value whose dimensions are followed back.
    diff: what changed, node by node.
    """

    as_json: Annotated[bool, Option("Print one JSON document.", ("--json",))] = False
    quiet: Annotated[bool, Option("Print only what is wrong.")] = False
    values: Annotated[bool, Option("Also list every operator, and every value with its type.", ("--all",))] = False
    why: Annotated[
        str | None,
        Option("Say where the dimensions of a value come from, node by node, back to the inputs.", metavar="VALUE"),
    ] = None
    diff: Annotated[bool, Option("Show what changed, node by node, with types.")] = False


class Many(NamedTuple):
    """How many models are worked on. limit: seconds for each model, None for the default. memory: in GiB."""

    jobs: Annotated[
        int | None,
        Option("How many models at a time. Default: one for each core.", metavar="N", kind="integer", least=1),
    ] = None
    limit: Annotated[
        float | None,
        Option(
            "For each model, in a worker process. Default with many models: 300.",
            ("--timeout",),
            metavar="SECONDS",
            kind="positive",
        ),
    ] = None
    scheduler: Annotated[
        str | None,
        Option(
            "Let the workers of a dask.distributed cluster do the work, such as tcp://10.0.0.1:8786.", metavar="URL"
        ),
    ] = None
    exclude: Annotated[
        Sequence[str],
        Option(
            "Leave out models whose path, name or folder matches, such as '*.int8.onnx' or old/; repeatable.",
            metavar="PATTERN",
            repeats=True,
        ),
    ] = ()
    report: Annotated[
        str | None,
        Option("Write one line of JSON for each model to FILE as it ends.", metavar="FILE", kind="file"),
    ] = None
    junit: Annotated[str | None, Option("Write the results to FILE as JUnit XML.", metavar="FILE", kind="file")] = None
    format: Annotated[
        Format | None,
        Option(
            "Print the findings as annotations of GitHub's workflows, or as a document of SARIF, which code scanning "
            "reads.",
            choices=get_args(Format),
        ),
    ] = None
    resume: Annotated[
        bool,
        Option("Skip models that --report has as done with the same content, options and version of splitgraph."),
    ] = False
    memory: Annotated[
        float | None,
        Option(
            "Limit of the memory of each worker process, on Linux. Default: the memory of the machine.",
            metavar="GIB",
            kind="positive",
        ),
    ] = None


def paths_of(paths: StrPath | Sequence[StrPath]) -> tuple[str, ...]:
    """Return the texts of paths; one alone counts as a list of one."""
    return tuple(map(os.fsdecode, [paths] if isinstance(paths, (str, os.PathLike)) else paths))


def leeway_of(
    accept: Sequence[str],
    assume_defaults: bool,
    empty_chunks: Literal["clamp", "error"] = "clamp",
    *,
    read_by_form: bool = False,
    fix_defaults: bool = False,
) -> Leeway:
    """Return the leeway of a call. Raises SplitgraphError as `parse_acceptances`, and for what is not True or False."""
    from splitgraph.findings.acceptance import parse_acceptances, wrong_acceptance

    given = {"assume_defaults": assume_defaults, "read_by_form": read_by_form, "fix_defaults": fix_defaults}
    for name, value in given.items():
        if not isinstance(value, bool):
            raise wrong_acceptance(f"{name} is {value!r}; it must be True or False")
    return Leeway(parse_acceptances(accept), empty_chunks=empty_chunks, **given)
