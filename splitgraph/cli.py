"""The command line: what can be typed, how the program starts, and what it returns.

What the commands do is in `commands`. This module, and what it imports at its top, needs click and little else, so that
`splitgraph --help` takes hardly longer than `import click`: everything that only a command needs is imported where the
command runs. To declare all commands takes less than a millisecond, so that they are not declared lazily.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import io
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

import splitgraph
from splitgraph import parameters
from splitgraph.exit_codes import BROKEN_PIPE, CLEAN, INTERNAL_ERROR, INTERRUPTED, MEANINGS, WRONG_USAGE
from splitgraph.parameters import ATOL, RTOL, Command
from splitgraph.standard_output import writing

if TYPE_CHECKING:
    from pathlib import Path

_Version = int | Literal["keep"] | None


class _Command(click.Command):
    """A command, of which help is printed while what was typed is read."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """As click's; tells what is wrong with standard output."""
        with writing():
            return super().make_context(*arguments, **options)


class _Program(_Command, click.Group):
    """The group of all commands."""

    command_class = _Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which a person meets them, not of the alphabet."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; whoever reads our output through a pipe may stop reading at any time."""
        try:
            return self._invoke(ctx)
        except BrokenPipeError:
            # What Python still holds back would fail again when it is flushed at exit.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            for stream in (sys.stdout, sys.stderr):
                os.dup2(nowhere, stream.fileno())
            raise click.exceptions.Exit(BROKEN_PIPE) from None

    def _invoke(self, ctx: click.Context) -> Any:
        typed: Sequence[str] = ctx.obj
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            command = self.commands.get(ctx.invoked_subcommand or "")
            if command is not None and "--json" in typed and parameters.has_json(command):
                from splitgraph.running import print_usage_failure

                print_usage_failure(str(command.name), error.format_message())
            raise


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns 0 clean, 1 findings, 2 wrong usage or unreadable file, 3 not checked.

    arguments: what was typed; None for what this process was started with, which then ends.
    """
    if arguments is None:
        # A process that ends gives its memory back as it is, without looking for garbage in it.
        atexit.register(gc.freeze)
    _prepare_streams()
    typed = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return int(program.main(typed, prog_name="splitgraph", standalone_mode=False, obj=typed) or CLEAN)
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "splitgraph"
        meant = _meant_as_a_file(error, typed)
        text = f"{error.format_message().removesuffix('.')}; {meant}." if meant else error.format_message()
        _say(f"error: {text}\nTry '{path} --help' for help.")
        return WRONG_USAGE
    except click.Abort:
        _say("interrupted")
        return INTERRUPTED
    except OSError as error:
        # Model files have their own errors: this one comes from the output stream or the machine.
        _say(f"error: {_printable(error.strerror or str(error))}")
        return WRONG_USAGE
    except MemoryError:
        _say("error: out of memory")
        return WRONG_USAGE
    except Exception as error:
        # An internal error is one line on stderr; with SPLITGRAPH_DEBUG the traceback, too.
        if os.environ.get("SPLITGRAPH_DEBUG"):
            raise
        text = _printable(f"{type(error).__name__}: {error}")
        _say(f"internal error: {text} (please report it; SPLITGRAPH_DEBUG=1 shows a traceback)")
        return INTERNAL_ERROR


def _say(text: str) -> None:
    """Print a line on stderr; ignore a full disk or a closed pipe."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def _prepare_streams() -> None:
    """Make sure that there are two streams, and that they can take any text."""
    for name in ("stdout", "stderr"):
        # A stream that the caller closed before the start is None; its text is discarded.
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # open until the process ends
    for stream in (sys.stdout, sys.stderr):
        # Characters that the terminal cannot encode are printed as escapes.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _printable(text: str) -> str:
    from splitgraph.report.text import printable

    return printable(text)


def _meant_as_a_file(error: click.UsageError, typed: Sequence[str]) -> str:
    """Advice for a file whose name begins with a dash; "" if there is no such file."""
    if not isinstance(error, click.NoSuchOption):
        return ""
    named = next((text for text in typed if text.startswith("-") and os.path.lexists(text)), None)
    return "" if named is None else f"for the file of that name write ./{_printable(named)}"


# The mark \b keeps click from joining the lines.
_EXIT_CODES = "\n".join(("\b", "Exit codes:", *(f"{code:5}  {meaning}" for code, meaning in MEANINGS.items())))


@click.group(
    cls=_Program,
    invoke_without_command=True,
    epilog=_EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(splitgraph.__version__, "-V", "--version", message="%(prog)s %(version)s")
@click.pass_context
def program(context: click.Context) -> int:
    """Infer, convert and verify every version of the ONNX and OpenVINO split operators, in whole models."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        return WRONG_USAGE
    return CLEAN


def _run(command: Command) -> Command:
    """The command for click, with the error handling that all commands share."""

    @functools.wraps(command)
    def run(**options: Any) -> int:
        from splitgraph.running import run_command

        return run_command(command, options)

    return run


@program.command()
@parameters.model_argument("model")
@parameters.output
@parameters.force
@parameters.external_data
@parameters.as_json
@click.option("--all", "with_values", is_flag=True, help="Also list every value of the main graph with its type.")
@parameters.bind
@click.option(
    "--input-shape",
    multiple=True,
    metavar="x=1,3,H,W",
    help="Set the shape of an input, ? for unknown; also x=[1,3,H,W], x=1x3xHxW; repeatable.",
)
@parameters.accept
@parameters.assume_defaults("")
@_run
def infer(model: Path, accept: Sequence[str], **options: Any) -> int:
    """Infer every type and shape of MODEL, and check its splits.

    \b
    splitgraph infer model.onnx
    splitgraph infer model.onnx --bind N=4 --input-shape "x=N,3,H + 2,?" --all
    splitgraph infer model.onnx --bind batch=4 -o fixed.onnx      (freezes the dimension)
    splitgraph infer model.onnx --accept SG302@main/head/*        (no error of ours)
    splitgraph infer model.onnx --assume-defaults                 (weights listed as inputs)
    """
    from splitgraph.commands import infer
    from splitgraph.configuration import accepted_texts

    return infer.infer(model, accept=accepted_texts(accept), **options)


@program.command()
@parameters.model_argument("model")
@parameters.opset
@parameters.ir_version
@parameters.rewriting_options
@_run
def upgrade(opset: int, ir_version: _Version, accept: Sequence[str], assume_defaults: bool, **options: Any) -> int:
    """Convert MODEL to a newer opset, exactly or not at all.

    \b
    splitgraph upgrade model.onnx --opset 18            (writes model.opset18.onnx)
    splitgraph upgrade model.onnx --opset 18 -o new.onnx --force
    splitgraph upgrade model.onnx --opset 18 --accept SG302@main/resize   (a node that stays as it is)
    splitgraph upgrade model.onnx --opset 18 --assume-defaults            (weights listed as inputs)
    """
    from splitgraph import api
    from splitgraph.commands import rewrite
    from splitgraph.configuration import accepted_texts

    permitted: dict[str, Any] = {"accept": accepted_texts(accept), "assume_defaults": assume_defaults}

    def converted(model: Any) -> Any:
        return api.upgrade(model, opset, ir_version=ir_version, **permitted)

    task = rewrite.Task(converted, f"opset{opset}", opset)
    return rewrite.rewrite(task, **options)


@program.command()
@parameters.model_argument("model")
@parameters.opset
@parameters.ir_version
@parameters.rewriting_options
@_run
def downgrade(opset: int, ir_version: _Version, accept: Sequence[str], assume_defaults: bool, **options: Any) -> int:
    """Convert MODEL to an older opset, exactly or not at all.

    \b
    splitgraph downgrade model.onnx --opset 11          (writes model.opset11.onnx)
    splitgraph downgrade model.onnx --opset 11 --json   (every blocker, for programs)
    splitgraph downgrade model.onnx --opset 11 --accept SG302 --accept SG212@main/head/*
    splitgraph downgrade model.onnx --opset 11 --assume-defaults
    """
    from splitgraph import api
    from splitgraph.commands import rewrite
    from splitgraph.configuration import accepted_texts

    permitted: dict[str, Any] = {"accept": accepted_texts(accept), "assume_defaults": assume_defaults}

    def converted(model: Any) -> Any:
        return api.downgrade(model, opset, ir_version=ir_version, **permitted)

    task = rewrite.Task(converted, f"opset{opset}", opset)
    return rewrite.rewrite(task, **options)


@program.command()
@parameters.model_argument("model")
@click.option("--to", type=click.Choice(["split", "variadic-split", "slice"]), help="The form of the splits.")
@click.option("--opset", type=int, metavar="N", help="The ai.onnx opset to convert to, newer or older.")
@click.option("--explicit-lengths", is_flag=True, help="Give every split explicit lengths; inline functions.")
@click.option("--target", metavar="NAME[@VERSION]", help="The runtime that the model is for; `check` lists them.")
@parameters.ir_version
@parameters.rewriting_options
@_run
def convert(
    to: Literal["split", "variadic-split", "slice"] | None,
    opset: int | None,
    explicit_lengths: bool,
    target: str | None,
    ir_version: _Version,
    accept: Sequence[str],
    assume_defaults: bool,
    **options: Any,
) -> int:
    """Convert MODEL for a runtime, its splits to another form, or MODEL to another opset.

    \b
    splitgraph convert model.onnx --target mnn                        (what MNN does not read, and nothing else)
    splitgraph convert model.onnx --target openvino@2023.3 --opset 13
    splitgraph convert model.onnx --opset 17                          (up or down)
    splitgraph convert model.onnx --to split --explicit-lengths
    splitgraph convert model.onnx --to slice                          (a Slice for each part)
    splitgraph convert model.onnx --to variadic-split
    splitgraph convert model.onnx --to variadic-split -o model.xml    (OpenVINO IR, by OpenVINO)
    splitgraph convert model.onnx --to split --accept SG302           (errors of other nodes)
    splitgraph convert model.onnx --target tvm --assume-defaults
    """
    if to is None and opset is None and target is None:
        raise click.UsageError(
            "Give a runtime with --target, the form of the splits with --to, or an opset with --opset."
        )
    if target is not None and (to is not None or explicit_lengths):
        raise click.UsageError("--target says which forms of splits are read; it goes with --opset only.")
    if to is None and explicit_lengths:
        raise click.UsageError("--explicit-lengths needs --to, the form of the splits.")
    from splitgraph import api
    from splitgraph.commands import rewrite
    from splitgraph.configuration import accepted_texts

    wanted: dict[str, Any] = {
        "opset": opset,
        "target": target,
        "explicit_lengths": explicit_lengths,
        "ir_version": ir_version,
    }
    permitted: dict[str, Any] = {"accept": accepted_texts(accept), "assume_defaults": assume_defaults}

    def converted(model: Any) -> Any:
        return api.convert(model, to, **wanted, **permitted)

    tag = ".".join(filter(None, (None if opset is None else f"opset{opset}", to, target)))
    return rewrite.rewrite(rewrite.Task(converted, tag, opset, to, target), **options)


@program.command()
@parameters.model_argument("model")
@parameters.targets
@click.option("--all-targets", is_flag=True, help="Check for every known target, one line each.")
@parameters.accept
@parameters.assume_defaults("")
@parameters.as_json
@_run
def check(model: Path, target: Sequence[str], all_targets: bool, accept: Sequence[str], **options: Any) -> int:
    """Say what a runtime will refuse in MODEL, or silently compute wrong.

    \b
    splitgraph check model.onnx --target mnn --target openvino@2023.3
    splitgraph check model.onnx --all-targets
    splitgraph check model.onnx --all-targets --assume-defaults
    splitgraph check model.onnx --target mnn --accept SG302@main/node
    """
    if bool(target) == all_targets:
        raise click.UsageError("Give one or more runtimes with --target, or --all-targets.")
    from splitgraph.commands import check
    from splitgraph.configuration import accepted_texts

    return check.check(model, target=target, all_targets=all_targets, accept=accepted_texts(accept), **options)


@program.command()
@parameters.model_argument("before")
@parameters.model_argument("after")
@parameters.running_options(RTOL, ATOL)
@parameters.as_json
@_run
def verify(before: Path, after: Path, **options: Any) -> int:
    """Run BEFORE and AFTER on the same inputs, and compare them.

    \b
    splitgraph verify model.onnx model.opset18.onnx
    splitgraph verify model.onnx other.onnx --bind N=4 --engine reference --json
    """
    from splitgraph.commands import verify

    return verify.verify(before, after, **options)


@program.command()
@click.argument("code", required=False)
@_run
def explain(code: str | None) -> int:
    """Explain a diagnostic CODE, or list all codes."""
    from splitgraph.commands import explain

    return explain.explain(code)
