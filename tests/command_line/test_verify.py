"""splitgraph verify: verdicts, exit codes and options."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

from splitgraph import open_models, rewrites
from splitgraph.findings.diagnostics import diagnostic
from splitgraph.options import Running
from splitgraph.verification.verification import Difference, Verification

from .program import NOT_RUN, Run, split_model


def test_verify_equal_models(run: Run, folder: Path) -> None:
    code, out, err = run("verify", "model.onnx", "model.onnx")
    assert (code, err) == (0, "")
    assert out.startswith("equal · ")
    assert "  1 split proved equal for every dimension value\n" in out
    document = json.loads(run("verify", "model.onnx", "model.onnx", "--json", "--engine", "reference")[1])
    assert (document["verdict"], document["engine"], document["first_difference"]) == ("equal", "reference", None)
    assert (document["max_abs_diff"], document["proofs"]) == (0.0, ["main/s"])


def test_verify_says_what_was_run(run: Run, folder: Path) -> None:
    body = '<ir_version: 8, opset_import: ["": 28]> g (float[N] x) => (float[N] y) { y = Relu(x) }'
    onnx.save(onnx.parser.parse_model(body), "newer.onnx")
    code, out, _ = run("verify", "newer.onnx", "newer.onnx", "--engine", "onnxruntime")
    assert code == 0
    assert "  the first model as written was not run: onnxruntime " in out
    document = json.loads(run("verify", "newer.onnx", "newer.onnx", "--engine", "onnxruntime", "--json")[1])
    assert [each["code"] for each in document["diagnostics"]] == ["SG511", "SG511"]


def test_verify_different_models(run: Run, folder: Path) -> None:
    other = split_model()
    other.graph.node[0].output[:] = ["p1", "p0"]
    onnx.save(other, "other.onnx")
    code, out, err = run("verify", "model.onnx", "other.onnx", "--bind", "N=2", "--samples", "1")
    assert (code, err) == (1, "")
    assert out.startswith("different")
    assert "first difference: p0" in out
    document = json.loads(run("verify", "model.onnx", "other.onnx", "--json")[1])
    assert (document["verdict"], document["first_difference"]["name"]) == ("different", "p0")


def test_verify_that_could_not_run(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_models, "compared", lambda before, after, running: NOT_RUN)
    code, out, _ = run("verify", "model.onnx", "model.onnx")
    assert (code, out.splitlines()[0]) == (3, "not-run")
    assert "reference crashed" in out
    assert json.loads(run("verify", "model.onnx", "model.onnx", "--json")[1])["verdict"] == "not-run"


def test_verify_hands_its_options_on(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, object] = {}

    def compared(before: Path, after: Path, running: Running) -> Verification:
        seen.update(running._asdict(), before=before, after=after)
        return NOT_RUN

    monkeypatch.setattr(open_models, "compared", compared)
    run(
        "verify",
        "model.onnx",
        "model.onnx",
        "--samples",
        "5",
        "--seed",
        "7",
        "--bind",
        "N=4",
        "--engine",
        "reference",
        "--timeout",
        "9",
        *("--inputs", "data.npz", "--custom-ops", "a.so", "--custom-ops", "b.so", "--provider", "cuda"),
    )
    assert seen == {
        "before": Path("model.onnx"),
        "after": Path("model.onnx"),
        "verify": None,
        "samples": 5,
        "seed": 7,
        "try_sizes": {"N": 4},
        "inputs": "data.npz",
        "runtime_python": (),
        "custom_ops": ("a.so", "b.so"),
        "providers": ("cuda",),
        "engine": "reference",
        "rtol": 1e-5,
        "atol": 1e-6,
        "timeout": 9,
        "longest": 300,
    }


@pytest.mark.usefixtures("in_process")
def test_verify_says_that_only_sizes_of_1_were_compared(run: Run, folder: Path) -> None:
    """A vector of one element alone has the shape that is computed from its elements."""
    body = "zero = Sub(x, x) sum = ReduceSum(zero) one = Cos(sum) shape = Cast<to = 7>(one) y = Reshape(x, shape)"
    text = f'<ir_version: 8, opset_import: ["": 18]> g (float[N] x) => (float[K] y) {{ {body} }}'
    onnx.save(onnx.parser.parse_model(text), "one.onnx")
    assert "  the models ran only with size 1 for every dynamic dimension" in run("verify", "one.onnx", "one.onnx")[1]
    assert "only with size 1" not in run("verify", "one.onnx", "one.onnx", "--bind", "N=1")[1]


def test_verify_says_which_engine_did_not_run_the_models(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = diagnostic("SG503", "onnxruntime: loading the second model: no kernel", severity="warning")
    found = Verification("equal", "reference", 3, 0.0, 0.0, None, (), (refused,))
    monkeypatch.setattr(open_models, "compared", lambda before, after, running: found)
    monkeypatch.setattr(rewrites, "verify_rewrite", lambda before, rewrite, running, **options: found)
    note = "  not decided by onnxruntime: loading the second model: no kernel\n"
    assert run("verify", "model.onnx", "model.onnx")[1].endswith(f"largest difference: 0\n{note}")
    out = run("upgrade", "model.onnx", "--opset", "18")[1]
    assert f"verified equal on 3 inputs (reference)\n{note}wrote " in out
    different = Verification("different", "reference", 3, 0.0, 0.0, Difference("p0", 0, "1 is not 2"), (), (refused,))
    monkeypatch.setattr(rewrites, "verify_rewrite", lambda before, rewrite, running, **options: different)
    code, out, err = run("upgrade", "model.onnx", "--opset", "18", "--force")
    assert (code, out) == (1, "")
    assert err.endswith(f"{note}Nothing was written.\n")
