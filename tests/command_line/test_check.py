"""splitgraph check and convert --target: exit codes, what is printed, and which file is written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import onnx
import pytest
from json_schemas import wrong

import splitgraph

from .program import ROOT, Run, files, split_model


@pytest.fixture
def uneven(folder: Path) -> None:
    onnx.save(split_model(18, (2, 7), 3, num_outputs=3), "uneven.onnx")


def test_nothing_is_in_the_way(run: Run, folder: Path) -> None:
    code, out, err = run("check", "model.onnx", "--target", "tract")
    assert (code, err) == (0, "")
    assert out == "tract 0.23.9 · reads all 1 node of model.onnx\n"


def test_what_is_in_the_way(run: Run, uneven: None) -> None:
    code, out, err = run("check", "uneven.onnx", "--target", "mnn", "--target", "onnxruntime")
    assert (code, err) == (1, "")
    assert "MNN 3.6.1 · 1 error in uneven.onnx" in out
    assert "SG702  main/s  MNN 3.6.1 silently computes wrong results" in out
    assert "runs after  splitgraph convert uneven.onnx --target mnn@3.6.1\n" in out
    assert "ONNX Runtime 1.32.0 · reads all 1 node of uneven.onnx" in out


def groups(out: str) -> dict[str, list[str]]:
    """The rows of each group that --all-targets prints, by its title."""
    found: dict[str, list[str]] = {}
    title = ""
    for line in out.splitlines()[1:]:
        if line.startswith(" "):
            found[title].append(line.strip())
        else:
            title = line
            found[title] = []
    return found


def test_all_targets(run: Run, uneven: None) -> None:
    code, out, _ = run("check", "uneven.onnx", "--all-targets")
    told = groups(out)
    assert code == 1
    # What runs comes first, then what runs after a conversion, and what is in the way last.
    assert list(told)[:3] == [
        "runs",
        "runs after  splitgraph convert uneven.onnx --target NAME",
        "not known, and no runner here: run the model in the runtime itself",
    ]
    assert "tract@0.23.9" in "".join(told["runs"])
    assert any("mnn@3.6.1" in row and row.endswith("Split-18 (wrong)") for row in list(told.values())[1])
    assert "tensorrt@10.15" in "".join(list(told.values())[2])
    named = [name for rows in told.values() for row in rows for name in row.replace(",", " ").split()]
    for target in splitgraph.targets().values():
        assert named.count(target.key) == 1


def test_what_a_run_finds_out_is_told_with_the_command(run: Run, folder: Path) -> None:
    text = '<ir_version: 8, opset_import: ["": 24]> g (float[6] x) => (float[] y) <int64 i = {0}>'
    body = "{ q = SplitToSequence<axis = 0>(x) r = SequenceErase(q, i) y = SequenceAt(r, i) }"
    onnx.save(onnx.parser.parse_model(f"{text} {body}"), "sequence.onnx")
    _, out, _ = run("check", "sequence.onnx", "--all-targets")
    rows = groups(out)["not known; to find out:  splitgraph check sequence.onnx --target NAME --run"]
    # One row for all runtimes of which the same is not known.
    assert len({row.rpartition("  ")[2] for row in rows}) == len(rows)


@pytest.mark.parametrize(("model", "ok"), [("model.onnx", True), ("uneven.onnx", False)])
def test_the_document(run: Run, uneven: None, model: str, ok: bool) -> None:
    code, out, err = run("check", model, "--target", "mnn", "--target", "tract", "--json")
    document = json.loads(out)
    assert (code, err) == (0 if ok else 1, "")
    assert wrong(document, "check") == []
    assert (document["ok"], [each["target"] for each in document["targets"]]) == (ok, ["mnn@3.6.1", "tract@0.23.9"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("model.onnx", "--target", "mmn"), "did you mean 'mnn'"),
        (("model.onnx", "--target", "mnn@2"), "known are: mnn@3.6.1"),
        (("model.onnx",), "--all-targets"),
        (("model.onnx", "--target", "mnn", "--all-targets"), "--all-targets"),
        (("missing.onnx", "--target", "mnn"), "missing.onnx"),
    ],
)
def test_wrong_calls(run: Run, folder: Path, arguments: tuple[str, ...], words: str) -> None:
    code, out, err = run("check", *arguments)
    assert (code, out) == (2, "")
    assert words in err
    code, out, _ = run("check", *arguments, "--json")
    assert code == 2
    assert wrong(json.loads(out), "check") == []


def test_a_model_is_converted_for_a_target(run: Run, uneven: None, folder: Path) -> None:
    code, out, err = run("convert", "uneven.onnx", "--target", "mnn")
    assert (code, err) == (0, "")
    assert out.endswith("wrote uneven.mnn.onnx\n")
    assert "verified equal" in out
    assert run("check", "uneven.mnn.onnx", "--target", "mnn")[0] == 0
    # Nothing to do is no error, and writes nothing.
    before = files(folder)
    code, out, _ = run("convert", "uneven.mnn.onnx", "--target", "mnn")
    told = "not run in MNN, which is not installed here: pip install MNN, or --runtime-python PATH"
    assert (code, out) == (0, f"uneven.mnn.onnx is read by mnn as it is; {told}; nothing was written.\n")
    assert files(folder) == before


def test_blockers_and_wrong_calls_of_convert(run: Run, folder: Path) -> None:
    onnx.save(split_model(13, (2, 6), 2), "half.onnx")
    model = onnx.load("half.onnx")
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    onnx.save(model, "half.onnx")
    code, out, err = run("convert", "half.onnx", "--target", "mnn")
    assert (code, out) == (1, "")
    assert "half.onnx cannot be converted for mnn: 1 blocker" in err
    assert "SG706  main/s  MNN 3.6.1 refuses Split-13 with T=float16" in err
    code, _, err = run("convert", "model.onnx", "--target", "mnn", "--to", "split")
    assert code == 2
    assert "--target says which forms of splits are read" in err


# OpenVINO IR ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def ir(folder: Path) -> str:
    """An IR of six layers, which every release of OpenVINO reads."""
    for ending in (".xml", ".bin"):
        shutil.copy(ROOT / "models" / f"interval_split{ending}", folder)
    return "interval_split.xml"


def test_an_ir_is_checked(run: Run, ir: str) -> None:
    code, out, err = run("check", ir, "--target", "openvino@2023.3")
    assert (code, out, err) == (0, "OpenVINO 2023.3.0 · reads all 6 nodes of interval_split.xml\n", "")


def test_all_targets_of_an_ir_are_the_releases_of_openvino(run: Run, ir: str) -> None:
    code, out, _ = run("check", ir, "--all-targets")
    assert (code, out.splitlines()[0]) == (0, "interval_split.xml · OpenVINO IR 11 · 6 nodes")
    expected = [target.key for target in splitgraph.targets().values() if target.name == "openvino"]
    assert groups(out) == {"runs": [", ".join(expected)]}


def test_the_document_of_an_ir(run: Run, ir: str) -> None:
    code, out, _ = run("check", ir, "--target", "openvino@2024", "--json")
    document = json.loads(out)
    assert (code, wrong(document, "check"), document["opset"]) == (0, [], {"openvino": 11})
    (target,) = document["targets"]
    assert (target["runs"], target["counts"], target["nodes"]) == (True, {"reads": 6}, [])


@pytest.mark.parametrize("verb", ["check", "convert"])
def test_a_target_that_reads_no_ir(run: Run, ir: str, verb: str) -> None:
    code, out, err = run(verb, ir, "--target", "mnn")
    assert (code, out) == (2, "")
    assert "MNN 3.6.1 reads ONNX models; this is an OpenVINO IR" in err


def test_an_ir_that_is_as_it_is_read(run: Run, ir: str, folder: Path) -> None:
    before = files(folder)
    code, out, err = run("convert", ir, "--target", "openvino@2023.3")
    assert (code, err) == (0, "")
    assert out == "interval_split.xml is read by openvino@2023.3 as it is; nothing was written.\n"
    assert files(folder) == before
    code, out, _ = run("convert", ir, "--target", "openvino", "-o", "copy.xml")
    assert (code, out) == (0, "interval_split.xml is read by openvino as it is; wrote a copy, copy.xml.\n")
    assert files(folder) == {*before, "copy.xml", "copy.bin"}


def test_a_layer_of_an_ir_that_no_release_reads(run: Run, ir: str, folder: Path) -> None:
    text = (folder / ir).read_text("utf-8")
    (folder / ir).write_text(text.replace('type="ReLU" version="opset1"', 'type="Swish" version="opset3"', 1), "utf-8")
    before = files(folder)
    code, out, err = run("check", ir, "--target", "openvino")
    assert (code, err) == (1, "")
    assert "OpenVINO 2026.4.1 refuses opset3.Swish: OpenVINO has no layer Swish in opset3" in out
    assert "splitgraph convert" not in out
    code, out, err = run("convert", ir, "--target", "openvino")
    assert (code, out) == (1, "")
    assert "interval_split.xml cannot be converted for openvino: 1 blocker" in err
    assert "SG706  main/" in err
    assert files(folder) == before
