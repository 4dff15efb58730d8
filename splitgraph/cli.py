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
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

import splitgraph
from splitgraph.commands import parameters
from splitgraph.commands.parameters import MANY, MANY_WITH_LIMIT, RUNNING, Command, takes
from splitgraph.findings.exit_codes import BROKEN_PIPE, CLEAN, INTERNAL_ERROR, INTERRUPTED, MEANINGS, WRONG_USAGE
from splitgraph.options import ATOL, RTOL
from splitgraph.processes.this_process import writing

if TYPE_CHECKING:
    from pathlib import Path

    from splitgraph.findings.outcome import Verb


class _Command(click.Command):
    """A command. `--help` is handled while the arguments are parsed."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Do as click, and report an error of standard output."""
        with writing():
            return super().make_context(*arguments, **options)


class _Program(_Command, click.Group):
    """The group of all commands."""

    command_class = _Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which a user needs them."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a reader of our output through a pipe may stop at any time."""
        try:
            return self._invoke(ctx)
        except BrokenPipeError:
            # Python's buffer would fail again when it is flushed at exit.
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
                from splitgraph.commands.running import print_usage_failure

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
        kind = "" if type(error).__name__ == "InternalError" else f"{type(error).__name__}: "
        text = _printable(f"{kind}{error}")
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
    from splitgraph.reports.text import printable

    return printable(text)


def _meant_as_a_file(error: click.UsageError, typed: Sequence[str]) -> str:
    """Return advice for a file whose name begins with a dash; "" if there is no such file."""
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
    """Run the command for click, with the error handling that all commands share."""

    @functools.wraps(command)
    def run(**options: Any) -> int:
        from splitgraph.commands.running import run_command

        return run_command(command, options)

    return run


_OF_REPORT = "Overwrite an existing report."


def _rewrite(verb: Verb, options: Mapping[str, Any], newer: bool | None = None) -> int:
    from splitgraph.commands.many import read_call
    from splitgraph.commands.rewrite import rewrite

    return rewrite(read_call(verb, {"newer": newer, **options}))


@program.command()
@parameters.models_argument
@takes("output", "force", "external_data", "as_json", "values", "bind", "input_shapes", "accept", "assume_defaults")
@takes("quiet", *MANY_WITH_LIMIT)
@_run
def infer(**options: Any) -> int:
    """Infer every type and shape of MODEL, and check its splits.

    \b
    splitgraph infer model.onnx
    splitgraph infer model.onnx --bind N=4 --input-shape "x=N,3,H + 2,?" --all --json
    splitgraph infer model.onnx --bind batch=4 -o fixed.onnx --force      (freezes the dimension)
    splitgraph infer large.onnx -o typed/ --external-data link            (weights: no copy)
    splitgraph infer model.onnx --accept SG302@main/head/*                (no error of ours)
    splitgraph infer model.onnx --assume-defaults            (weights listed as inputs)
    splitgraph infer models/ --exclude old/ --jobs 8 --timeout 60 --memory 4 --quiet
    splitgraph infer models/ --report r.jsonl --resume --junit r.xml
    splitgraph infer 's3://zoo/*.onnx' --scheduler tcp://10.0.0.1:8786
    """
    from splitgraph.commands.infer import infer
    from splitgraph.commands.many import read_call

    return infer(read_call("infer", options))


@program.command()
@parameters.models_argument
@takes("opset", required=True)
@parameters.rewriting
@_run
def upgrade(**options: Any) -> int:
    """Convert MODEL to a newer opset, exactly or not at all.

    \b
    splitgraph upgrade model.onnx --opset 18                          (writes model.opset18.onnx)
    splitgraph upgrade model.onnx --opset 18 -o new.onnx --force
    splitgraph upgrade model.onnx --opset 18 --dry-run --diff                 (what would change)
    splitgraph upgrade model.onnx --opset 18 --in-place --ir-version keep --external-data
    splitgraph upgrade model.onnx --opset 18 --verify --engine onnxruntime --provider cuda
    splitgraph upgrade model.onnx --opset 18 --samples 5 --seed 1 --try N=4 --rtol 1e-4 --atol 1e-5
    splitgraph upgrade model.onnx --opset 18 --bind batch=4             (the result has this size)
    splitgraph upgrade model.onnx --opset 18 --inputs data.npz --custom-ops libops.so --json
    splitgraph upgrade model.onnx --opset 18 --accept SG302@main/resize   (the node stays as it is)
    splitgraph upgrade model.onnx --opset 18 --assume-defaults            (weights listed as inputs)
    splitgraph upgrade models/ --opset 18 -o out/ --skip-newer --no-verify --jobs 8 --timeout 60
    splitgraph upgrade models/ --opset 18 -o out/ --exclude old/ --memory 4 --quiet
    splitgraph upgrade models/ --opset 18 -o out/ --report r.jsonl --resume --junit r.xml
    splitgraph upgrade 's3://zoo/*.onnx' --opset 18 -o out/ --scheduler tcp://10.0.0.1:8786
    """
    return _rewrite("upgrade", options, newer=True)


@program.command()
@parameters.models_argument
@takes("opset", required=True)
@parameters.rewriting
@_run
def downgrade(**options: Any) -> int:
    """Convert MODEL to an older opset, exactly or not at all.

    \b
    splitgraph downgrade model.onnx --opset 11                          (writes model.opset11.onnx)
    splitgraph downgrade model.onnx --opset 11 -o old.onnx --force
    splitgraph downgrade model.onnx --opset 11 --dry-run --diff                 (what would change)
    splitgraph downgrade model.onnx --opset 11 --in-place --ir-version keep --external-data
    splitgraph downgrade model.onnx --opset 11 --verify --engine onnxruntime --provider cuda
    splitgraph downgrade model.onnx --opset 11 --samples 5 --seed 1 --try N=4 --rtol 1e-4 --atol 1e-5
    splitgraph downgrade model.onnx --opset 11 --bind batch=4             (the result has this size)
    splitgraph downgrade model.onnx --opset 11 --inputs data.npz --custom-ops libops.so --json
    splitgraph downgrade model.onnx --opset 11 --accept SG302@main/resize   (the node stays as it is)
    splitgraph downgrade model.onnx --opset 11 --assume-defaults            (weights listed as inputs)
    splitgraph downgrade models/ --opset 11 -o out/ --skip-newer --no-verify --jobs 8 --timeout 60
    splitgraph downgrade models/ --opset 11 -o out/ --exclude old/ --memory 4 --quiet
    splitgraph downgrade models/ --opset 11 -o out/ --report r.jsonl --resume --junit r.xml
    splitgraph downgrade 's3://zoo/*.onnx' --opset 11 -o out/ --scheduler tcp://10.0.0.1:8786
    """
    return _rewrite("downgrade", options, newer=False)


@program.command()
@parameters.models_argument
@takes("to")
@takes("opset", help="The ai.onnx opset to convert to, newer or older.")
@takes("explicit_lengths")
@takes("target", shell_complete=parameters.target_names)
@parameters.rewriting
@_run
def convert(**options: Any) -> int:
    """Convert MODEL for a runtime, its splits to another form, or MODEL to another opset or IR version.

    \b
    splitgraph convert model.onnx --target mnn            (what MNN does not read, and nothing else)
    splitgraph convert model.onnx --target openvino@2023.3 --opset 13
    splitgraph convert model.onnx --opset 17              (up or down)
    splitgraph convert model.onnx --ir-version 8          (and nothing else)
    splitgraph convert model.onnx --to split --explicit-lengths
    splitgraph convert model.onnx --to slice              (a Slice for each part)
    splitgraph convert model.onnx --to variadic-split -o variadic.onnx --force
    splitgraph convert model.onnx --to variadic-split -o model.xml    (OpenVINO IR, by OpenVINO)
    splitgraph convert model.onnx --target mnn --dry-run --diff                 (what would change)
    splitgraph convert model.onnx --target mnn --in-place --ir-version keep --external-data
    splitgraph convert model.onnx --target mnn --verify --engine onnxruntime --provider cuda
    splitgraph convert model.onnx --target mnn --samples 5 --seed 1 --try N=4 --rtol 1e-4 --atol 1e-5
    splitgraph convert model.onnx --target mnn --bind batch=4             (the result has this size)
    splitgraph convert model.onnx --target mnn --inputs data.npz --custom-ops libops.so --json
    splitgraph convert model.onnx --target mnn --accept SG302@main/resize   (the node stays as it is)
    splitgraph convert model.onnx --target mnn --assume-defaults            (weights listed as inputs)
    splitgraph convert models/ --target mnn -o out/ --skip-newer --no-verify --jobs 8 --timeout 60
    splitgraph convert models/ --target mnn -o out/ --exclude old/ --memory 4 --quiet
    splitgraph convert models/ --target mnn -o out/ --report r.jsonl --resume --junit r.xml
    splitgraph convert 's3://zoo/*.onnx' --target mnn -o out/ --scheduler tcp://10.0.0.1:8786
    """
    to, target = options["to"], options["target"]
    if all(options[name] is None for name in ("to", "opset", "target", "ir_version")):
        raise click.UsageError(
            "Give a runtime with --target, the form of the splits with --to, an opset with --opset, or --ir-version."
        )
    if target is not None and (to is not None or options["explicit_lengths"]):
        raise click.UsageError("--target says which forms of splits are read; it goes with --opset only.")
    if to is None and options["explicit_lengths"]:
        raise click.UsageError("--explicit-lengths needs --to, the form of the splits.")
    return _rewrite("convert", options)


@program.command()
@parameters.models_argument
@takes("shapes", "batch", "follow", "output", "in_place", "force", "external_data", "bind", "accept")
@takes(
    "assume_defaults",
    "verify",
    *(name for name in RUNNING if name != "try_sizes"),
    "dry_run",
    "diff",
    "quiet",
    "as_json",
    *MANY,
)
@_run
def reshape(**options: Any) -> int:
    """Give the inputs of MODEL other sizes: numbers, or names for sizes that a run decides.

    \b
    splitgraph reshape model.onnx --batch N           (any batch; writes model.reshaped.onnx)
    splitgraph reshape model.onnx --batch 8 -o eight.onnx --force
    splitgraph reshape model.onnx --input-shape images=N,3,640,640 --dry-run --diff
    splitgraph reshape model.onnx --input-shape images=1,3,H,W --follow "main/resize[2]=2*H"
    splitgraph reshape model.onnx --batch N --in-place --external-data --bind seq=128
    splitgraph reshape model.onnx --batch N --verify --engine onnxruntime --provider cuda
    splitgraph reshape model.onnx --batch N --samples 5 --seed 1 --rtol 1e-4 --atol 1e-5
    splitgraph reshape model.onnx --batch N --inputs data.npz --custom-ops libops.so --json
    splitgraph reshape model.onnx --batch N --accept SG302@main/resize --assume-defaults
    splitgraph reshape models/ --batch N -o out/ --no-verify --jobs 8 --timeout 60 --quiet
    splitgraph reshape models/ --batch N -o out/ --exclude old/ --memory 4
    splitgraph reshape models/ --batch N -o out/ --report r.jsonl --resume --junit r.xml
    splitgraph reshape 's3://zoo/*.onnx' --batch N -o out/ --scheduler tcp://10.0.0.1:8786
    """
    if not options["shapes"] and options["batch"] is None:
        raise click.UsageError("Give the shape of an input with --input-shape, or a batch with --batch.")
    return _rewrite("reshape", options)


@program.command()
@parameters.models_argument
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME[@VERSION]",
    shell_complete=parameters.target_names,
    help="The runtime that the model is for, such as mnn or openvino@2023.3; repeatable.",
)
@click.option("--all-targets", is_flag=True, help="Check for every known target, one line each.")
@takes("accept", "assume_defaults", "as_json", "quiet")
@takes("force", help=_OF_REPORT)
@takes(*MANY_WITH_LIMIT)
@_run
def check(all_targets: bool, **options: Any) -> int:
    """Say what a runtime will refuse in MODEL, or silently compute wrong.

    \b
    splitgraph check model.onnx --target mnn --target openvino@2023.3
    splitgraph check model.onnx --all-targets --json
    splitgraph check model.onnx --all-targets --assume-defaults
    splitgraph check model.onnx --target mnn --accept SG302@main/node
    splitgraph check models/ --target mnn --exclude old/ --jobs 8 --timeout 60 --memory 4 --quiet
    splitgraph check models/ --target mnn --report r.jsonl --resume
    splitgraph check models/ --target mnn --report r.jsonl --force --junit r.xml
    splitgraph check 's3://zoo/*.onnx' --target mnn --scheduler tcp://10.0.0.1:8786
    """
    if bool(options["targets"]) == all_targets:
        raise click.UsageError("Give one or more runtimes with --target, or --all-targets.")
    from splitgraph.commands.check import check
    from splitgraph.commands.many import read_call

    return check(read_call("check", options))


@program.command()
@parameters.model_argument("before")
@parameters.model_argument("after")
@takes("bind", help="As --try; repeatable.")
@takes(*RUNNING[: RUNNING.index("rtol")])
@takes("rtol", default=RTOL, show_default=True)
@takes("atol", default=ATOL, show_default=True)
@takes("timeout")
@click.option("--pairs", is_flag=True, help="BEFORE and AFTER are folders: compare the models of one name.")
@takes("as_json", "quiet")
@takes("force", help=_OF_REPORT)
@takes(*MANY)
@_run
def verify(before: Path, after: Path, pairs: bool, **options: Any) -> int:
    """Run BEFORE and AFTER on the same inputs, and compare them.

    \b
    splitgraph verify model.onnx model.opset18.onnx
    splitgraph verify model.onnx other.onnx --bind N=4 --samples 5 --seed 1 --rtol 1e-4 --atol 1e-5
    splitgraph verify model.onnx other.onnx --try N=4                 (the same as --bind)
    splitgraph verify model.onnx other.onnx --inputs data.npz --json
    splitgraph verify model.onnx other.onnx --custom-ops libops.so --provider cuda
    splitgraph verify model.onnx other.onnx --engine onnxruntime
    splitgraph verify models/ out/ --pairs --jobs 8 --timeout 60 --memory 4 --exclude old/ --quiet
    splitgraph verify models/ out/ --pairs --report r.jsonl --resume
    splitgraph verify models/ out/ --pairs --report r.jsonl --junit r.xml --force
    splitgraph verify models/ out/ --pairs --scheduler tcp://10.0.0.1:8786
    """
    from splitgraph.commands.many import read_call
    from splitgraph.commands.verify import verify

    return verify(read_call("verify", options, model=before, after=after), pairs=pairs)


@program.command()
@parameters.model_argument("before")
@parameters.model_argument("after")
@click.option("--all", "with_all", is_flag=True, help="Show every difference; long lists are cut otherwise.")
@takes("as_json")
@_run
def diff(**options: Any) -> int:
    """Say what differs between BEFORE and AFTER, node by node, with types; nothing is run.

    \b
    splitgraph diff model.onnx model.opset18.onnx
    splitgraph diff export-1.onnx export-2.onnx --all
    splitgraph diff model.onnx other.onnx --json
    """
    from splitgraph.commands.diff import diff

    return diff(**options)


@program.command()
@parameters.optional_models_argument
@parameters.model_option("--before", "The model before a rewrite; with --after.")
@parameters.model_option("--after", "The model after a rewrite; with --before.")
@takes("output", required=True)
@takes("force")
@click.option("--svg", metavar="NODE", help="Draw one split as SVG instead: its name, or its location if names repeat.")
@click.option("--title", metavar="TEXT", help="The title of the page. Default: the name of the model.")
@click.option("--verify", is_flag=True, help="Verify the two models, and show what became of each part that differs.")
@takes("as_json", "quiet", *MANY_WITH_LIMIT)
@_run
def report(after: Path | None, **options: Any) -> int:
    """Draw MODEL around its splits, or what a rewrite changed, as a page for a browser: one file, no network.

    \b
    splitgraph report model.onnx -o report.html
    splitgraph report model.onnx -o reports/ --force           (writes reports/model.report.html)
    splitgraph report model.onnx -o report.html --title "Release 3" --json
    splitgraph report --before model.onnx --after model.opset18.onnx --verify -o report.html
    splitgraph report model.onnx --svg main/h.0/attn/Split -o split.svg
    splitgraph report models/ -o site/                         (a page for each, and site/index.html)
    splitgraph report models/ -o site/ --exclude old/ --jobs 8 --timeout 60 --memory 4 --quiet
    splitgraph report models/ -o site/ --report r.jsonl --resume --junit r.xml
    splitgraph report 's3://zoo/*.onnx' -o site/ --scheduler tcp://10.0.0.1:8786
    """
    from splitgraph.commands.many import read_call
    from splitgraph.commands.report import report

    return report(read_call("report", options), after=after)


@program.command()
@click.argument("code", required=False, shell_complete=parameters.codes)
@_run
def explain(code: str | None) -> int:
    """Explain a diagnostic CODE, or list all codes."""
    from splitgraph.commands import explain

    return explain.explain(code)


@program.command()
@takes("as_json")
@_run
def doctor(as_json: bool) -> int:
    """Say what is installed, which engines work here, and what each can run.

    \b
    splitgraph doctor
    splitgraph doctor --json      (for a bug report)

    Each engine runs a small model in a process of its own. The exit code is 0 if everything that is installed works,
    and 1 if a part is broken, missing or too old.
    """
    from splitgraph.commands import doctor

    return doctor.doctor(as_json=as_json)
