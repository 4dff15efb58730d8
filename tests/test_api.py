"""The contract of the Python API: names, signatures, kinds of model in and out, nothing of the caller's changed."""

from __future__ import annotations

import inspect
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import onnx_graphsurgeon as gs
import onnx_ir
import pytest

import splitgraph
from splitgraph.options import Running

MODELS = Path(__file__).resolve().parent.parent / "models"
UNEVEN = MODELS / "split18_num_outputs.onnx"
NEITHER = MODELS / "split18_neither.onnx"
STRINGS = MODELS / "string_split20.onnx"

# How a rewrite is verified, where `verify` asks for it.
RUNNING = {
    "bind": None,
    "try_sizes": None,
    "inputs": None,
    "custom_ops": (),
    "providers": (),
    "samples": 3,
    "seed": 0,
    "engine": "auto",
    "rtol": None,
    "atol": None,
    "timeout": None,
}
SIGNATURES = {
    "infer": {
        "model": inspect.Parameter.empty,
        "bind": None,
        "input_shapes": None,
        "empty_chunks": "clamp",
        "assume_defaults": False,
        "accept": (),
    },
    "upgrade": {
        "model": inspect.Parameter.empty,
        "opset": inspect.Parameter.empty,
        "ir_version": None,
        "accept": (),
        "assume_defaults": False,
        "read_by_form": False,
        "fix_defaults": False,
        "verify": False,
        **RUNNING,
    },
    "downgrade": {
        "model": inspect.Parameter.empty,
        "opset": inspect.Parameter.empty,
        "ir_version": None,
        "accept": (),
        "assume_defaults": False,
        "read_by_form": False,
        "fix_defaults": False,
        "verify": False,
        **RUNNING,
    },
    "convert": {
        "model": inspect.Parameter.empty,
        "to": None,
        "opset": None,
        "target": None,
        "explicit_lengths": False,
        "ir_version": None,
        "accept": (),
        "assume_defaults": False,
        "read_by_form": False,
        "fix_defaults": False,
        "fold": False,
        "standard": False,
        "drop_zipmap": False,
        "verify": False,
        **RUNNING,
        "runtime_python": (),
    },
    "check": {
        "model": inspect.Parameter.empty,
        "target": inspect.Parameter.empty,
        "run": False,
        "runtime_python": (),
        "samples": 3,
        "seed": 0,
        "try_sizes": None,
        "inputs": None,
        "accept": (),
        "assume_defaults": False,
    },
    "targets": {},
    "find_target": {"name": inspect.Parameter.empty},
    "blockers": {
        "model": inspect.Parameter.empty,
        "opset": inspect.Parameter.empty,
        "accept": (),
        "assume_defaults": False,
        "read_by_form": False,
        "fix_defaults": False,
    },
    "report": {
        "model": inspect.Parameter.empty,
        "output": None,
        "before": None,
        "svg": None,
        "title": None,
        "verify": False,
    },
    "verify": {
        "before": inspect.Parameter.empty,
        "after": None,
        "between": (),
        "samples": 3,
        "seed": 0,
        "bind": None,
        "try_sizes": None,
        "inputs": None,
        "custom_ops": (),
        "providers": (),
        "engine": "auto",
        "rtol": 1e-5,
        "atol": 1e-6,
        "timeout": None,
        "runtime_python": (),
    },
    "diff": {"before": inspect.Parameter.empty, "after": inspect.Parameter.empty},
}


@pytest.mark.parametrize(("verb", "parameters"), SIGNATURES.items(), ids=SIGNATURES)
def test_signature(verb: str, parameters: dict[str, Any]) -> None:
    found = inspect.signature(getattr(splitgraph, verb)).parameters
    assert {name: parameter.default for name, parameter in found.items()} == parameters


def test_every_public_name_is_there() -> None:
    assert dir(splitgraph) == sorted(["__version__", *splitgraph.__all__])
    for name in splitgraph.__all__:
        assert getattr(splitgraph, name).__doc__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'unsplit'"):
        _ = splitgraph.unsplit


def test_importing_costs_no_engine_and_no_onnx() -> None:
    program = "import sys, splitgraph; print([m for m in ('onnx', 'numpy', 'rich', 'onnxruntime') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# OpenSSL comes with hashlib: a tenth of the memory that inferring and converting a small model take.
HEAVY = ("onnxruntime", "openvino", "onnx_graphsurgeon", "rich", "onnx.reference", "sympy", "hashlib", "tempfile")


@pytest.mark.parametrize("call", ["infer(sys.argv[1])", "upgrade(sys.argv[1], 20, verify=False)"])
def test_inferring_and_converting_import_nothing_heavy(call: str) -> None:
    program = f"import sys, splitgraph; splitgraph.{call}; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program, str(UNEVEN)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Refusals ------------------------------------------------------------------------------------------------------------

REFUSED = {
    "a model of no known kind": lambda: splitgraph.infer(42),
    "bytes": lambda: splitgraph.infer(b"onnx"),
    "a missing file": lambda: splitgraph.infer("nowhere.onnx"),
    "an IR file": lambda: splitgraph.infer("model.xml"),
    "a symbol that the model has not": lambda: splitgraph.infer(UNEVEN, bind={"nothing": 3}),
    "a negative dimension": lambda: splitgraph.infer(UNEVEN, bind={"batch": -1}),
    "an input that the model has not": lambda: splitgraph.infer(UNEVEN, input_shapes={"nothing": [1]}),
    "a shape that is no shape": lambda: splitgraph.infer(UNEVEN, input_shapes={"x": ["1 +", 7, 5]}),
    "empty_chunks that does not exist": lambda: splitgraph.infer(UNEVEN, empty_chunks="maybe"),  # type: ignore[arg-type]
    "an opset that does not exist": lambda: splitgraph.upgrade(UNEVEN, 1000),
    "an upgrade that goes down": lambda: splitgraph.upgrade(UNEVEN, 11),
    "a downgrade that goes up": lambda: splitgraph.downgrade(UNEVEN, 21),
    "a form that does not exist": lambda: splitgraph.convert(UNEVEN, "slices"),  # type: ignore[arg-type]
    "samples of a verification": lambda: splitgraph.upgrade(UNEVEN, 20, verify=True, samples=0),
    "a symbol of a verification": lambda: splitgraph.downgrade(UNEVEN, 13, verify=True, try_sizes={"nothing": 3}),
    "an engine of a verification": lambda: splitgraph.convert(UNEVEN, "split", verify=True, engine="magic"),  # type: ignore[arg-type]
    "an engine that does not exist": lambda: splitgraph.verify(UNEVEN, UNEVEN, engine="magic"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED)
def test_refusal_is_a_clear_error(refused: Any) -> None:
    with pytest.raises(splitgraph.SplitgraphError) as error:
        refused()
    assert len(str(error.value)) > 10
    assert "\n" not in str(error.value)


def test_a_blocked_conversion_carries_every_blocker_and_changes_nothing() -> None:
    model = onnx.load(STRINGS)
    before = model.SerializeToString()
    with pytest.raises(splitgraph.ConversionError) as error:
        splitgraph.downgrade(model, 13)
    assert {found.code for found in error.value.diagnostics} == {"SG404"}
    assert len(error.value.diagnostics) == 2
    assert all(found.location and found.help for found in error.value.diagnostics)
    assert model.SerializeToString() == before


# Kinds of model ------------------------------------------------------------------------------------------------------


def as_proto(path: Path) -> onnx.ModelProto:
    return onnx.load(path)


def as_graph(path: Path) -> gs.Graph:
    return gs.import_onnx(onnx.load(path))


KINDS = [
    (as_proto, onnx.ModelProto),
    (str, onnx.ModelProto),
    (Path, onnx.ModelProto),
    (as_graph, gs.Graph),
    (onnx_ir.load, onnx_ir.Model),
]


@pytest.mark.parametrize(("source", "kind"), KINDS)
def test_what_comes_back_is_of_the_kind_that_went_in(source: Any, kind: type) -> None:
    assert isinstance(splitgraph.infer(source(UNEVEN)).model, kind)
    assert isinstance(splitgraph.downgrade(source(UNEVEN), 13).model, kind)
    assert isinstance(splitgraph.convert(source(UNEVEN), "variadic-split").model, kind)


def test_the_callers_model_is_never_changed() -> None:
    model = onnx.load(UNEVEN)
    before = model.SerializeToString()
    splitgraph.infer(model)
    splitgraph.downgrade(model, 11)
    splitgraph.convert(model, "split", explicit_lengths=True)
    assert model.SerializeToString() == before


def test_infer_reports_a_wrong_model_and_does_not_raise() -> None:
    model = onnx.load(NEITHER)
    model.graph.node[0].input[0] = "nothing"
    analysis = splitgraph.infer(model)
    assert not analysis.ok
    assert [(found.code, found.severity, found.location) for found in analysis.diagnostics] == [
        ("SG105", "error", "main/split"),
        ("SG207", "error", "main/split"),
    ]


def test_a_repair_is_reported() -> None:
    rewrite = splitgraph.upgrade(NEITHER, 18)
    assert [found.code for found in rewrite.diagnostics] == ["SG401"]
    assert splitgraph.infer(rewrite.model).ok


def test_reports_have_every_field_of_the_contract() -> None:
    analysis = splitgraph.infer(UNEVEN)
    split = analysis.splits[1]
    assert (split.name, split.op, split.domain, split.since_version) == ("split_length", "Split", "", 18)
    assert (split.location, split.axis) == ("main/split_length", 2)
    assert (split.input.kind, split.input.dtype) == ("tensor", "float32")
    assert [str(length) for length in split.lengths] == ["(length + 1)//2", "length//2"]
    assert [str(value.shape[2]) for _, value in split.outputs if value.shape] == ["(length + 1)//2", "length//2"]
    assert analysis.symbols == {"batch": (0, None), "length": (0, None)}
    assert set(analysis.types) >= {"x", *(name for name, _ in split.outputs)}


def test_inputs_and_outputs_are_in_the_order_of_the_model() -> None:
    text = """<ir_version: 8, opset_import: ["": 18]>
    g (float[N, 4] z, float[4] a, float[4] default = {1, 2, 3, 4}) => (float[N, 4] s, r) {
        s = Add(z, a)
        r = Mul(s, default)
    }"""
    analysis = splitgraph.infer(onnx.parser.parse_model(text))
    assert {name: str(value) for name, value in analysis.inputs.items()} == {"z": "float32[N, 4]", "a": "float32[4]"}
    assert [(name, str(value)) for name, value in analysis.outputs.items()] == [
        ("s", "float32[N, 4]"),
        ("r", "float32[N, 4]"),
    ]


def test_inputs_and_outputs_of_an_ir() -> None:
    analysis = splitgraph.infer(MODELS / "interval_split.xml")
    assert list(analysis.inputs) == ["hidden"]
    assert list(analysis.outputs) == ["first", "second", "rest", "tail"]


def test_the_model_as_onnx(tmp_path: Path) -> None:
    """Of a path without a cast, of other libraries as a ModelProto; never of an IR."""
    for source in (UNEVEN, onnx_ir.load(UNEVEN), gs.import_onnx(onnx.load(UNEVEN))):
        assert isinstance(splitgraph.infer(source).onnx_model, onnx.ModelProto)
        assert splitgraph.downgrade(source, 13).onnx_model.opset_import[0].version == 13
    with pytest.raises(splitgraph.ModelError, match="OpenVINO IR"):
        _ = splitgraph.infer(MODELS / "interval_split.xml").onnx_model


# Targets --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "key"), [("openvino@2023.3", "openvino@2023.3.0"), ("opencv@4", None), ("openvino", None), ("mnn", None)]
)
def test_targets_are_found_as_check_takes_them(name: str, key: str | None) -> None:
    found = splitgraph.find_target(name)
    assert found.key == key or (key is None and found.name == name.partition("@")[0])
    assert found in splitgraph.targets().values()


@pytest.mark.parametrize("name", ["openvin", "openvino@1999", "", 5, None])
def test_other_targets_are_refused(name: Any) -> None:
    with pytest.raises(splitgraph.SplitgraphError):
        splitgraph.find_target(name)


def test_findings_of_several_targets_say_whose_they_are() -> None:
    found = splitgraph.check(UNEVEN, ["mnn", "openvino@2023.3", "onnxruntime"])
    assert {finding.target for finding in found} == {"mnn@3.6.1", "openvino@2023.3.0"}
    assert {(finding.node, finding.operator) for finding in found if finding.severity == "error"} == {
        ("split_channels", "Split-18"),
        ("split_length", "Split-18"),
    }
    # What is wrong with the model itself is of no target, and reported once.
    wrong = [finding for finding in splitgraph.check(NEITHER, ["mnn", "tract"]) if finding.code == "SG207"]
    assert [(finding.target, finding.node) for finding in wrong] == [(None, "split")]


# Pages ----------------------------------------------------------------------------------------------------------------


def test_report_returns_or_writes_the_page_of_the_command(tmp_path: Path) -> None:
    from splitgraph.cli import main

    for arguments, options in {
        (str(UNEVEN),): {},
        (str(UNEVEN), "--title", "Mine"): {"title": "Mine"},
        (str(UNEVEN), "--svg", "split_length"): {"svg": "split_length"},
    }.items():
        written, typed = tmp_path / "api.html", tmp_path / "typed.html"
        page = splitgraph.report(UNEVEN, written, **options)  # type: ignore[arg-type]
        typed = typed.with_suffix(".svg" if "svg" in options else ".html")
        assert main(["report", *arguments, "-o", str(typed), "--force", "--quiet"]) == 0
        assert page == written.read_text("utf-8") == typed.read_text("utf-8")
        assert splitgraph.report(UNEVEN, **options) == page  # type: ignore[arg-type]
    splitgraph.report(UNEVEN, tmp_path)
    assert (tmp_path / "split18_num_outputs.report.html").exists()


def test_report_of_two_models_and_of_models_in_memory() -> None:
    before = onnx.load(UNEVEN)
    page = splitgraph.report(splitgraph.downgrade(before, 13).model, before=before, verify=True)
    assert page.startswith("<!DOCTYPE html>")
    assert "model in memory" in splitgraph.report(before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"verify": True}, "verify compares two models"),
        ({"before": UNEVEN, "svg": "s"}, "svg draws a split of one model"),
        ({"output": "page.onnx"}, "a name for a model"),
        ({"output": "nowhere/page.html"}, "nowhere"),
        ({"svg": "nothing"}, "nothing"),
    ],
)
def test_wrong_reports_are_refused(
    options: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(splitgraph.SplitgraphError, match=message):
        splitgraph.report(UNEVEN, **options)
    assert list(tmp_path.iterdir()) == []


def test_rewrite_has_every_field_of_the_contract() -> None:
    rewrite = splitgraph.downgrade(UNEVEN, 13, verify=True)
    assert [(change.before, change.after) for change in rewrite.changes] == [("Split-18", "Split-13")] * 2
    assert all(change.location and change.why for change in rewrite.changes)
    assert rewrite.verification is not None
    assert rewrite.verification.verdict == "equal"
    assert (dict(rewrite.from_opset), dict(rewrite.to_opset)) == ({"": 18}, {"": 13})


REWRITES = {
    "upgrade": lambda **options: splitgraph.upgrade(MODELS / "glu.opset13.onnx", 18, verify=True, **options),
    "downgrade": lambda **options: splitgraph.downgrade(UNEVEN, 13, verify=True, **options),
    "convert": lambda **options: splitgraph.convert(UNEVEN, "variadic-split", verify=True, **options),
}


@pytest.mark.parametrize("rewrite", REWRITES.values(), ids=REWRITES)
def test_a_rewrite_is_verified_as_its_arguments_say(rewrite: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import splitgraph.verification

    seen: dict[str, Any] = {}

    def verify_models(before: object, after: object, running: Running, **options: Any) -> splitgraph.Verification:
        seen.update(options | running._asdict())
        return splitgraph.Verification("equal", "reference", 1, 0.0, 0.0, None, ())

    monkeypatch.setattr(splitgraph.verification, "verify_models", verify_models)
    given = {"samples": 5, "seed": 7, "engine": "reference", "atol": 0.5, "timeout": 9}
    given |= {"inputs": {"x": None}, "custom_ops": ("libfoo.so",), "providers": ("cuda",)}
    rewrite(try_sizes={"batch": 2}, **given)
    # The result is inferred once, for the check that it has no new error and for its verification.
    assert seen.pop("analysis").ok
    found = {
        "verify": True,
        "try_sizes": {"batch": 2},
        "rtol": 1e-5,
        "longest": 300,
        "runtime_python": (),
        "kept_defaults": {},
        "folders": (MODELS, MODELS),
        "by_regions": True,
    }
    del seen["progress"]
    assert seen == {**given, **found}
    rewrite(rtol=0.25)
    assert (seen["rtol"], seen["atol"]) == (0.25, 1e-6)


@pytest.mark.parametrize("name", ["split2_equal", "split_in_loop", "split_to_sequence11_lengths", "gpt2.opset18"])
def test_inferring_twice_is_inferring_once(name: str) -> None:
    """What is declared already is written again without a trace, its denotations included."""
    model = splitgraph.infer(MODELS / f"{name}.onnx").model
    assert splitgraph.infer(model).model == model
    for value in (*model.graph.value_info, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            dim.denotation = "DATA_BATCH"
    assert splitgraph.infer(model).model == model


def test_what_comes_back_can_be_pickled() -> None:
    """As pools of processes do, in both directions."""
    rewrite = splitgraph.downgrade(UNEVEN, 13, verify=True)
    for result in (splitgraph.infer(UNEVEN), rewrite):
        assert pickle.loads(pickle.dumps(result)) == result
    for model, target in ((UNEVEN, "openvino@2023.3"), (MODELS / "interval_split.xml", "openvino")):
        findings = splitgraph.check(model, target)
        same = pickle.loads(pickle.dumps(findings))
        assert (same, same.nodes, same.after_conversion) == (findings, findings.nodes, findings.after_conversion)
        assert same.document() == findings.document()
    blocked = splitgraph.ConversionError("no", splitgraph.infer(NEITHER).diagnostics)
    assert pickle.loads(pickle.dumps(blocked)).diagnostics == blocked.diagnostics


def test_bindings_and_input_shapes_are_used() -> None:
    bound = splitgraph.infer(UNEVEN, bind={"length": 5})
    assert bound.splits[1].lengths == (3, 2)
    shaped = splitgraph.infer(UNEVEN, input_shapes={"x": [2, 7, "2*M"]})
    assert [str(length) for length in shaped.splits[1].lengths] == ["M", "M"]


def test_the_command_line_says_the_same_as_the_api() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "splitgraph", "infer", str(UNEVEN), "--json", "--all"],
        capture_output=True,
        text=True,
        check=True,
    )
    document = json.loads(done.stdout)
    analysis = splitgraph.infer(UNEVEN)
    assert document["values"] == {
        name: {
            "kind": value.kind,
            "dtype": value.dtype,
            "shape": None
            if value.shape is None
            else [d if d is None or isinstance(d, int) else str(d) for d in value.shape],
        }
        for name, value in analysis.types.items()
    }
    assert [split["obligations"] for split in document["splits"]] == [list(s.obligations) for s in analysis.splits]
