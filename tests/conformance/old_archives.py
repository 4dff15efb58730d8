"""The backend tests that old releases of onnx carry as data files: models of opsets 6 to 15 with inputs and outputs.

The archives are downloaded, never installed, and read as what they are: zip files.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from .model_cases import ModelCase

# 1.1.2 is the last release whose node tests are below opset 7.
RELEASES = ("1.1.2", "1.2.2", "1.5.0", "1.7.0", "1.10.2")
GROUPS = ("node", "simple", "pytorch-operator", "pytorch-converted")

DATA = "onnx/backend/test/data/"
_PLATFORMS = ("manylinux1_x86_64", "manylinux2010_x86_64")


def fetch(release: str, folder: Path) -> Path:
    """The archive of a release of onnx, downloaded into the folder unless it is there."""
    folder.mkdir(parents=True, exist_ok=True)
    found = sorted(folder.glob(f"onnx-{release}-*.whl"))
    if not found:
        platforms = [part for platform in _PLATFORMS for part in ("--platform", platform)]
        options = ["--no-deps", "--only-binary=:all:", *platforms, "--python-version", "36"]
        command = [sys.executable, "-m", "pip", "download", "--quiet", *options, "--dest", str(folder)]
        subprocess.run([*command, f"onnx=={release}"], check=True)
        found = sorted(folder.glob(f"onnx-{release}-*.whl"))
    return found[0]


def collect(folder: Path, releases: Iterable[str] = RELEASES, groups: Sequence[str] = GROUPS) -> list[ModelCase]:
    """The cases of the releases; a graph that several carry is there once, under its first release."""
    cases: dict[bytes, ModelCase] = {}
    for release in releases:
        for label, files in folders_in(fetch(release, folder), DATA):
            if label.split("/")[0] in groups:
                case = case_of(f"{release}/{label}", files)
                graph = case.model.graph.SerializeToString(deterministic=True)
                cases.setdefault(label.encode() + graph + str(case.model.opset_import).encode(), case)
    return list(cases.values())


def folders_in(archive: Path, start: str = "") -> Iterator[tuple[str, dict[str, bytes]]]:
    """The folders below a path of an archive that hold a model, each with its files by their paths in it."""
    with zipfile.ZipFile(archive) as files:
        names = sorted(name for name in files.namelist() if name.startswith(start))
        for model in names:
            if model.endswith("/model.onnx"):
                folder = model.removesuffix("model.onnx")
                content = {name.removeprefix(folder): files.read(name) for name in names if name.startswith(folder)}
                yield folder.removeprefix(start).rstrip("/"), content


def case_of(name: str, files: dict[str, bytes]) -> ModelCase:
    """The case that a folder's files are."""
    model = onnx.load_from_string(files["model.onnx"])
    return ModelCase(name, model, _data_sets(model, files))


def _data_sets(model: onnx.ModelProto, content: dict[str, bytes]) -> list[tuple[list[Any], list[Any]]]:
    sets = sorted({name.split("/")[0] for name in content if name.startswith("test_data_set_") and "/" in name})
    held = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in held]
    result = []
    for folder in sets:
        given = [
            _value(content[f"{folder}/input_{index}.pb"], value) for index, value in _present(inputs, content, folder)
        ]
        found = [
            _value(content[f"{folder}/output_{index}.pb"], value) for index, value in enumerate(model.graph.output)
        ]
        result.append((given, found))
    return result


def _present(
    inputs: Sequence[onnx.ValueInfoProto], content: dict[str, bytes], folder: str
) -> Iterator[tuple[int, onnx.ValueInfoProto]]:
    for index, value in enumerate(inputs):
        if f"{folder}/input_{index}.pb" in content:
            yield index, value


def _value(content: bytes, declared: onnx.ValueInfoProto) -> Any:
    """A value from its file, read as the model declares it: files name no kind."""
    kind = declared.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(content))
    if kind == "optional_type":
        optional = onnx.OptionalProto.FromString(content)
        # An empty one was written with the type of what it lacks, which numpy_helper takes for a value.
        empty = not any(optional.HasField(name) for name in ("tensor_value", "sequence_value", "optional_value"))
        return None if empty else numpy_helper.to_optional(optional)
    array = np.asarray(numpy_helper.to_array(onnx.TensorProto.FromString(content)))
    # The releases had no bfloat16 to compute with and wrote its bits.
    if declared.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16 and array.dtype == np.uint16:
        return array.view(onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.BFLOAT16))
    return array
