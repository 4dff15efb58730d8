"""The arguments and options that commands share, and their types.

Imports make `splitgraph --help` slower: this module needs click and nothing else.
"""

from __future__ import annotations

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


def model_argument(name: str) -> Callable[[Command], Command]:
    """An argument for a model file."""
    return click.argument(name, type=_ModelFile())


as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
bind = click.option("--bind", multiple=True, metavar="N=4", help="Set a symbolic dimension to a number; repeatable.")
output = click.option(
    "-o",
    "--output",
    type=_File(),
    metavar="OUT",
    help="Output file, or a folder for the default file name.",
)
force = click.option("--force", is_flag=True, help="Overwrite an existing output.")
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


_timeout = click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="For everything that is run.",
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
        click.option("--bind", multiple=True, metavar="N=4", help="Run with this size of a dimension; repeatable."),
        click.option(
            "--engine", type=click.Choice(ENGINES), default="auto", show_default=True, help="Runtime for both models."
        ),
        _tolerance("--rtol", "Relative", rtol, RTOL),
        _tolerance("--atol", "Absolute", atol, ATOL),
        _timeout,
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
    permitting = (accept, assume_defaults("; the result relies on that"))
    running = running_options(None, None)
    return _all_of((output, in_place, force, external_data, *permitting, verify, running, as_json))(command)


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
