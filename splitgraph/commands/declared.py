"""What can be typed: the program and its commands, each with its options, its help and what it runs.

To declare all commands takes less than a millisecond, so that they are not declared lazily. What they do is imported
where they run.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

import splitgraph
from splitgraph.commands import parameters
from splitgraph.commands.parameters import MANY, MANY_WITH_LIMIT, RUNNING, Command, takes
from splitgraph.commands.program import Program
from splitgraph.findings.exit_codes import CLEAN, MEANINGS, WRONG_USAGE
from splitgraph.options import ATOL, RTOL

if TYPE_CHECKING:
    from pathlib import Path

    from splitgraph.findings.outcome import Verb

# The mark \b keeps click from joining the lines.
_EXIT_CODES = "\n".join(("\b", "Exit codes:", *(f"{code:5}  {meaning}" for code, meaning in MEANINGS.items())))


@click.group(
    cls=Program,
    invoke_without_command=True,
    epilog=_EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(splitgraph.__version__, "-v", "-V", "--version", message="%(prog)s %(version)s")
@click.pass_context
def program(context: click.Context) -> int:
    """Infer the shapes of ONNX and OpenVINO models, and move the models to another opset, runtime or size: exactly and
    verified, or not at all.
    """
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


def _rewrite(verb: Verb, options: Mapping[str, Any]) -> int:
    from splitgraph.commands.many import read_call
    from splitgraph.commands.rewrite import rewrite

    return rewrite(read_call(verb, options))


@program.command()
@parameters.models_argument
@takes(
    "output", "force", "external_data", "as_json", "values", "why", "bind", "input_shapes", "accept", "assume_defaults"
)
@takes("quiet", *MANY_WITH_LIMIT)
@_run
def infer(**options: Any) -> int:
    """Infer every type and shape of MODEL, and check its splits.

    \b
    splitgraph infer model.onnx
    splitgraph infer model.onnx --all                            (every operator and every type)
    splitgraph infer model.onnx --why logits                     (where its dimensions come from)
    splitgraph infer model.onnx --bind batch=4 -o fixed.onnx     (freezes the dimension)
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
    splitgraph upgrade model.onnx --opset 18                      (writes model.opset18.onnx)
    splitgraph upgrade model.onnx --opset 18 --dry-run --diff     (what would change)
    splitgraph upgrade model.onnx --opset 18 --verify             (fails if nothing can run both)
    splitgraph upgrade models/ --opset 18 -o out/ --junit r.xml   (a folder, in CI)
    """
    return _rewrite("upgrade", options)


@program.command()
@parameters.models_argument
@takes("opset", required=True)
@parameters.rewriting
@_run
def downgrade(**options: Any) -> int:
    """Convert MODEL to an older opset, exactly or not at all.

    \b
    splitgraph downgrade model.onnx --opset 11                      (writes model.opset11.onnx)
    splitgraph downgrade model.onnx --opset 11 --dry-run --diff     (what would change)
    splitgraph downgrade model.onnx --opset 11 --verify             (fails if nothing can run both)
    splitgraph downgrade models/ --opset 11 -o out/ --junit r.xml   (a folder, in CI)
    """
    return _rewrite("downgrade", options)


@program.command()
@parameters.models_argument
@takes("to")
@takes("opset", help="The ai.onnx opset to convert to, newer or older; ai.onnx.ml=N for that domain; repeatable.")
@takes("explicit_lengths")
@takes("target", shell_complete=parameters.target_names)
@takes("fold", "standard", "drop_zipmap")
@takes("runtime_python")
@parameters.rewriting
@_run
def convert(**options: Any) -> int:
    """Convert MODEL for a runtime, or its splits to another form.

    Also to another opset, up or down, or to another IR version.

    \b
    splitgraph convert model.onnx --target mnn            (only what MNN does not read changes)
    splitgraph convert model.onnx --opset 17              (up or down)
    splitgraph convert model.onnx --standard              (com.microsoft in operators of ai.onnx)
    splitgraph convert model.onnx --to variadic-split -o model.xml    (OpenVINO IR, by OpenVINO)
    """
    to, target = options["to"], options["target"]
    changes = ("to", "opset", "target", "fold", "standard", "drop_zipmap")
    goals = (*changes, "ir_version", "read_by_form", "fix_defaults")
    if not any(options[name] for name in goals):
        raise click.UsageError(
            "Give a runtime with --target, the form of the splits with --to, an opset with --opset, --standard, "
            "--fold, --drop-zipmap, or --ir-version; or --read-by-form or --fix-defaults."
        )
    if target is not None and (to is not None or options["explicit_lengths"]):
        raise click.UsageError("--target says which forms of splits are read; it goes with --opset only.")
    if to is None and options["explicit_lengths"]:
        raise click.UsageError("--explicit-lengths needs --to, the form of the splits.")
    return _rewrite("convert", options)


@program.command()
@parameters.models_argument
@takes("shapes", "batch", "follow", "keep", "output", "in_place", "force", "external_data", "bind", "accept")
@takes(
    "assume_defaults",
    "read_by_form",
    "fix_defaults",
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
    """Give the inputs of MODEL other sizes, fixed or free.

    A size is a number, or a name for a size that a run decides.

    \b
    splitgraph reshape model.onnx --batch N           (any batch; writes model.reshaped.onnx)
    splitgraph reshape model.onnx --input-shape images=N,3,640,640 --dry-run --diff
    splitgraph reshape model.onnx --input-shape tokens=1,T --follow "main/zeros[0]=T"
    splitgraph reshape models/ --batch 8 -o out/      (a folder)
    """
    if not options["shapes"] and options["batch"] is None:
        also = "; a dimension with a name gets its number there, too" if options["bind"] else ""
        raise click.UsageError(f"Give the shape of an input with --input-shape, or a batch with --batch{also}.")
    return _rewrite("reshape", options)


@program.command()
@parameters.optional_models_argument
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME[@VERSION]",
    shell_complete=parameters.target_names,
    help="The runtime that the model is for, such as mnn or openvino@2023.3; repeatable.",
)
@click.option(
    "--all-targets", is_flag=True, help="Check for every known target: what runs it, as it is or after convert."
)
@click.option("--targets", "lists_targets", is_flag=True, help="List the targets that are known, and no model.")
@click.option(
    "--run",
    is_flag=True,
    help="Also run the model in the runtime, if that is installed here, and name the first node that goes wrong.",
)
@takes("runtime_python", "accept", "assume_defaults", "samples", "seed", "try_sizes", "inputs", "as_json", "quiet")
@takes("force", help=_OF_REPORT)
@takes(*MANY_WITH_LIMIT)
@_run
def check(all_targets: bool, lists_targets: bool, **options: Any) -> int:
    """Say which nodes of MODEL a runtime refuses or computes wrong.

    \b
    splitgraph check --targets                          (the runtimes that are known)
    splitgraph check model.onnx --target mnn --target openvino@2023.3
    splitgraph check model.onnx --target opencv --run   (in OpenCV itself, if it is installed here)
    splitgraph check model.onnx --all-targets           (a table to choose a runtime from)
    """
    from splitgraph.commands import check as command

    if lists_targets or not (options["models"] or options["targets"] or all_targets):
        if options["models"]:
            raise click.UsageError("--targets lists the targets; leave the model out.")
        return command.list_targets(as_json=options["as_json"])
    if not options["models"]:
        raise click.UsageError("Give a model; --targets lists the targets.")
    if bool(options["targets"]) == all_targets:
        raise click.UsageError(
            "Give one or more runtimes with --target, or --all-targets; splitgraph check --targets lists them."
        )
    if options["run"] and all_targets:
        raise click.UsageError("--run needs the runtimes named, each with --target.")
    if options["runtime_python"] and not options["run"]:
        raise click.UsageError("--runtime-python goes with --run.")
    from splitgraph.commands.many import read_call

    return command.check(read_call("check", options))


@program.command()
@parameters.model_argument("before")
@parameters.model_argument("after", required=False)
@click.option(
    "--in",
    "between",
    multiple=True,
    metavar="NAME[@VERSION]",
    shell_complete=parameters.target_names,
    help="Run BEFORE in this runtime and in another one, and say at which node they part; give it twice.",
)
@takes("runtime_python")
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
def verify(before: Path, after: Path | None, between: Sequence[str], pairs: bool, **options: Any) -> int:
    """Run BEFORE and AFTER on the same inputs, and compare them.

    \b
    splitgraph verify model.onnx model.opset18.onnx
    splitgraph verify model.onnx other.onnx --try N=4            (at this size)
    splitgraph verify models/ out/ --pairs                       (two folders)
    splitgraph verify model.onnx --in onnxruntime --in openvino  (one model in two runtimes)
    """
    if between and (after is not None or pairs or len(between) != 2):
        raise click.UsageError("Give one model, and two runtimes with --in.")
    if not between and after is None:
        raise click.UsageError("Missing argument 'AFTER'; for one model, give two runtimes with --in.")
    if options["runtime_python"] and not between:
        raise click.UsageError("--runtime-python goes with --in.")
    from splitgraph.commands.many import read_call
    from splitgraph.commands.verify import verify

    return verify(read_call("verify", options, model=before, after=after, targets=between), pairs=pairs)


@program.command()
@parameters.model_argument("before")
@parameters.model_argument("after")
@click.option("--all", "with_all", is_flag=True, help="Show every difference; long lists are cut otherwise.")
@takes("as_json")
@_run
def diff(**options: Any) -> int:
    """Say what differs between BEFORE and AFTER, node by node.

    Nodes are shown with their types; nothing is run.

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
@takes("output", "force")
@click.option("--svg", metavar="NODE", help="Draw one split as SVG instead: its name, or its location if names repeat.")
@click.option("--title", metavar="TEXT", help="The title of the page. Default: the name of the model.")
@click.option("--verify", is_flag=True, help="Verify the two models, and show what became of each part that differs.")
@takes("as_json", "quiet", *MANY_WITH_LIMIT)
@_run
def report(after: Path | None, **options: Any) -> int:
    """Draw MODEL, or what a rewrite changed, as a page.

    The page is one file for a browser, and needs no network. It draws the model around its splits.

    \b
    splitgraph report model.onnx                               (writes model.report.html)
    splitgraph report --before model.onnx --after model.opset18.onnx --verify -o report.html
    splitgraph report model.onnx --svg main/h.0/attn/Split -o split.svg
    splitgraph report models/ -o site/                         (a page for each, and site/index.html)
    """
    from splitgraph.commands.many import read_call
    from splitgraph.commands.report import report

    return report(read_call("report", options), after=after)


@program.command()
@click.argument("codes", nargs=-1, metavar="[CODE]...", shell_complete=parameters.codes)
@takes("as_json")
@_run
def explain(**options: Any) -> int:
    """Explain diagnostic codes, or list all of them.

    \b
    splitgraph explain SG203
    splitgraph explain SG203 SG302 --json
    """
    from splitgraph.commands import explain

    return explain.explain(**options)


@program.command()
@takes("as_json")
@_run
def doctor(as_json: bool) -> int:
    """Say what is installed, and which engines work here.

    \b
    splitgraph doctor
    splitgraph doctor --json      (for a bug report)

    Each engine runs a small model in a process of its own, which also says what it can run. The exit code is 0 if
    everything that is installed works, and 1 if a part is broken, missing or too old.
    """
    from splitgraph.commands import doctor

    return doctor.doctor(as_json=as_json)


@program.command("help")
@click.argument("name", required=False, metavar="[COMMAND]", shell_complete=parameters.command_names)
@click.pass_context
def show_help(context: click.Context, name: str | None) -> int:
    """Show the help of the program, or of a COMMAND."""
    of = context.find_root()
    if name is not None:
        command = program.get_command(of, name)
        if command is None:
            program.fail_unknown(of, name)
        of = click.Context(command, of, name)
    click.echo(of.get_help())
    return CLEAN
