"""The arguments and options of the command line, made from the fields of `options`.

Imports make `splitgraph --help` slower: this module needs click and little else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click

from splitgraph.options import Converting, Leeway, Many, NewSizes, Option, Output, Running, Shown, Sizes
from splitgraph.processes.this_process import writing

Command = Callable[..., int]


class _File(click.Path):
    """The path of a file. Two paths are refused: an empty one, as of an unset shell variable, which would mean the
    current folder; and "-", which means a standard stream in other programs.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; fail for an empty one and for "-"."""
        if not value:
            self.fail("is empty; give the path of a file.", param, ctx)
        if str(value) == "-":
            self.fail("models are not read from or written to standard streams; give the path of a file.", param, ctx)
        return super().convert(value, param, ctx)


class _ModelFile(_File):
    """The path of a model, as a `pathlib.Path`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; fail for the paths that `_File` refuses."""
        # No help text needs a Path.
        from pathlib import Path

        return Path(super().convert(value, param, ctx))


if TYPE_CHECKING:
    _VersionType = click.ParamType[int | Literal["keep"]]
    _OpsetType = click.ParamType[tuple[str, int]]
else:
    # Most releases of click 8 have a ParamType that takes no type parameter.
    _VersionType = _OpsetType = click.ParamType


class _Positive(click.FloatRange):
    """A finite number of more than 0."""

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; fail for infinity and for a text that is no number."""
        number: float = super().convert(value, param, ctx)
        if not 0 < number < float("inf"):
            self.fail(f"{value} is no finite number of more than 0.", param, ctx)
        return number


class _IRVersion(_VersionType):
    """An IR version: a number, or "keep"."""

    name = "version"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | Literal["keep"]:
        """Return the number, or "keep"; fail for anything else."""
        if value == "keep":
            return "keep"
        try:
            return int(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number nor 'keep'.", param, ctx)


class _Opset(_OpsetType):
    """An opset of ai.onnx: a number. Or that of another domain, as DOMAIN=NUMBER."""

    name = "opset"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        """Return the domain, "" for ai.onnx, and the number; fail for anything else."""
        domain, _, number = value.rpartition("=")
        try:
            return domain, int(number)
        except ValueError:
            self.fail(f"{value!r} is neither a number such as 17 nor DOMAIN=NUMBER such as ai.onnx.ml=3.", param, ctx)


def target_names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of targets that begin with a text, for the completion of shells."""
    from splitgraph.runtimes.target import targets

    return [name for name in targets() if name.startswith(incomplete)]


def codes(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the diagnostic codes that begin with a text, for the completion of shells."""
    from splitgraph.findings.codes import CODES

    return [code for code in CODES if code.startswith(incomplete.upper())]


def command_names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of commands that begin with a text, for the completion of shells."""
    group = context.find_root().command
    names = group.commands if isinstance(group, click.Group) else ()
    return [name for name in names if name.startswith(incomplete)]


def model_argument(name: str, *, required: bool = True) -> Callable[[Command], Command]:
    """Return an argument for a model file."""
    return click.argument(name, type=_ModelFile(), required=required)


# Not paths: an argument may be the URL of a model, or a pattern.
models_argument = click.argument("models", nargs=-1, required=True, type=_File(), metavar="MODEL...")
optional_models_argument = click.argument("models", nargs=-1, type=_File(), metavar="[MODEL]...")


def model_option(name: str, help: str) -> Callable[[Command], Command]:
    """Return an option for a model file."""
    return click.option(name, type=_ModelFile(), metavar="MODEL", help=help)


_KINDS: dict[str, Callable[[Option], Any]] = {
    "file": lambda option: _File(),
    "integer": lambda option: int if option.least is None else click.IntRange(min=option.least),
    "number": lambda option: click.FloatRange(min=option.least),
    "positive": lambda option: _Positive(),
    "IR version": lambda option: _IRVersion(),
    "opset": lambda option: _Opset(),
}


# The records whose options `--help` shows under each title.
_OTHERS = "Options"
_TITLES: dict[str, tuple[Any, ...]] = {
    _OTHERS: (Converting,),
    "Sizes": (Sizes, NewSizes),
    "Output": (Output, Shown),
    "What is accepted": (Leeway,),
    "Verification": (Running,),
    "Many models": (Many,),
}
GROUPS = tuple(_TITLES)


class _Field(NamedTuple):
    """A field that the command line shows."""

    option: Option
    default: Any
    group: str


def _shown_fields() -> Iterator[tuple[str, _Field]]:
    """Yield the fields that the command line shows, by name."""
    for title, records in _TITLES.items():
        for record in records:
            for name, kind in record.__annotations__.items():
                if hasattr(kind, "__metadata__"):
                    option: Option = kind.__metadata__[0]
                    yield name, _Field(option, record._field_defaults[name], option.group or title)


_FIELDS = dict(_shown_fields())


class _GroupedOption(click.Option):
    """An option with the title that `--help` shows it under."""

    def __init__(self, *arguments: Any, group: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.group = group


def group_of(param: click.Parameter) -> str:
    """Return the title that `--help` shows a parameter under."""
    return param.group if isinstance(param, _GroupedOption) else _OTHERS


MANY = tuple(name for name in Many._fields if name != "limit")
MANY_WITH_LIMIT = ("jobs", "limit", *MANY[1:])
RUNNING = tuple(name for name in Running._fields if name in _FIELDS and name not in ("verify", "runtime_python"))


def takes(*names: str, **changes: Any) -> Callable[[Command], Command]:
    """Return a decorator that gives a command the options of these fields, which `--help` lists in this order.

    changes: for one field, other keywords of `click.option`.
    """

    def decorate(command: Command) -> Command:
        for name in reversed(names):
            command = _option(name, changes)(command)
        return command

    return decorate


def rewriting(command: Command) -> Command:
    """Add the options that all rewriting commands share."""
    relied_on = "Treat initializers that are also inputs as constants; the result relies on that (explain SG305)."
    running = takes("verify", *RUNNING, "skip_newer", "dry_run", "diff", "quiet", "as_json", *MANY)
    writing = takes("ir_version", "output", "in_place", "force", "external_data", "bind", "accept")
    return writing(takes("assume_defaults", help=relied_on)(takes("read_by_form", "fix_defaults")(running(command))))


def _option(name: str, changes: dict[str, Any]) -> Callable[[Command], Command]:
    """Return the option of a field."""
    option, default, group = _FIELDS[name]
    flags = option.flags or (f"--{name.replace('_', '-')}",)
    shown: dict[str, Any] = {"cls": _GroupedOption, "group": group, "help": option.help, "metavar": option.metavar}
    if option.repeats:
        shown["multiple"] = True
    elif default is False:
        shown["is_flag"] = True
    elif default is not None or "/" in flags[0]:
        shown["default"] = default
    if option.choices:
        shown["type"] = click.Choice(option.choices)
    elif option.kind:
        shown["type"] = _KINDS[option.kind](option)
    if option.empty is not None:
        shown |= {"is_flag": False, "flag_value": option.empty}
    if option.shows:
        shown["show_default"] = option.shows
    return click.option(*flags, name, **{**shown, **changes})


def has_json(command: click.Command) -> bool:
    """Return True for a command with the option --json."""
    return any(param.name == "as_json" for param in command.params)


class GroupedCommand(click.Command):
    """A command. `--help` is handled while the arguments are parsed; it shows the options in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each group of options under its title."""
        groups: dict[str, list[tuple[str, str]]] = {title: [] for title in GROUPS}
        for param in self.get_params(ctx):
            # Some releases of click have help texts of arguments, too.
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                groups[group_of(param)].append(record)
        for title, records in groups.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Do as click, and say of each error which command it is about: click's parser does not say so of all."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Do as click, and report an error of standard output."""
        with writing():
            return super().make_context(*arguments, **options)
