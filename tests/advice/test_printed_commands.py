"""What `--help` and the documents tell to type works: examples of a help text are run, options of a document exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

from splitgraph.cli import program

from .advised_models import ROOT, model, node
from .follow import typed_in
from .printed_advice import COMMANDS, Advice, printed_advice

_EXAMPLE = re.compile(r"^ *splitgraph (.*?)(?:  +\(.*)?$", re.MULTILINE)
_SPAN = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
# Of these commands the code is of what they show, and OpenCV and MNN are not installed here.
_SHOWING = ("check", "diff", "verify", "explain", "doctor", "infer")
_SLOW = ("/", "--in ", "--to ", "--run", "--verify", "--all-targets", "doctor", "640")


def examples() -> Iterator[str]:
    """Yield the examples of every help text, without what is said about each."""
    for command in COMMANDS.values():
        yield from (found[1].strip() for found in _EXAMPLE.finditer(command.help or ""))


def exported(opset: int, shape: list[int | str]) -> onnx.ModelProto:
    """Return a model with all that the examples name: an input images, an output logits, and a Split."""
    nodes = [
        node("Split", ["images"], ["left", "right"], name="h.0/attn/Split", axis=3),
        node("Concat", ["left", "right"], ["logits"], name="concat", axis=3),
    ]
    if opset >= 18:
        nodes[0].attribute.append(onnx.helper.make_attribute("num_outputs", 2))
    return model(nodes, [("images", shape)], [("logits", None)], opset=opset)


def of_tokens() -> onnx.ModelProto:
    """Return a model with a number that can mean the number of tokens."""
    nodes = [node("Relu", ["tokens"], ["y"]), node("ConstantOfShape", ["seven"], ["z"], name="zeros")]
    seven = np.array([7], np.int64)
    return model(nodes, [("tokens", [1, 7])], [("y", [1, 7]), ("z", [7])], {"seven": seven})


def write_named_files(example: str, folder: Path) -> None:
    """Write the files that an example names, and no results."""
    verb = example.partition(" ")[0]
    shape: list[int | str] = ["N" if "--try N" in example else "batch", 3, 8, 8]
    if verb == "reshape":
        shape[0] = 1
    made = of_tokens() if "tokens" in example else exported(13, shape)
    (folder / "models").mkdir()
    for name in ("model.onnx", "export-1.onnx", "models/a.onnx"):
        onnx.save(made, folder / name)
    if verb in ("verify", "diff", "report"):
        (folder / "out").mkdir()
        for name in ("other.onnx", "export-2.onnx", "model.opset18.onnx", "out/a.onnx"):
            onnx.save(exported(18, shape), folder / name)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    "example",
    [pytest.param(each, marks=[pytest.mark.slow] * any(map(each.__contains__, _SLOW))) for each in examples()],
)
def test_the_examples_of_help_work(example: str, tmp_path: Path) -> None:
    write_named_files(example, tmp_path)
    code, text = typed_in(tmp_path, example)
    assert code in ((0, 1, 3) if example.startswith(_SHOWING) else (0,)), text


def spans(page: Path) -> Iterator[str]:
    """Yield the code of a page."""
    yield from (found.group().strip("`") for found in _SPAN.finditer(page.read_text(encoding="utf-8")))


def unknown_options(advice: Advice) -> list[str]:
    """Return the options that a command does not have, or no command has."""
    verbs = [COMMANDS[advice.verb]] if advice.verb else list(COMMANDS.values())
    known = {
        spelled for command in verbs for param in command.params for spelled in (*param.opts, *param.secondary_opts)
    }
    known |= {spelled for param in program.params for spelled in param.opts}
    return [word for word in advice.words if word.startswith("-") and word not in known | {"--help"}]


DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_documents_name_options_that_exist() -> None:
    wrong = [
        f"{page.relative_to(ROOT)}: {advice}"
        for page in DOCUMENTS
        for span in spans(page)
        for advice in printed_advice(span)
        if unknown_options(advice)
    ]
    assert wrong == []


def test_an_option_that_does_not_exist_is_found() -> None:
    texts = ["infer --batch 4", "splitgraph reshape model.onnx --try N=4", "use `--frobnicate`", "verify --bind N=4"]
    wrong = [str(advice) for text in texts for advice in printed_advice(text) if unknown_options(advice)]
    assert wrong == ["infer --batch 4", "reshape model.onnx --try", "--frobnicate"]
