"""check --run, convert --target and verify --in, in runtimes that are here and in ones that fail as real ones do."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import onnx
import pytest
from fake_runtimes import REFUSES, WRONG, fake_python, write_program
from json_schemas import wrong

import splitgraph
from splitgraph.runtimes.runners import interpreters
from splitgraph.runtimes.runners.interpreters import Kind

from .program import Run

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the Pythons that fail are scripts of POSIX")

MODEL = """<ir_version: 8, opset_import: ["" : 20]>
g (float[N, 6] x) => (float[N, 6] y) { r = Relu (x) e = Gelu (r) y = Neg (e) }"""
# OpenVINO takes the axis for the only one (its issue 37823).
SOFTMAX = """<ir_version: 6, opset_import: ["" : 11]>
g (float[2, 3, 4] x) => (float[2, 3, 4] y) { r = Relu (x) y = Softmax <axis: int = 1> (r) }"""


@pytest.fixture
def model(folder: Path) -> str:
    onnx.save(onnx.parser.parse_model(MODEL), "model.onnx")
    return "model.onnx"


def opencv(folder: Path, fault: str = "", version: str = "4.14.0", text: str | None = None) -> list[str]:
    """Return the options that name an OpenCV of its own."""
    return ["--runtime-python", fake_python(folder, write_program(folder, fault, version, text))]


def test_a_model_that_runs(run: Run, model: str, folder: Path) -> None:
    code, out, err = run("check", model, "--target", "opencv", "--run", *opencv(folder))
    assert (code, err) == (0, "")
    assert out.startswith("OpenCV 4.14.0 · model.onnx ran here: equal on 3 inputs\n")


DEATH = "    if 'Gelu' in operators:\n        os.kill(os.getpid(), signal.SIGABRT)\n"
FAULTS = [
    (REFUSES.format(operator="Gelu"), "SG709", "is refused: ValueError: does not read Gelu"),
    (WRONG.format(operator="Gelu"), "SG710", "gives other values: at [0, 0] onnxruntime gives"),
    (DEATH, "SG709", "ends the process: signal 6"),
]


@pytest.mark.parametrize(("fault", "finding", "words"), FAULTS, ids=["refuses", "wrong", "dies"])
def test_the_first_node_is_named(run: Run, model: str, folder: Path, fault: str, finding: str, words: str) -> None:
    arguments = ["check", model, "--target", "opencv", "--run", *opencv(folder, fault)]
    code, out, err = run(*arguments)
    assert (code, err) == (1, "")
    assert f"{finding}  main/Gelu#1" in out
    assert f"main/Gelu#1 (Gelu-20, node 2 of 3) {words}" in " ".join(out.split())
    document = json.loads(run(*arguments, "--json")[1])
    assert wrong(document, "check") == []
    (target,) = document["targets"]
    assert (target["runs"], target["ran"]["answer"]) == (False, "refused" if finding == "SG709" else "different")
    assert target["ran"]["first_node"]["location"] == "main/Gelu#1"
    assert target["diagnostics"][0]["node"] == "Gelu#1"


def test_a_run_counts_for_more_than_the_table(run: Run, folder: Path) -> None:
    """The table says that MNN computes such a Split wrong."""
    onnx.save(
        onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2, 7] x) => (float[2, 3] a, float[2, 3] b, float[2, 1] c)
        { a, b, c = Split <axis: int = 1, num_outputs: int = 3> (x) }"""),
        "uneven.onnx",
    )
    assert run("check", "uneven.onnx", "--target", "mnn")[0] == 1
    code, out, _ = run("check", "uneven.onnx", "--target", "mnn", "--run", *opencv(folder, version="3.6.1"))
    assert (code, out) == (0, "MNN 3.6.1 · uneven.onnx ran here: equal on 3 inputs\n")


def test_a_runtime_that_is_not_installed(run: Run, model: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = opencv(folder, text="import cv2_that_nobody_has")
    code, out, _ = run("check", model, "--target", "opencv", "--run", *missing)
    assert code == 3
    advice = "which is not installed here: pip install opencv-python-headless, or --runtime-python PATH"
    assert f"not run in OpenCV, {advice}" in " ".join(out.split())
    # The version that was asked for is the one to install.
    out = run("check", model, "--target", "opencv@4.10", "--run", *missing)[1]
    advice = "pip install 'opencv-python-headless==4.10.*' in another Python, and name that with --runtime-python PATH"
    assert f"not run in OpenCV 4.10, which is not installed here: {advice}" in " ".join(out.split())
    code, out, _ = run("check", model, "--target", "opencv", "--run", "--json", *missing)
    document = json.loads(out)
    assert (code, wrong(document, "check")) == (3, [])
    assert document["targets"][0]["ran"]["answer"] == "not-installed"


def test_a_runtime_that_does_not_start(run: Run, model: str, folder: Path) -> None:
    broken = opencv(folder, text="raise ImportError('libGL.so.1: cannot open')")
    code, out, _ = run("check", model, "--target", "opencv", "--run", *broken)
    assert code == 3
    assert "which does not start here (ImportError: libGL.so.1: cannot open)" in " ".join(out.split())


def test_a_runtime_in_which_no_model_runs(run: Run, model: str, folder: Path) -> None:
    """As an old one beside a newer NumPy: it starts, and that says nothing about the model."""
    dying = opencv(folder, fault="    os.kill(os.getpid(), signal.SIGSEGV)")
    told = "not run in OpenCV 4.14.0: no model runs there: one of a single Relu ends its process, too (signal 11)"
    code, out, _ = run("check", model, "--target", "opencv", "--run", *dying)
    assert (code, told in " ".join(out.split()), "SG709" in out) == (3, True, False)
    code, out, _ = run("convert", model, "--target", "opencv", "-o", "there.onnx", *dying)
    assert (code, told in " ".join(out.split()), Path("there.onnx").exists()) == (0, True, True)


@pytest.mark.parametrize(
    ("asked", "version", "label"),
    [
        # Without a version, that of the runtime here is checked; the table has the nearest one.
        ("opencv", "4.13.0", "OpenCV 4.13.0"),
        ("opencv@4", "4.14.0", "OpenCV 4.14.0"),
        ("opencv@4.13", "4.13.0", "OpenCV 4.13.0"),
        ("opencv@5", "4.14.0", None),
        ("opencv@4.1", "4.14.0", None),
    ],
)
def test_the_version_that_is_here(
    run: Run, model: str, folder: Path, asked: str, version: str, label: str | None
) -> None:
    code, out, err = run("check", model, "--target", asked, "--run", *opencv(folder, version=version))
    if asked == "opencv@4.1":
        assert (code, "was not measured; known are" in err) == (2, True)
    elif label is None:
        number = asked.partition("@")[2]
        assert code == 3
        assert f"({version} is): pip install 'opencv-python-headless=={number}.*' in another" in " ".join(out.split())
    else:
        assert (code, out.startswith(f"{label} · model.onnx ran here")) == (0, True)


WRONG_CALLS = [
    (("check", "model.onnx", "--all-targets", "--run"), "--run needs the runtimes named"),
    (("check", "model.onnx", "--target", "opencv", "--runtime-python", "x"), "--runtime-python goes with --run"),
    (("check", "model.onnx", "--target", "opencv", "--run", "--runtime-python", "no/python"), "is no program"),
    (("check", "--target", "opencv"), "Give a model"),
    (("check", "model.onnx", "--targets"), "leave the model out"),
    (("verify", "model.onnx"), "Missing argument 'AFTER'"),
    (("verify", "model.onnx", "--in", "openvino"), "two runtimes with --in"),
    (("verify", "model.onnx", "model.onnx", "--in", "openvino", "--in", "onnxruntime"), "Give one model"),
    (("verify", "model.onnx", "--in", "openvino", "--in", "tensorrt"), "there is no runner for TensorRT"),
    (("verify", "model.onnx", "model.onnx", "--runtime-python", "x"), "--runtime-python goes with --in"),
]


@pytest.mark.parametrize(("arguments", "words"), WRONG_CALLS)
def test_wrong_calls(run: Run, model: str, arguments: tuple[str, ...], words: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert words in err


def test_a_target_without_a_runner(run: Run, model: str) -> None:
    code, out, _ = run("check", model, "--target", "TensorRT", "--run")
    assert code == 3
    assert "not run in TensorRT: there is no runner for it" in " ".join(out.split())


def test_the_targets_are_listed(run: Run, folder: Path) -> None:
    code, out, err = run("check", "--targets")
    assert (code, err) == (0, "")
    assert run("check") == (code, out, err)
    rows = [line.split() for line in out.splitlines()[1:]]
    assert [row[0] for row in rows] == [target.key for target in splitgraph.targets().values()]
    assert {row[0].partition("@")[0] for row in rows if row[-1] == "yes"} == set(interpreters.KINDS)
    code, out, _ = run("check", "--targets", "--json")
    assert (code, wrong(json.loads(out), "targets")) == (0, [])


# convert --target -----------------------------------------------------------------------------------------------------


def test_a_model_that_runs_as_it_is_stays(run: Run, model: str, folder: Path) -> None:
    code, out, _ = run("convert", model, "--target", "opencv", *opencv(folder))
    told = "model.onnx runs in OpenCV 4.14.0 as it is, equal on 3 inputs; nothing was written.\n"
    assert (code, out) == (0, told)
    code, out, _ = run("convert", model, "--target", "opencv", "-o", "copy.onnx", *opencv(folder))
    assert code == 0
    assert Path("copy.onnx").read_bytes() == Path(model).read_bytes()


def test_a_kind_of_node_that_fails_is_written_in_another_way(run: Run, model: str, folder: Path) -> None:
    """The table says that this OpenCV reads the Gelu."""
    refuses = opencv(folder, REFUSES.format(operator="Gelu"))
    code, out, err = run("convert", model, "--target", "opencv", "-o", "made.onnx", *refuses)
    assert (code, err) == (0, "")
    assert "verified equal in onnxruntime and in OpenCV 4.14.0, on 3 inputs" in out
    made = onnx.load("made.onnx")
    assert all(node.op_type != "Gelu" for node in made.graph.node)
    document = json.loads(run("convert", model, "--target", "opencv", "-o", "m.onnx", "--json", *refuses)[1])
    assert wrong(document, "rewrite") == []
    assert (document["verified"], document["ran"]["answer"]) == (True, "equal")


def test_a_model_that_runs_in_no_way_is_not_written(run: Run, model: str, folder: Path) -> None:
    refuses = opencv(folder, REFUSES.format(operator="Neg"))
    code, out, err = run("convert", model, "--target", "opencv", "-o", "made.onnx", *refuses)
    assert (code, out) == (1, "")
    assert "SG709  main/Neg#2" in err
    assert "refused here by OpenCV 4.14.0: main/Neg#2 (Neg-13, node 3 of 3) is refused" in " ".join(err.split())
    assert not Path("made.onnx").exists()


def test_a_runtime_that_is_not_here_is_told(run: Run, folder: Path) -> None:
    onnx.save(
        onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2, 7] x) => (float[2, 3] a, float[2, 3] b, float[2, 1] c)
        { a, b, c = Split <axis: int = 1, num_outputs: int = 3> (x) }"""),
        "uneven.onnx",
    )
    missing = opencv(folder, text="import MNN_that_nobody_has")
    code, out, _ = run("convert", "uneven.onnx", "--target", "mnn", *missing)
    assert code == 0
    assert "verified equal on 3 inputs (onnxruntime)" in out
    assert "  not run in MNN, which is not installed here: pip install MNN, or --runtime-python PATH\n" in out
    # Nothing is run at all.
    code, out, _ = run("convert", "uneven.onnx", "--target", "mnn", "--no-verify", "--force", *missing)
    assert (code, "not run in" in out) == (0, False)


# verify --in ----------------------------------------------------------------------------------------------------------


def pair(folder: Path, fault: str = "") -> list[str]:
    """Return the options that compare onnxruntime with an OpenCV of its own."""
    python = fake_python(folder, write_program(folder, fault))
    return ["--in", "ort", "--in", "opencv", "--runtime-python", f"opencv={python}"]


def test_two_runtimes_that_agree(run: Run, model: str, folder: Path) -> None:
    code, out, err = run("verify", model, *pair(folder))
    assert (code, err) == (0, "")
    assert out.startswith("equal · 3 inputs · ONNX Runtime ")
    assert " and OpenCV 4.14.0\n" in out


@pytest.mark.parametrize("fault", [REFUSES, WRONG])
@pytest.mark.sample(1)
def test_the_node_at_which_two_runtimes_part(run: Run, model: str, folder: Path, fault: str) -> None:
    arguments = ["verify", model, *pair(folder, fault.format(operator="Neg"))]
    code, out, _ = run(*arguments)
    assert code == 1
    assert "first node: main/Neg#2 (Neg-13, node 3 of 3)" in out
    document: Any = json.loads(run(*arguments, "--json")[1])
    assert (wrong(document, "verify"), document["verdict"]) == ([], "different")
    assert document["first_node"]["location"] == "main/Neg#2"


def test_a_runtime_of_two_that_is_not_installed(run: Run, model: str, folder: Path) -> None:
    python = fake_python(folder, write_program(folder, text="import cv2_that_nobody_has"))
    code, out, _ = run("verify", model, "--in", "onnxruntime", "--in", "opencv", "--runtime-python", f"opencv={python}")
    assert code == 3
    assert "not run in OpenCV, which is not installed here" in " ".join(out.split())


# OpenVINO itself ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_openvino_and_a_softmax_of_opset_11(run: Run, folder: Path) -> None:
    pytest.importorskip("openvino")
    onnx.save(onnx.parser.parse_model(SOFTMAX), "softmax.onnx")
    code, out, _ = run("check", "softmax.onnx", "--target", "openvino", "--run")
    assert (code, "SG710  main/Softmax#1" in out) == (1, True)
    code, out, _ = run("convert", "softmax.onnx", "--target", "ov", "-o", "made.onnx")
    assert code == 0
    assert "verified equal in onnxruntime and in OpenVINO " in out
    assert run("check", "made.onnx", "--target", "openvino", "--run")[0] == 0
    code, out, _ = run("verify", "softmax.onnx", "--in", "onnxruntime", "--in", "openvino")
    assert (code, "first node: main/Softmax#1" in out) == (1, True)


# The API --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_api(folder: Path, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    python = fake_python(folder, write_program(folder, REFUSES.format(operator="Gelu")))
    found = splitgraph.check(model, "opencv", run=True, runtime_python=python)
    assert (found.ran, found.runs) == ("refused", False)
    assert found.first_node is not None
    assert (found.first_node.location, found.first_node.alone) == ("main/Gelu#1", False)
    assert wrong(found.document(), "check") == []
    made = splitgraph.convert(model, target="opencv", verify=True, runtime_python=python)
    assert made.ran is not None
    assert (made.ran.answer, made.verified) == ("equal", True)
    # Without verify nothing is run.
    assert splitgraph.convert(model, target="opencv", runtime_python=python).ran is None
    assert splitgraph.check(model, "opencv", runtime_python=python).ran is None
    monkeypatch.setenv("SPLITGRAPH_RUNTIME_opencv", python)
    parted = splitgraph.verify(model, between=("onnxruntime", "opencv"))
    assert parted.first_node is not None
    assert (parted.verdict, parted.first_node.location) == ("different", "main/Gelu#1")
    for wrong_call in ({}, {"between": ("onnxruntime",)}, {"between": "onnxruntime"}):
        with pytest.raises(splitgraph.SplitgraphError):
            splitgraph.verify(model, **wrong_call)
    assert isinstance(interpreters.KINDS["opencv"], Kind)
