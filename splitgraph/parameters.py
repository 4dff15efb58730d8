"""The arguments and options that commands share, and their types.

Imports make `splitgraph --help` slower: this module needs click and nothing else.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

ENGINES = ["auto", "reference", "onnxruntime", "openvino"]
RTOL, ATOL = 1e-5, 1e-6

Command = Callable[..., int]


class _File(click.Path):
    """The path of a file. Refused: an empty path, as of an unset shell variable, which would mean the current folder;
    and "-", which means a standard stream in other programs.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; fails for an empty one and for "-"."""
        if not value:
            self.fail("is empty; give the path of a file.", param, ctx)
        if str(value) == "-":
            self.fail("models are not read from or written to standard streams; give the path of a file.", param, ctx)
        return super().convert(value, param, ctx)


class _ModelFile(_File):
    """The path of a model, as a `pathlib.Path`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; fails for the paths that `_File` refuses."""
        # No help text needs a Path.
        from pathlib import Path

        return Path(super().convert(value, param, ctx))


if TYPE_CHECKING:
    _VersionType = click.ParamType[int | Literal["keep"]]
else:
    # Most releases of click 8 have a ParamType that takes no type parameter.
    _VersionType = click.ParamType


class _Positive(click.FloatRange):
    """A finite number of more than 0."""

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number; fails for infinity and for what is no number."""
        number: float = super().convert(value, param, ctx)
        if not 0 < number < float("inf"):
            self.fail(f"{value} is no finite number of more than 0.", param, ctx)
        return number


class _IRVersion(_VersionType):
    """An IR version: a number, or "keep"."""

    name = "version"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | Literal["keep"]:
        """The number, or "keep"; fails for anything else."""
        if value == "keep":
            return "keep"
        try:
            return int(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number nor 'keep'.", param, ctx)


def target_names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """The names of targets that begin with a text, for the completion of shells."""
    from splitgraph.runtimes.target import targets

    return [name for name in targets() if name.startswith(incomplete)]


def codes(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """The diagnostic codes that begin with a text, for the completion of shells."""
    from splitgraph.diagnostic_codes import CODES

    return [code for code in CODES if code.startswith(incomplete.upper())]


def model_argument(name: str) -> Callable[[Command], Command]:
    """An argument for a model file."""
    return click.argument(name, type=_ModelFile())


# Not paths: an argument may be the URL of a model, or a pattern.
models_argument = click.argument("models", nargs=-1, required=True, type=_File(), metavar="MODEL...")
optional_models_argument = click.argument("models", nargs=-1, type=_File(), metavar="[MODEL]...")


def model_option(name: str, help: str) -> Callable[[Command], Command]:
    """An option for a model file."""
    return click.option(name, type=_ModelFile(), metavar="MODEL", help=help)


as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
quiet = click.option("--quiet", is_flag=True, help="Print only what is wrong.")
bind = click.option("--bind", multiple=True, metavar="N=4", help="Set a symbolic dimension to a number; repeatable.")
# Of verify, which writes nothing.
bind_of_verify = click.option("--bind", multiple=True, metavar="N=4", help="As --try; repeatable.")
output = click.option(
    "-o",
    "--output",
    type=_File(),
    metavar="OUT",
    help="Output file, or a folder for the default file name.",
)
report_output = click.option(
    "-o",
    "--output",
    type=_File(),
    metavar="OUT",
    required=True,
    help="Output file, or a folder for the default file name.",
)
force = click.option("--force", is_flag=True, help="Overwrite an existing output.")
force_report = click.option("--force", is_flag=True, help="Overwrite an existing report.")
external_data = click.option(
    "--external-data",
    type=click.Choice(["beside", "link"]),
    is_flag=False,
    flag_value="beside",
    help="beside, or no value: write the weights to OUT.data, beside the model. link: make hard links to the model's "
    "data files instead of copies.",
)
targets = click.option(
    "--target",
    multiple=True,
    metavar="NAME[@VERSION]",
    shell_complete=target_names,
    help="The runtime that the model is for, such as mnn or openvino@2023.3; repeatable.",
)
opset = click.option("--opset", type=int, required=True, metavar="N", help="The ai.onnx opset to convert to.")
ir_version = click.option(
    "--ir-version",
    type=_IRVersion(),
    metavar="N|keep",
    help="IR version of the result. Default: the model's own, raised if the opset needs more; a downgrade lowers it to "
    "the opset's. keep: never lower it.",
)
accept = click.option(
    "--accept",
    multiple=True,
    metavar="CODE[@LOCATION]",
    help="Accept an error that has nothing to do with the splits, such as SG302 or SG302@main/node; LOCATION/* stands "
    "for all below it; repeatable. Also a list in [tool.splitgraph] of pyproject.toml.",
)


def assume_defaults(relies: str) -> Callable[[Command], Command]:
    """The option to treat defaults as constants. relies: what the result relies on then."""
    told = f"Treat initializers that are also inputs as constants{relies} (explain SG305)."
    return click.option("--assume-defaults", is_flag=True, help=told)


timeout = click.option(
    "--timeout",
    type=_Positive(),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="For everything that is run; with many models, for each model.",
)


def _tolerance(name: str, kind: str, default: float | None, shown: float) -> Callable[[Command], Command]:
    """An option for a tolerance; without a default, rewrites that round differently get a larger one."""
    told: bool | str = True if default is not None else f"{shown:g}, or more if a rewrite rounds differently"
    return click.option(
        name, type=click.FloatRange(min=0), default=default, show_default=told, help=f"{kind} tolerance."
    )


def running_options(rtol: float | None, atol: float | None) -> Callable[[Command], Command]:
    """The options for running and comparing two models."""
    options = (
        click.option("--samples", type=click.IntRange(min=1), default=3, show_default=True, help="Sets of inputs."),
        click.option(
            "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the random inputs."
        ),
        click.option(
            "--try",
            "try_sizes",
            multiple=True,
            metavar="N=4",
            help="Run with this size of a dimension, and fix nothing; repeatable.",
        ),
        click.option(
            "--inputs",
            type=_File(),
            metavar="DATA",
            help="Run on these inputs: data.npz with an array for each input name, or a folder of test data as onnx "
            "has them (test_data_set_0/input_0.pb). Other inputs are generated.",
        ),
        click.option(
            "--custom-ops",
            type=_File(),
            multiple=True,
            metavar="LIBRARY",
            help="Load operators from this library, built for onnxruntime or as an extension of OpenVINO; repeatable. "
            "A library runs code: name only those that you trust.",
        ),
        click.option(
            "--provider",
            "providers",
            multiple=True,
            metavar="NAME",
            help="Run on this execution provider of onnxruntime, such as cuda, or on this device of OpenVINO, such as "
            "GPU; repeatable, the preferred one first.",
        ),
        click.option(
            "--engine", type=click.Choice(ENGINES), default="auto", show_default=True, help="Runtime for both models."
        ),
        _tolerance("--rtol", "Relative", rtol, RTOL),
        _tolerance("--atol", "Absolute", atol, ATOL),
        timeout,
    )
    return _all_of(options)


def rewriting_options(command: Command) -> Command:
    """The options of every command that rewrites a model."""
    in_place = click.option("--in-place", is_flag=True, help="Overwrite the input model.")
    verify = click.option(
        "--verify/--no-verify",
        default=None,
        help="Run the model and the result, and compare them. Default: verify, warn if impossible. --verify: fail if "
        "impossible. --no-verify: skip.",
    )
    skip_newer = click.option(
        "--skip-newer/--no-skip-newer",
        default=None,
        help="Whether a model beyond the opset is left as it is, without an error. Default: with many models.",
    )
    dry_run = click.option("--dry-run", is_flag=True, help="Do everything, and write no model.")
    permitting = (accept, assume_defaults("; the result relies on that"))
    writing = (output, in_place, force, external_data, bind, *permitting, verify)
    running = running_options(None, None)
    diff = click.option("--diff", "with_diff", is_flag=True, help="Show what changed, node by node, with types.")
    return _all_of((*writing, running, skip_newer, dry_run, diff, quiet, as_json, many_options))(command)


jobs = click.option(
    "--jobs", type=click.IntRange(min=1), metavar="N", help="How many models at a time. Default: one for each core."
)
_scheduler = click.option(
    "--scheduler",
    metavar="URL",
    help="Let the workers of a dask.distributed cluster do the work, such as tcp://10.0.0.1:8786.",
)
_exclude = click.option(
    "--exclude",
    multiple=True,
    metavar="PATTERN",
    help="Leave out models whose path, name or folder matches, such as '*.int8.onnx' or old/; repeatable.",
)
_report = click.option(
    "--report", type=_File(), metavar="FILE", help="Write one line of JSON for each model to FILE as it ends."
)
_junit = click.option("--junit", type=_File(), metavar="FILE", help="Write the results to FILE as JUnit XML.")
_resume = click.option(
    "--resume",
    is_flag=True,
    help="Skip models that --report has as done with the same content, options and version of splitgraph.",
)
_memory = click.option(
    "--memory",
    type=_Positive(),
    metavar="GIB",
    help="Limit of the memory of each worker process, on Linux. Default: the memory of the machine.",
)
_limit = click.option(
    "--timeout",
    type=_Positive(),
    metavar="SECONDS",
    help="For each model, in a worker process. Default with many models: 300.",
)


def many_options(command: Command) -> Command:
    """The options for many models; the command gets them as one dict, `many`."""
    return _gathered(command, (jobs, _scheduler, _exclude, _report, _junit, _resume, _memory))


def many_options_with_timeout(command: Command) -> Command:
    """The options for many models, for a command that has no option `timeout` of its own."""
    return _gathered(command, (jobs, _limit, _scheduler, _exclude, _report, _junit, _resume, _memory))


def _gathered(command: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    def names(decorated: Any) -> list[str]:
        return [parameter.name for parameter in decorated.__click_params__]

    own = names(_all_of(options)(lambda: 0))

    @functools.wraps(command)
    def gathered(**values: Any) -> int:
        return command(many={name: values.pop(name) for name in own}, **values)

    return _all_of(options)(gathered)


def _all_of(options: Sequence[Callable[[Command], Command]]) -> Callable[[Command], Command]:
    """One decorator for several options, which `--help` lists in their order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def has_json(command: click.Command) -> bool:
    """True for a command with the option --json."""
    return any(param.name == "as_json" for param in command.params)
