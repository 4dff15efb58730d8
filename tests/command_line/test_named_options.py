"""Options that texts name exist, on the very command that a text speaks of."""

from __future__ import annotations

import ast
import re
import runpy
import shlex
from collections.abc import Collection, Iterator
from pathlib import Path

import click
import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from onnx import helper

import splitgraph
from splitgraph.cli import program
from splitgraph.findings.diagnostics import CODES

from .program import ROOT, Run, split_model

OPTIONS: dict[str, set[str]] = {
    name: {spelled for param in command.params for spelled in (*param.opts, *param.secondary_opts)} | {"--help"}
    for name, command in program.commands.items()
}
ANYWHERE = {spelled for param in program.params for spelled in param.opts}.union(*OPTIONS.values())
REWRITING = ("upgrade", "downgrade", "convert")
VERIFYING = (*REWRITING, "verify")
WRITING = ("infer", *REWRITING)
ALL = tuple(OPTIONS)

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
COMMAND = re.compile(rf"(?<![\w-])(?:{'|'.join(OPTIONS)})(?![\w-])")
# What ends one statement and begins another.
END = re.compile(r"[;()|\n]|[.,:](?=\s|$)")


def misnamed(text: str, said_of: Collection[str] | None) -> list[tuple[str, str]]:
    """The options that a text names and that a command lacks, with the command.

    said_of: the commands that the text speaks of, None where it speaks of any. A command that stands before an option
    in one statement ("convert --to split") is the one that is meant there.
    """
    wrong = []
    for statement in END.split(text.replace("`", "")):
        for option in OPTION.finditer(statement):
            named = COMMAND.findall(statement[: option.start()])
            meant = named[-1:] if named else said_of
            if meant is None:
                wrong += [("any", option[0])] * (option[0] not in ANYWHERE)
            else:
                wrong += [(command, option[0]) for command in meant if option[0] not in OPTIONS[command]]
    return wrong


@pytest.mark.parametrize(
    ("text", "said_of", "wrong"),
    [
        (
            "Give sizes with --bind.",
            ALL,
            [
                ("check", "--bind"),
                ("diff", "--bind"),
                ("report", "--bind"),
                ("explain", "--bind"),
                ("doctor", "--bind"),
                ("help", "--bind"),
            ],
        ),
        ("Give sizes with --bind.", ["downgrade"], []),
        ("Write lengths (convert --to split --explicit-lengths).", ["infer"], []),
        ("Run `infer --samples 3`", None, [("infer", "--samples")]),
        ("Run convert, or pass --force", ["explain"], [("explain", "--force")]),
        ("splitgraph infer model.onnx --bind N=4 --seed 3", None, [("infer", "--seed")]),
        ("pass --frobnicate", None, [("any", "--frobnicate")]),
        ("--no-verify skips --json", ["upgrade"], []),
    ],
)
def test_what_is_misnamed(text: str, said_of: Collection[str] | None, wrong: list[tuple[str, str]]) -> None:
    assert misnamed(text, said_of) == wrong


@pytest.mark.parametrize("command", [*REWRITING, "verify"])
def test_what_verifies_takes_the_options_of_a_verification(command: str) -> None:
    assert {"--bind", "--samples", "--seed", "--engine", "--rtol", "--atol", "--timeout"} <= OPTIONS[command]


@pytest.mark.parametrize("name", OPTIONS)
def test_help_texts(name: str, run: Run) -> None:
    command = program.commands[name]
    texts = [command.help, command.epilog, *(param.help for param in command.params if isinstance(param, click.Option))]
    assert [found for text in texts for found in misnamed(text or "", [name])] == []
    assert misnamed(run(name, "--help")[1], [name]) == []


# The commands that give the codes which begin so.
GIVEN_BY = {
    "SG1": WRITING,
    "SG2": ["infer"],
    "SG3": ["infer"],
    "SG4": REWRITING,
    "SG5": VERIFYING,
    "SG6": (*VERIFYING, "infer", "check"),
    "SG7": ["check"],
    "SG8": ["doctor"],
}


@pytest.mark.parametrize("code", CODES)
def test_texts_of_diagnostics(code: str) -> None:
    info = CODES[code]
    for text in (info.title, info.meaning, info.help):
        assert misnamed(text, GIVEN_BY[code[:3]]) == []


# The commands that show the messages of a part of the code; elsewhere a message may be of any command.
SHOWN_BY = {
    "conversion": REWRITING,
    "execution": VERIFYING,
    "formats": WRITING,
    "inference": ["infer"],
    "variants": REWRITING,
}
PACKAGE = Path(splitgraph.__file__).parent


def messages(path: Path) -> Iterator[str]:
    """The texts in a module that are no docstrings, with ... for what is put into them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "..." for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts | docstrings:
            yield node.value


def test_messages_in_the_code() -> None:
    found = [
        (path.relative_to(PACKAGE).as_posix(), wrong)
        for path in sorted(PACKAGE.rglob("*.py"))
        # The programs of runtimes name the options of these.
        if path.parent.name != "programs"
        for text in messages(path)
        for wrong in misnamed(text, SHOWN_BY.get(path.relative_to(PACKAGE).parts[0]))
    ]
    assert found == []


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_pages(page: Path) -> None:
    # A paragraph is one text, however its lines are broken; a line of an example is one, too.
    text = re.sub(r"(?<=[^\n`])\n(?=[^\n$|#`-])", " ", page.read_text(encoding="utf-8"))
    assert misnamed(text, None) == []


WRONG_CALLS = [
    "infer",
    "infer model.onnx -o model.onnx",
    "infer model.onnx -o there.onnx",
    "infer weighted.onnx -o weights.bin --force",
    "infer model.onnx --bind N",
    "infer model.onnx --bind Q=4",
    "infer model.onnx --bind ?=4",
    "infer model.onnx --bind N=4,M=5",
    "infer model.onnx --input-shape x=-1,3",
    "infer model.onnx --input-shape z=1,3",
    "infer missing.onnx",
    "infer defaults.onnx",
    "upgrade model.onnx",
    "upgrade model.onnx --opset 11",
    "upgrade model.onnx --opset 18 --in-place -o new.onnx",
    "upgrade model.onnx --opset 18 -o model.onnx",
    "upgrade model.onnx --opset 18 -o there.onnx",
    "upgrade weighted.onnx --opset 18 --no-verify -o weights.bin --force",
    "upgrade model.onnx --opset 18 --bind Q=4",
    "upgrade model.onnx --opset 18 --bind ?=4",
    "upgrade model.onnx --opset 18 --engine reference --timeout 0.001",
    "upgrade model.onnx --opset 18 --binds N=4",
    "downgrade model.onnx --opset 18",
    "downgrade model.onnx --opset 11 --ir-version 2",
    "downgrade defaults.onnx --opset 11",
    "downgrade uneven.onnx --opset 11",
    "downgrade uneven.onnx --opset 1 --bind N=4",
    "convert model.onnx",
    "convert model.onnx --opset 18 --explicit-lengths",
    "convert model.onnx --to slices",
    "convert model.onnx --to split --opsets 18",
    "verify model.onnx",
    "verify model.onnx there.onnx",
    "verify model.onnx model.onnx --engine reference --timeout 0.001",
    "verify model.onnx model.onnx --bind Q=4",
    "verify model.onnx model.onnx --samples 0",
    "verify model.onnx model.onnx --sample 1",
    "report model.onnx --svg",
    "report -o new.html",
    "report model.onnx --svg nothing -o new.svg",
    "report model.onnx -o there.onnx",
    "report --before model.onnx -o new.html",
    "explain SG999",
    "explain --jsn",
]


def weighted_model() -> onnx.ModelProto:
    """split_model after an addition of weights."""
    model = split_model()
    model.graph.node.insert(0, helper.make_node("Add", ["x", "w"], ["sum"]))
    model.graph.node[1].input[0] = "sum"
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((1, 6), np.float32), "w"))
    return model


def model_with_a_default() -> onnx.ModelProto:
    """split_model with lengths that a caller may replace."""
    model = split_model()
    model.graph.node[0].input.append("lengths")
    model.graph.input.append(helper.make_tensor_value_info("lengths", onnx.TensorProto.INT64, [2]))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([3, 3]), "lengths"))
    return model


@pytest.fixture
def models(folder: Path) -> Path:
    """The folder with these models, and with a file of another kind."""
    Path("there.onnx").write_text("no model")
    onnx.save(split_model(18, ("N", "M"), num_outputs=2), "uneven.onnx")
    onnx.save(model_with_a_default(), "defaults.onnx")
    onnx.save(weighted_model(), "weighted.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    return folder


@pytest.mark.parametrize("typed", WRONG_CALLS)
def test_answers_to_mistakes(typed: str, run: Run, models: Path) -> None:
    words = typed.split()
    told = "\n".join(("", *run(*words)[1:], *run(*words, "--json")[1:]))
    # What was typed may be said back.
    wrong = [found for found in misnamed(told, words[:1]) if found[1] not in [*words, "--json"]]
    assert wrong == []


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("infer model.onnx -o there.onnx", "--force"),
        ("infer model.onnx --bind ?=4", "--input-shape"),
        ("infer defaults.onnx", "--assume-defaults"),
        ("upgrade model.onnx --opset 18 -o model.onnx", "--in-place"),
        ("upgrade model.onnx --opset 18 --engine reference --timeout 0.001", "--timeout"),
        ("upgrade model.onnx --opset 18 --binds N=4", "--bind"),
        ("downgrade model.onnx --opset 18", "--opset"),
        ("convert model.onnx", "--to"),
        ("verify model.onnx model.onnx --engine reference --timeout 0.001", "--timeout"),
    ],
)
def test_answers_that_name_an_option(typed: str, named: str, run: Run, models: Path) -> None:
    assert typed in WRONG_CALLS
    words = typed.split()
    assert named in OPTION.findall("\n".join((*run(*words)[1:], *run(*words, "--json")[1:])))


MORE_EXAMPLES: dict[str, str] = runpy.run_path(str(ROOT / "docs" / "reference_examples.py"))["EXAMPLES"]


def examples_in_help(command: click.Command) -> list[str]:
    """The examples in the help of a command."""
    lines = [line.strip() for line in (command.help or "").splitlines()]
    return [line for line in lines if line.startswith(f"splitgraph {command.name}")]


def all_examples(command: click.Command) -> list[str]:
    """The examples in the help of a command, and those that only the reference has."""
    return [*examples_in_help(command), *MORE_EXAMPLES.get(str(command.name), "").splitlines()]


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_has_an_example(name: str) -> None:
    command = program.commands[name]
    shown = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", "\n".join(all_examples(command))))
    options = [param for param in command.params if isinstance(param, click.Option)]
    assert [param.opts for param in options if shown.isdisjoint((*param.opts, *param.secondary_opts))] == []
    assert [line for line in all_examples(command) if len(line) > 98] == []


@pytest.mark.parametrize("name", OPTIONS)
def test_the_help_has_few_examples(name: str) -> None:
    assert len(examples_in_help(program.commands[name])) <= 4
    assert len(set(all_examples(program.commands[name]))) == len(all_examples(program.commands[name]))


@pytest.mark.parametrize(
    ("name", "example"), [(name, text) for name in OPTIONS for text in all_examples(program.commands[name])]
)
def test_an_example_is_a_call(name: str, example: str) -> None:
    # What follows two spaces is said about the example.
    words = shlex.split(re.sub(r"  +\(.*", "", example))
    assert words[:2] == ["splitgraph", name]
    program.commands[name].make_context(name, words[2:])


def test_every_example_is_of_a_command() -> None:
    assert MORE_EXAMPLES.keys() <= OPTIONS.keys()
