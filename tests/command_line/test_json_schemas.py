"""Every document that a command prints is what the published JSON Schemas say, in success and in failure."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import onnx
import onnx.parser
import pytest
from json_schemas import wrong
from onnx import TensorProto, helper

import splitgraph
from splitgraph import open_models, rewrites
from splitgraph.verification.verification import Difference, Verification

from .program import NOT_RUN, ROOT, Run, split_model

COMMITTED = [
    "split13_equal.onnx",
    "split18_num_outputs.onnx",
    "split18_neither.onnx",
    "split_in_if.onnx",
    "split_in_loop.onnx",
    "split_in_function.onnx",
    "split_to_sequence11_each.onnx",
    "split_to_sequence11_scalar.onnx",
    "split13_computed.onnx",
    "string_split20.onnx",
    "variadic_split_rest.onnx",
    "interval_split.xml",
    "interval_split.bin",
]


def made(body: str, opset: int = 18) -> onnx.ModelProto:
    """The model of a graph in onnx's text form."""
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g {body}')


def with_imports(*opsets: int) -> onnx.ModelProto:
    model = split_model()
    del model.opset_import[:]
    model.opset_import.extend(helper.make_opsetid("", opset) for opset in opsets)
    return model


def with_optional_sequence() -> onnx.ModelProto:
    """Its value of an optional of a sequence has an element."""
    held = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, ["N", None]))
    value = helper.make_value_info("maybe", helper.make_optional_type_proto(held))
    node = helper.make_node("OptionalHasElement", ["maybe"], ["there"])
    there = helper.make_tensor_value_info("there", TensorProto.BOOL, [])
    graph = helper.make_graph([node], "g", [value], [there])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


NEGATIVE_LOGARITHM = "a, b = Split<axis = 1>(x) c = Abs(a) d = Neg(c) y = Log(d)"
MODELS = {
    "other.onnx": split_model(axis=-1),
    "swapped.onnx": made("(float[N, 6] x) => (float[N, 3] p0, float[N, 3] p1) { p1, p0 = Split<axis = 1>(x) }", 13),
    "renamed.onnx": made("(float[N, 6] x) => (float[N, 3] p0, float[N, 3] q) { p0, q = Split<axis = 1>(x) }", 13),
    "unknown.onnx": made("(float[?, ?] x) => (float[?, ?] a, float[?, ?] b) { a, b = Split<axis = 1>(x) }", 13),
    "no_rank.onnx": made("(float[] x) => (float[] y) { s = Shape(x) r = Reshape(x, s) y = mine.Unknown(r) }"),
    "optional.onnx": with_optional_sequence(),
    "wrong_axis.onnx": split_model(axis=5),
    "negative.onnx": split_model(11, split=[-1, 7]),
    "odd.onnx": split_model(shape=("N", 7)),
    "two_opsets.onnx": with_imports(11, 13),
    "no_such_opset.onnx": with_imports(-3),
    "future_opset.onnx": with_imports(1 << 40),
    "nan.onnx": made(f"(float[N, 4] x) => (float[N, 2] y) {{ {NEGATIVE_LOGARITHM} }}", 13),
}  # fmt: skip
MODELS["no_rank.onnx"].opset_import.append(helper.make_opsetid("mine", 1))
MODELS["no_rank.onnx"].graph.input[0].type.tensor_type.ClearField("shape")
FILES = {"empty.onnx": b"", "text.onnx": b"version 1\n", "truncated.onnx": split_model().SerializeToString()[:-9]}


@pytest.fixture
def models(folder: Path) -> Path:
    """The folder with these models, and with some of the committed ones."""
    for name in COMMITTED:
        shutil.copy(ROOT / "models" / name, name)
    for name, model in MODELS.items():
        Path(name).write_bytes(model.SerializeToString())
    for name, content in FILES.items():
        Path(name).write_bytes(content)
    return folder


# The arguments, and the exit code.
RESULTS = [
    *((f"infer {name} --all", int("neither" in name)) for name in COMMITTED if not name.endswith(".bin")),
    ("infer model.onnx", 0),
    ("infer split_in_loop.onnx --why turn/body/next", 0),
    ("infer unknown.onnx --all --why a", 0),
    ("infer no_rank.onnx --why y", 0),
    ("infer optional.onnx --why there", 0),
    ("infer wrong_axis.onnx --why p0", 1),
    ("infer interval_split.xml --why rest", 0),
    ("explain", 0),
    ("explain SG203 302", 0),
    ("infer model.onnx --bind N=4 -o typed.onnx", 0),
    ("infer unknown.onnx --all", 0),
    ("infer no_rank.onnx --all", 0),
    ("infer optional.onnx --all", 0),
    ("infer wrong_axis.onnx --all", 1),
    ("infer negative.onnx", 1),
    ("infer odd.onnx --all", 1),
    ("infer two_opsets.onnx", 1),
    ("infer no_such_opset.onnx", 1),
    ("infer future_opset.onnx", 1),
    ("upgrade model.onnx --opset 18", 0),
    ("upgrade model.onnx --opset 18 --no-verify", 0),
    ("upgrade model.onnx --opset 18 --engine reference --bind N=2 --samples 1", 0),
    ("upgrade split18_neither.onnx --opset 21", 0),
    ("upgrade model.onnx --opset 13", 0),
    ("downgrade model.onnx --opset 13 -o copy.onnx", 0),
    ("downgrade model.onnx --opset 18 --skip-newer", 0),
    ("downgrade model.onnx --opset 18 --skip-newer -o older.onnx", 0),
    ("convert renamed.onnx --to split", 0),
    ("upgrade model.onnx --opset 18 --dry-run", 0),
    ("upgrade model.onnx --opset 13 --dry-run", 0),
    ("upgrade model.onnx --opset 18 --diff", 0),
    ("downgrade split18_num_outputs.onnx --opset 11", 0),
    ("upgrade nan.onnx --opset 18", 0),
    ("convert model.onnx --to variadic-split", 0),
    ("convert model.onnx --to slice", 0),
    ("convert model.onnx --opset 18 --to split --explicit-lengths", 0),
    ("convert split_to_sequence11_each.onnx --to split", 0),
    ("convert interval_split.xml --to variadic-split --no-verify", 0),
    ("verify model.onnx other.onnx", 0),
    ("verify model.onnx swapped.onnx", 1),
    ("verify model.onnx renamed.onnx", 1),
    ("verify model.onnx wrong_axis.onnx", 1),
    ("verify nan.onnx nan.onnx", 0),
    ("diff model.onnx model.onnx", 0),
    ("diff model.onnx other.onnx", 1),
    ("diff model.onnx swapped.onnx", 1),
    ("diff model.onnx wrong_axis.onnx --all", 1),
    ("diff two_opsets.onnx no_such_opset.onnx", 1),
    ("diff optional.onnx no_rank.onnx", 1),
    ("diff split_in_if.onnx split_in_loop.onnx", 1),
    ("diff split_in_function.onnx variadic_split_rest.onnx", 1),
    ("diff interval_split.xml interval_split.xml", 0),
]
FAILURES = [
    *((f"infer {name}", 2) for name in (*FILES, "missing.onnx")),
    ("infer", 2),
    ("infer model.onnx --frobnicate", 2),
    ("infer model.onnx --bind Q=4 --all", 2),
    ("infer model.onnx --why q", 2),
    ("explain SG203 SG999", 2),
    ("explain --all", 2),
    ("infer model.onnx --input-shape x=-1", 2),
    ("infer model.onnx -o other.onnx", 2),
    *((f"upgrade {name} --opset 18", 2) for name in (*FILES, "missing.onnx")),
    ("upgrade model.onnx", 2),
    ("upgrade model.onnx --opset eighteen", 2),
    ("upgrade model.onnx --opset 18 -o other.onnx", 2),
    ("upgrade interval_split.xml --opset 18", 2),
    ("upgrade model.onnx --opset 11", 1),
    ("upgrade model.onnx --opset 999", 2),
    ("upgrade wrong_axis.onnx --opset 18", 1),
    ("upgrade no_such_opset.onnx --opset 18", 1),
    ("downgrade string_split20.onnx --opset 18", 1),
    ("convert wrong_axis.onnx --to split", 1),
    ("convert model.onnx", 2),
    ("convert model.onnx --to slices", 2),
    *((f"verify model.onnx {name}", 2) for name in (*FILES, "missing.onnx")),
    *((f"diff model.onnx {name}", 2) for name in (*FILES, "missing.onnx")),
    ("diff model.onnx", 2),
    ("diff model.onnx interval_split.xml", 2),
    ("diff model.onnx other.onnx --samples 2", 2),
    ("verify model.onnx", 2),
    ("verify model.onnx model.onnx --samples 0", 2),
    ("verify model.onnx model.onnx --bind Q=4", 2),
]


def schema_of(command: str) -> str:
    return {"infer": "infer", "verify": "verify", "diff": "diff", "explain": "explain"}.get(command, "rewrite")


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(("typed", "code"), RESULTS)
def test_a_result_is_what_its_schema_says(typed: str, code: int, run: Run, models: Path) -> None:
    document = printed(typed, code, run)
    assert wrong(document, "failure") != []


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(("typed", "code"), FAILURES)
def test_a_failure_is_what_its_schemas_say(typed: str, code: int, run: Run, models: Path) -> None:
    document = printed(typed, code, run)
    assert wrong(document, "failure") == []


def printed(typed: str, code: int, run: Run) -> dict:
    """The document that a call prints, which is that of its command."""
    found, out, _ = run(*typed.split(), "--json")
    document = json.loads(out)
    assert (found, next(iter(document.items()))) == (code, ("splitgraph", splitgraph.__version__))
    assert wrong(document, schema_of(typed.split()[0])) == []
    return document


OUTCOMES = [
    (Verification("different", "onnxruntime", 1, float("inf"), float("nan"), Difference("p0", 0, "1 is not 2"), ()), 1),
    (Verification("different", "onnxruntime", 0, None, None, Difference("", None, "refused"), ()), 1),
    (NOT_RUN, 3),
]


@pytest.mark.parametrize(("outcome", "code"), OUTCOMES)
def test_what_verification_decides_is_what_the_schemas_say(
    outcome: Verification, code: int, run: Run, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_models, "compared", lambda before, after, running: outcome)
    monkeypatch.setattr(rewrites, "verify_rewrite", lambda before, rewrite, running, **options: outcome)
    printed("verify model.onnx other.onnx", code, run)
    document = printed("upgrade model.onnx --opset 18 --verify", code, run)
    assert (document["ok"], document["output"], document["verified"]) == (False, None, False)
    # Here there is a result that was not written, which a failure does not have.
    assert wrong(document, "failure") != []
