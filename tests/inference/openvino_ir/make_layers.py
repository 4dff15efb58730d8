"""Writes layers.zip and layers.json: layers as OpenVINO saves them, and what OpenVINO infers and computes.

    python tests/inference/openvino_ir/make_layers.py

Needs openvino, which the tests that read these files do not. In the files, the output ports of layers declare nothing
(-1), so that every shape has to be inferred. Each group of `layer_models`, `body_layer_models` and `every_layer` is one
IR; each of its results is recorded with its bounds. Those of the first two modules are recorded with their shape, too,
when each is run alone with the dynamic dimensions set to each of SIZES.
"""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import body_layer_models  # noqa: F401 - registers its groups
import every_layer
import layer_models
import numpy as np
import openvino as ov
from layer_models import fitting, used_parameters
from openvino import opset1

SIZES = (4, 7)
HERE = Path(__file__).parent


def main() -> None:
    recorded: dict[str, Any] = {}
    with zipfile.ZipFile(HERE / "layers.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, group in layer_models.GROUPS.items():
            layer_models.start()
            outputs = group()
            recorded[name] = {
                key: described(output, is_run=name not in every_layer.NOT_RUN) for key, output in outputs.items()
            }
            for suffix, content in saved(outputs, name).items():
                archive.writestr(zipfile.ZipInfo(f"{name}{suffix}"), content, zipfile.ZIP_DEFLATED)
    (HERE / "layers.json").write_text(lines(recorded))


def lines(recorded: dict[str, Any]) -> str:
    """JSON with a line for each result."""
    groups = []
    for name, results in recorded.items():
        rows = ",\n".join(f"  {json.dumps(key)}: {json.dumps(found)}" for key, found in results.items())
        groups.append(f" {json.dumps(name)}: {{\n{rows}\n }}")
    return "{\n" + ",\n".join(groups) + "\n}\n"


def described(output: Any, *, is_run: bool) -> dict[str, Any]:
    shape = output.get_partial_shape()
    return {
        "type": output.get_element_type().to_string(),
        "shape": None if shape.rank.is_dynamic else [bounds(dim) for dim in shape],
        "runs": list(runs(output)) if is_run else [],
    }


def bounds(dim: Any) -> list[int | None]:
    return [dim.get_min_length(), None if dim.get_max_length() < 0 else dim.get_max_length()]


def runs(output: Any) -> Iterator[dict[str, Any]]:
    parameters = used_parameters(output)
    if any(parameter.get_partial_shape().rank.is_dynamic for parameter in parameters):
        return
    try:
        compiled = ov.Core().compile_model(
            ov.Model([opset1.result(output)], parameters), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
        )
    except RuntimeError as error:
        print("not compiled:", output, str(error).strip().splitlines()[-1][:100])
        return
    for size in SIZES:
        shapes = [[fitting(dim, size) for dim in parameter.get_partial_shape()] for parameter in parameters]
        feeds = [
            np.ones(shape, dtype=parameter.get_element_type().to_dtype())
            for shape, parameter in zip(shapes, parameters, strict=True)
        ]
        try:
            made = compiled(feeds)[0]
        except RuntimeError:
            # A size that the layer refuses.
            continue
        names = [parameter.get_friendly_name() for parameter in parameters]
        yield {"given": dict(zip(names, shapes, strict=True)), "shape": list(made.shape)}


def saved(outputs: dict[str, Any], name: str) -> dict[str, bytes]:
    results = []
    for key, output in outputs.items():
        result = opset1.result(output)
        result.set_friendly_name(key)
        results.append(result)
    parameters = {node.get_friendly_name(): node for output in outputs.values() for node in used_parameters(output)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.xml"
        ov.serialize(ov.Model(results, list(parameters.values()), name), path)
        return {".xml": blanked(path.read_bytes()), ".bin": path.with_suffix(".bin").read_bytes()}


def blanked(content: bytes) -> bytes:
    tree = ElementTree.parse(io.BytesIO(content))
    for layer in tree.iter("layer"):
        if layer.get("type") not in ("Parameter", "Const"):
            for dim in layer.iterfind("output/port/dim"):
                dim.text = "-1"
    return ElementTree.tostring(tree.getroot())


if __name__ == "__main__":
    main()
