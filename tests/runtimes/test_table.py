"""The table of what each runtime reads: splitgraph/runtimes/table/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from json_schemas import wrong

from splitgraph import SplitgraphError
from splitgraph.runtimes.target import find_target, names, read_target, targets

FOLDER = Path(__file__).parents[2] / "splitgraph" / "runtimes" / "table"
TABLE: dict[str, dict[str, Any]] = {
    path.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))
}
# Every one of these has a file.
NAMES = {
    *("onnxruntime", "onnxruntime-web", "openvino", "opencv", "tract", "tinygrad", "mnn", "tvm", "iree"),
    *("jaxonnxruntime", "onnx2torch", "onnx2tf", "rknn", "ncnn", "aidge"),
    *("tensorrt", "directml", "migraphx", "coreml", "snpe"),
}
UNMEASURED = {"tensorrt", "directml", "migraphx", "coreml", "snpe"}
EVERY_FILE = pytest.mark.parametrize("file", TABLE)


@EVERY_FILE
def test_a_file_is_what_the_schema_says(file: str) -> None:
    assert wrong(TABLE[file], "target") == []


@EVERY_FILE
def test_a_file_is_named_after_its_target(file: str) -> None:
    target = read_target(TABLE[file])
    assert file == f"{target.key}.json"


def test_every_target_has_a_file() -> None:
    assert set(names()) == NAMES
    assert {target.name for target in targets().values() if target.measured is None} == UNMEASURED
    assert len(targets()) == len(TABLE)


@EVERY_FILE
def test_every_fact_was_measured_or_has_a_source(file: str) -> None:
    target = read_target(TABLE[file])
    assert (target.measured and target.version) or target.sources
    assert (target.how == "not run here") == (target.measured is None)


@pytest.mark.parametrize(
    ("spec", "key"),
    [
        ("opencv", "opencv@5.0.0"),
        ("opencv@4", "opencv@4.14.0"),
        ("opencv@4.10", "opencv@4.10.0"),
        ("openvino@2023.3", "openvino@2023.3.0"),
        ("onnxruntime@1.15", "onnxruntime@1.15.1"),
        ("onnxruntime@1.15.1", "onnxruntime@1.15.1"),
        ("coreml", "coreml"),
        ("migraphx", "migraphx"),
        # As people write them.
        ("OpenVino", "openvino@2026.4.1"),
        ("TensorRT", "tensorrt@10.15"),
        ("trt", "tensorrt@10.15"),
        ("ORT@1.15", "onnxruntime@1.15.1"),
        ("ov", "openvino@2026.4.1"),
        ("qnn", "snpe@2.25.0"),
        ("Core ML", "coreml"),
        ("ort-web", "onnxruntime-web@1.30.0"),
        *((name, find_target(name).key) for name in sorted(NAMES)),
    ],
)
def test_a_target_is_found_by_name_and_by_a_shortened_version(spec: str, key: str) -> None:
    assert find_target(spec).key == key


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("onnxrutime", "did you mean 'onnxruntime'"),
        ("tensorflow", "did you mean 'tensorrt'"),
        ("opencv4", "did you mean 'opencv'"),
        ("", "known are: aidge, coreml, "),
        ("opencv@3", "known are: opencv@5.0.0, opencv@4.14.0, opencv@4.10.0"),
        # An older version may lack what a newer one reads.
        ("tensorrt@8.6", "known are: tensorrt@10.15"),
        ("onnxruntime@0.5", "known are: onnxruntime@1.32.0"),
        ("onnxruntime@next", "known are: onnxruntime@1.32.0"),
        ("mnn@3.6.1b", "known are: mnn@3.6.1"),
        ("coreml@7", "known are: coreml"),
    ],
)
def test_an_unknown_target_is_told_with_the_nearest_names(spec: str, told: str) -> None:
    with pytest.raises(SplitgraphError, match=told):
        find_target(spec)


@pytest.mark.parametrize(
    ("spec", "key", "newest_opset", "newest_ir_version"),
    [
        # The newest older version stands for it; what it reads at most may be what the next one does.
        ("openvino@2025.1", "openvino@2024.6.0", None, None),
        ("opencv@4.12.0", "opencv@4.10.0", None, None),
        ("onnxruntime@1.25", "onnxruntime@1.20.1", 28, 14),
        # Nothing newer was measured.
        ("mnn@99", "mnn@3.6.1", None, None),
        ("onnxruntime@1.99", "onnxruntime@1.32.0", None, None),
        # The opset that an old onnxruntime reads is in its documents.
        ("onnxruntime@1.19", "onnxruntime@1.17.3", 21, 10),
        ("onnxruntime@1.16.3", "onnxruntime@1.15.1", 19, 9),
        ("onnxruntime@1.12", "onnxruntime@1.15.1", 17, 8),
        # A version is shortened between its numbers only: this is no 1.15.
        ("onnxruntime@1.1", "onnxruntime@1.15.1", 11, 6),
    ],
)
def test_the_nearest_version_stands_for_one_that_was_not_measured(
    spec: str, key: str, newest_opset: int | None, newest_ir_version: int | None
) -> None:
    target = find_target(spec)
    assert (target.key, target.asked, target.is_measured_version) == (key, spec.partition("@")[2], False)
    assert (target.newest_opset, target.newest_ir_version) == (newest_opset, newest_ir_version)


@pytest.mark.parametrize("spec", ["mnn", "mnn@3", "mnn@3.6.1"])
def test_a_measured_version_stands_for_no_other(spec: str) -> None:
    assert find_target(spec).is_measured_version
