"""The command line: what can be typed. What the commands do is in `commands`."""

from __future__ import annotations

import functools
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

import splitgraph
from splitgraph.diagnostics import CODES, ConversionError, Diagnostic, SplitgraphError, VerificationError
from splitgraph.exit_codes import BROKEN_PIPE, CLEAN, FINDINGS, INTERNAL_ERROR, INTERRUPTED, MEANINGS, WRONG_USAGE
from splitgraph.report.documents import (
    Document,
    failed_analysis_json,
    failed_rewrite_json,
    failed_verification_json,
)
from splitgraph.report.pages import code_page, codes_page
from splitgraph.report.printing import print_document, print_result, say_error
from splitgraph.report.text import printable

# onnx and numpy cost many times what click costs: `commands`, which needs them, is imported where a command runs.

ENGINES = ["auto", "reference", "onnxruntime", "openvino"]

Command = Callable[..., int]
_Version = int | Literal["keep"] | None
# What a command prints with --json when it fails, from its options and what is wrong.
_Failed = Callable[[Mapping[str, Any], Sequence[Diagnostic]], Document]
_DOCUMENTS: dict[str, _Failed] = {}


class _Program(click.Group):
    """The group of all commands."""

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
            document = _DOCUMENTS.get(ctx.invoked_subcommand or "")
            if document is not None and "--json" in typed:
                # What was typed wrongly may be an option before the model: which model was meant is not known.
                print_document(document({"model": ""}, [Diagnostic("SG601", "error", error.format_message())]))
            raise


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns 0 clean, 1 findings, 2 wrong usage or unreadable file, 3 not checked."""
    for name in ("stdout", "stderr"):
        # A stream that the caller closed before the start is None; what goes there goes nowhere.
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # open until the process ends
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal's encoding lacks is printed as an escape; it is no reason to fail.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    typed = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with _stopped_cleanly():
            return int(program.main(typed, prog_name="splitgraph", standalone_mode=False, obj=typed) or CLEAN)
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "splitgraph"
        meant = _meant_as_a_file(error, typed)
        text = f"{error.format_message().removesuffix('.')}; {meant}." if meant else error.format_message()
        print(f"error: {text}\nTry '{path} --help' for help.", file=sys.stderr)
        return WRONG_USAGE
    except click.Abort:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:
        # Models are read and written with errors of their own: what is left is the output, or the machine.
        print(f"error: {printable(error.strerror or str(error))}", file=sys.stderr)
        return WRONG_USAGE
    except Exception as error:
        # The last resort: a fault of splitgraph's own is told in one line, and in full on request.
        if os.environ.get("SPLITGRAPH_DEBUG"):
            raise
        text = printable(f"{type(error).__name__}: {error}")
        print(f"internal error: {text} (please report it; SPLITGRAPH_DEBUG=1 shows where it happened)", file=sys.stderr)
        return INTERNAL_ERROR


def _meant_as_a_file(error: click.UsageError, typed: Sequence[str]) -> str:
    """What to write for a file whose name begins as options do; "" where there is none."""
    if not isinstance(error, click.NoSuchOption):
        return ""
    named = next((text for text in typed if text.startswith("-") and os.path.lexists(text)), None)
    return "" if named is None else f"for the file of that name write ./{printable(named)}"


@contextmanager
def _stopped_cleanly() -> Iterator[None]:
    """Let what asks the process to stop (`timeout`, a container, a closed terminal) end it as an exception does, which
    ends engines and removes temporary files.
    """

    def stop(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    # What is ignored, as `nohup` has it, stays so.
    earlier = {number: signal.getsignal(number) for number in asked if signal.getsignal(number) is signal.SIG_DFL}
    for number in earlier:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


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


def _reports_errors(document: _Failed) -> Callable[[Command], Command]:
    """Turn the errors of a command into a line on stderr, an exit code, and with --json the given document."""

    def decorate(command: Command) -> Command:
        _DOCUMENTS[command.__name__] = document

        @functools.wraps(command)
        def run(**options: Any) -> int:
            try:
                return command(**options)
            except SplitgraphError as error:
                say_error(str(error), error.diagnostics)
                if options["as_json"]:
                    found = error.diagnostics or (Diagnostic("SG601", "error", str(error)),)
                    print_document(document(options, found))
                return FINDINGS if isinstance(error, ConversionError | VerificationError) else WRONG_USAGE

        return run

    return decorate


def _failed_analysis(options: Mapping[str, Any], diagnostics: Sequence[Diagnostic]) -> Document:
    return failed_analysis_json(str(options["model"]), diagnostics)


def _failed_rewrite(options: Mapping[str, Any], diagnostics: Sequence[Diagnostic]) -> Document:
    return failed_rewrite_json(str(options["model"]), diagnostics, before={}, after={})


def _failed_verification(options: Mapping[str, Any], diagnostics: Sequence[Diagnostic]) -> Document:
    return failed_verification_json(diagnostics)


class _File(click.Path):
    """The path of a file. An empty one, as of a shell variable that is not set, would be the current folder; and "-",
    by which other programs mean a standard stream, would be a file of that name.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; fails for an empty one and for "-"."""
        if not value:
            self.fail("is empty; give the path of a file.", param, ctx)
        if str(value) == "-":
            self.fail("models are not read from or written to standard streams; give the path of a file.", param, ctx)
        return super().convert(value, param, ctx)


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


_FILE = _File(path_type=Path)
_model = click.argument("model", type=_FILE)
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
_bind = click.option("--bind", multiple=True, metavar="N=4", help="Give a symbolic dimension a value; repeatable.")
_output = click.option(
    "-o",
    "--output",
    type=_File(),
    metavar="OUT",
    help="Write the model here: a file, or a folder for its default name.",
)
_force = click.option("--force", is_flag=True, help="Overwrite an existing output.")
_opset = click.option("--opset", type=int, required=True, metavar="N", help="The ai.onnx opset to convert to.")
_ir_version = click.option(
    "--ir-version",
    type=_IRVersion(),
    metavar="N|keep",
    help="IR version of the result. Default: the model's own, raised to what the opset needs; a downgrade lowers it to "
    "what came with the opset. keep: lower nothing.",
)


_timeout = click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="For everything that is run.",
)
_RTOL, _ATOL = 1e-5, 1e-6


def _tolerance(name: str, kind: str, default: float | None, shown: float) -> Callable[[Command], Command]:
    """An option for a tolerance; without a default, a rewrite that rounds otherwise is given more."""
    told: bool | str = True if default is not None else f"{shown:g}, or more where a rewrite rounds otherwise"
    return click.option(
        name, type=click.FloatRange(min=0), default=default, show_default=told, help=f"{kind} tolerance."
    )


def _running_options(rtol: float | None, atol: float | None) -> Callable[[Command], Command]:
    """The options that say how two models are run and compared."""
    options = (
        click.option("--samples", type=click.IntRange(min=1), default=3, show_default=True, help="Sets of inputs."),
        click.option(
            "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the random inputs."
        ),
        click.option("--bind", multiple=True, metavar="N=4", help="Run with this size of a dimension; repeatable."),
        click.option(
            "--engine", type=click.Choice(ENGINES), default="auto", show_default=True, help="What runs the models."
        ),
        _tolerance("--rtol", "Relative", rtol, _RTOL),
        _tolerance("--atol", "Absolute", atol, _ATOL),
        _timeout,
    )
    return _all_of(options)


def _all_of(options: Sequence[Callable[[Command], Command]]) -> Callable[[Command], Command]:
    """One decorator for several options, which `--help` lists in their order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _rewriting_options(command: Command) -> Command:
    in_place = click.option("--in-place", is_flag=True, help="Write to the model itself.")
    verify = click.option(
        "--verify/--no-verify",
        default=None,
        help="Run the model and the result, and compare them. Default: verify, warn if impossible. --verify: fail if "
        "impossible. --no-verify: skip.",
    )
    return _all_of((_output, in_place, _force, verify, _running_options(None, None), _json))(command)


@program.command()
@_model
@_output
@_force
@_json
@click.option("--all", "with_values", is_flag=True, help="Also list every value of the main graph with its type.")
@_bind
@click.option(
    "--input-shape",
    multiple=True,
    metavar="x=1,3,H,W",
    help="Give an input a shape, ? for unknown; also x=[1,3,H,W], x=1x3xHxW; repeatable.",
)
@click.option(
    "--assume-defaults", is_flag=True, help="Take initializers that are also inputs for constants (explain SG305)."
)
@_reports_errors(_failed_analysis)
def infer(model: Path, **options: Any) -> int:
    """Infer every type and shape of MODEL, and check its splits.

    \b
    splitgraph infer model.onnx
    splitgraph infer model.onnx --bind N=4 --input-shape "x=N,3,H + 2,?" --all
    splitgraph infer model.onnx --bind batch=4 -o fixed.onnx      (freezes the dimension)
    """
    from splitgraph import commands

    return commands.infer(model, **options)


@program.command()
@_model
@_opset
@_ir_version
@_rewriting_options
@_reports_errors(_failed_rewrite)
def upgrade(opset: int, ir_version: _Version, **options: Any) -> int:
    """Convert MODEL to a newer opset, exactly or not at all.

    \b
    splitgraph upgrade model.onnx --opset 18            (writes model.opset18.onnx)
    splitgraph upgrade model.onnx --opset 18 -o new.onnx --force
    """
    from splitgraph import api, commands

    task = commands.Task(lambda model: api.upgrade(model, opset, ir_version=ir_version), f"opset{opset}", opset)
    return commands.rewrite(task, **options)


@program.command()
@_model
@_opset
@_ir_version
@_rewriting_options
@_reports_errors(_failed_rewrite)
def downgrade(opset: int, ir_version: _Version, **options: Any) -> int:
    """Convert MODEL to an older opset, exactly or not at all.

    \b
    splitgraph downgrade model.onnx --opset 11          (writes model.opset11.onnx)
    splitgraph downgrade model.onnx --opset 11 --json   (every blocker, for programs)
    """
    from splitgraph import api, commands

    task = commands.Task(lambda model: api.downgrade(model, opset, ir_version=ir_version), f"opset{opset}", opset)
    return commands.rewrite(task, **options)


@program.command()
@_model
@click.option("--to", type=click.Choice(["split", "variadic-split"]), help="The form of the splits.")
@click.option("--opset", type=int, metavar="N", help="The ai.onnx opset to convert to, newer or older.")
@click.option("--explicit-lengths", is_flag=True, help="Write lengths out, inline functions.")
@_ir_version
@_rewriting_options
@_reports_errors(_failed_rewrite)
def convert(
    to: Literal["split", "variadic-split"] | None,
    opset: int | None,
    explicit_lengths: bool,
    ir_version: _Version,
    **options: Any,
) -> int:
    """Convert the splits of MODEL to another form, MODEL to another opset, or both.

    \b
    splitgraph convert model.onnx --opset 17                          (up or down)
    splitgraph convert model.onnx --to split --explicit-lengths
    splitgraph convert model.onnx --to variadic-split
    splitgraph convert model.onnx --to variadic-split -o model.xml    (OpenVINO IR, by OpenVINO)
    """
    from splitgraph import api, commands

    if to is None and opset is None:
        raise click.UsageError("Give the form of the splits with --to, an opset with --opset, or both.")
    if to is None and explicit_lengths:
        raise click.UsageError("--explicit-lengths says how splits are written; give their form with --to as well.")

    def rewrite(model: Any) -> Any:
        return api.convert(model, to, opset=opset, explicit_lengths=explicit_lengths, ir_version=ir_version)

    tag = ".".join(filter(None, (None if opset is None else f"opset{opset}", to)))
    return commands.rewrite(commands.Task(rewrite, tag, opset, to), **options)


@program.command()
@click.argument("before", type=_FILE)
@click.argument("after", type=_FILE)
@_running_options(_RTOL, _ATOL)
@_json
@_reports_errors(_failed_verification)
def verify(before: Path, after: Path, **options: Any) -> int:
    """Run BEFORE and AFTER on the same inputs, and compare them.

    \b
    splitgraph verify model.onnx model.opset18.onnx
    splitgraph verify model.onnx other.onnx --bind N=4 --engine reference --json
    """
    from splitgraph import commands

    return commands.verify(before, after, **options)


@program.command()
@click.argument("code", required=False)
def explain(code: str | None) -> int:
    """Say what a diagnostic CODE means, or list all codes."""
    if code is None:
        print_result(codes_page(CODES))
        return CLEAN
    known = code.strip().upper()
    if known.isdigit():
        known = f"SG{known}"
    if known in CODES:
        print_result(code_page(known, CODES[known]))
        return CLEAN
    close = get_close_matches(known, CODES)
    also = f"did you mean {' or '.join(close)}?" if close else "'splitgraph explain' lists all codes"
    say_error(f"there is no code {code.strip() or repr(code)}; {also}")
    return WRONG_USAGE
