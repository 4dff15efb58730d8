"""The pages of the command line, from click's parameters: an overview, the commands that rewrite models, and those that
read them.

click's own help is not pasted: its layout changes from release to release.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click
from reference_examples import EXAMPLES

from splitgraph.cli import program
from splitgraph.commands.parameters import GROUPS, group_of
from splitgraph.findings.exit_codes import MEANINGS

_NOTE = "<!-- Generated from `splitgraph/commands/` by `docs/make_reference.py`; do not edit by hand. -->"
_INTRODUCTION = f"""\
# Command line

{_NOTE}

`splitgraph`, `python -m splitgraph` and, in a checkout, `python cli.py` are the same program. A model is an ONNX file
or an OpenVINO IR (`.xml`, with its `.bin` beside it).

Results go to stdout, all other texts to stderr. With `--json` a command prints exactly one [JSON document](json.md)
on stdout. Only `--force` overwrites an existing output, and only `--in-place` overwrites the model itself.

| Option | Meaning |
|---|---|
| `-h`, `--help` | Show the options of the program or a command. Every command has this option. |
| `-v`, `-V`, `--version` | Show the version. |
"""
_EXIT_CODES = """\
## Exit codes

| Code | Meaning |
|---|---|"""
_OTHER_CODES = """\

After a signal to stop, the exit code is 128 plus the number of the signal: 143 for SIGTERM, 129 for SIGHUP.

`infer` ends with 1 if the model has an error, `verify` and `diff` if the models differ. A rewriting command ends with
1 if the conversion is blocked, or if the result differs in a run: then nothing is written. If no engine can run the
models, the result is written with a warning, and the exit code is 0; with `--verify` nothing is written, and the exit
code is 3. `doctor` ends with 1 if a part of the installation is broken, missing or too old.
"""
_REWRITING = ("upgrade", "downgrade", "convert", "reshape")
_PAGES = ("command-line-rewriting.md", "command-line-reading.md")
# Classes of click's types, and what a value of each is called.
_TYPE_NAMES = ((click.FloatRange, "NUMBER"), (click.IntRange, "INTEGER"), (click.Path, "PATH"))


def command_line_page() -> str:
    """The overview as Markdown: every command in a line, and the exit codes."""
    parts = [_INTRODUCTION, "## Commands\n", "| Command | What it does |\n|---|---|"]
    parts += [
        f"| [{name}]({_page_of(name)}#{name}) | {_first(command)} |" for name, command in program.commands.items()
    ]
    parts += ["", _EXIT_CODES]
    parts += [f"| {code} | {meaning} |" for code, meaning in MEANINGS.items()]
    parts.append(_OTHER_CODES)
    return "\n".join(parts)


def rewriting_page() -> str:
    """The page as Markdown of the commands that make another model of a model."""
    return _commands_page("Command line: upgrade, downgrade, convert, reshape", _PAGES[0])


def reading_page() -> str:
    """The page as Markdown of all other commands."""
    return _commands_page("Command line: infer, check, verify, diff, report, explain", _PAGES[1])


def _commands_page(title: str, page: str) -> str:
    told = "[All commands, and the exit codes](command-line.md)\n"
    parts = [f"# {title}\n\n{_NOTE}\n", told]
    for name, command in program.commands.items():
        if _page_of(name) == page:
            parts += _command(name, command)
    return "\n".join(parts)


def _page_of(name: str) -> str:
    return _PAGES[0 if name in _REWRITING else 1]


def _first(command: click.Command) -> str:
    """The first sentence of the help of a command."""
    return _in_a_cell(" ".join(inspect.cleandoc(command.help or "").partition("\n\n")[0].split()))


def _command(name: str, command: click.Command) -> Iterator[str]:
    arguments = [param for param in command.params if isinstance(param, click.Argument)]
    options = [param for param in command.params if isinstance(param, click.Option)]
    usage = ["splitgraph", name, *(["[OPTIONS]"] if options else []), *map(_argument, arguments)]
    yield f"## {name}\n"
    yield f"```\n{' '.join(usage)}\n```\n"
    yield from _help(command)
    if name in EXAMPLES:
        yield f"More examples:\n\n```\n{EXAMPLES[name]}\n```\n"
    for argument in arguments:
        needed = "must be given" if argument.required else "may be left out"
        yield f"- `{_argument_name(argument)}`: {_metavar(argument)}; {needed}."
    if options:
        yield ""
        yield "| Option | Default | Meaning |\n|---|---|---|"
    for title in GROUPS:
        listed = [option for option in options if group_of(option) == title]
        if listed and title != GROUPS[0]:
            yield f"| **{title}** | | |"
        yield from (f"| {_names(option)} | {_default(option)} | {_meaning(option)} |" for option in listed)
    yield ""


def _argument(argument: click.Argument) -> str:
    name = _argument_name(argument)
    return name if argument.required else f"[{name}]"


def _argument_name(argument: click.Argument) -> str:
    # Not click's own name for people, which some releases put in brackets.
    return str(argument.name).upper()


def _help(command: click.Command) -> Iterator[str]:
    """The paragraphs of a help text; click leaves those as they are that begin with its mark, \\b: the examples."""
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith("\b\n"):
            yield f"```\n{paragraph[2:]}\n```\n"
        else:
            yield " ".join(paragraph.split()) + "\n"


def _names(option: click.Option) -> str:
    value = "" if option.is_flag else f" {_metavar(option)}"
    return _in_a_cell(", ".join(f"`{name}{value}`" for name in (*option.opts, *option.secondary_opts)))


def _metavar(param: click.Parameter) -> str:
    if param.metavar:
        return param.metavar
    if isinstance(param.type, click.Choice):
        return "|".join(map(str, param.type.choices))
    return next((name for kind, name in _TYPE_NAMES if isinstance(param.type, kind)), param.type.name.upper())


def _default(option: click.Option) -> str:
    if option.required:
        return "must be given"
    if isinstance(option.show_default, str):
        return option.show_default
    return f"{option.default}" if option.show_default else ""


def _meaning(option: click.Option) -> str:
    text = option.help or ""
    low = getattr(option.type, "min", None)
    if low is not None:
        text += f" {'More than' if option.type.min_open else 'At least'} {low}."
    return _in_a_cell(text)


def _in_a_cell(text: str) -> str:
    return text.replace("|", "\\|")
