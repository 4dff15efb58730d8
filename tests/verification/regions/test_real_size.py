"""A model with megabytes of weights in another file: layers that repeat, a lookup of words, and normalizations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import splitgraph
from splitgraph import cli

from ..small_models import parsed

WIDTH, WORDS, LAYERS = 256, 8000, 6
RNG = np.random.default_rng(0)
# 256 kB for a layer, and 8 MB for the words.
WEIGHTS: dict[str, Any] = {f"w{layer}": RNG.standard_normal((WIDTH, WIDTH)) / 16 for layer in range(LAYERS)}
WEIGHTS |= {f"b{layer}": RNG.standard_normal(WIDTH) for layer in range(LAYERS)}
WEIGHTS |= {"words": RNG.standard_normal((WORDS, WIDTH)), "scale": RNG.uniform(0.5, 2, WIDTH), "most": 6.0, "zero": 0.0}
LAYER = "n{i} = LayerNormalization(h{i}, scale) m{i} = MatMul(n{i}, w{i}) a{i} = Add(m{i}, b{i}) {rest} "
RELU, BOUNDED = "r{i} = Relu(a{i}) h{j} = Add(h{i}, r{i})", "r{i} = Max(a{i}, zero) h{j} = Add(h{i}, r{i})"


def save(path: Path, rest: str = RELU, changed: dict[str, Any] | None = None, prefix: str = "") -> Path:
    """Write the model, its weights beside it. rest: the end of each layer. prefix: of inner values."""
    layers = "".join(LAYER.format(i=i, rest=rest.format(i=i, j=i + 1)) for i in range(LAYERS))
    body = f"h0 = Gather(words, ids) {layers} y = Softmax(h{LAYERS})"
    held = {key: np.asarray(array, np.float32) for key, array in (WEIGHTS | (changed or {})).items()}
    used = {key: array for key, array in held.items() if key in body}
    model = parsed(f"int64[N] ids => float[N, {WIDTH}] y", body, **used)
    for node in model.graph.node[:-1]:
        for name in node.output:
            for other in model.graph.node:
                other.input[:] = [prefix + each if each == name else each for each in other.input]
        node.output[:] = [prefix + name for name in node.output]
    onnx.save(model, path, save_as_external_data=True, location=f"{path.stem}.weights", size_threshold=1024)
    assert path.stat().st_size < 50_000 < 9_000_000 < path.with_suffix(".weights").stat().st_size
    return path


def altered(name: str, place: tuple[int, ...], factor: float = 1.01) -> dict[str, Any]:
    """Return a weight of which one element, or one row, is another one."""
    array = np.array(WEIGHTS[name])
    array[place] *= factor
    return {name: array}


# How the second model is made; the verdict, and the nodes of the regions that differ.
SECOND: dict[str, tuple[dict[str, Any], str, list[str]]] = {
    "the same": ({}, "equal", []),
    "other names": ({"prefix": "other_"}, "equal", []),
    "other operators": ({"rest": BOUNDED}, "equal", []),
    "one number of a layer": ({"changed": altered("w3", (7, 9))}, "different", ["main/MatMul#17"]),
    "one row of the words": ({"changed": altered("words", (7777,))}, "different", ["main/Gather#0"]),
    "one bias": ({"rest": BOUNDED, "changed": altered("b5", (0,))}, "different", ["main/Add#28"]),
}


@pytest.mark.parametrize("name", SECOND)
def test_models_in_files(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, verdict, nodes = SECOND[name]
    paths = save(tmp_path / "first.onnx"), save(tmp_path / "second.onnx", **made)
    found = splitgraph.verify(*paths)
    assert found.verdict == verdict, found
    assert [region.name for region in found.regions if region.verdict == "different"] == nodes
    assert len(found.regions) - len(nodes) == (LAYERS if "rest" in made else 0)
    code = cli.main(["verify", *map(str, paths), "--json"])
    document = json.loads(capsys.readouterr().out)
    assert (code, document["verdict"]) == (0 if verdict == "equal" else 1, verdict)


def test_models_in_memory(tmp_path: Path) -> None:
    """With their weights, and without them, from the folder that they are in."""
    first, wrong = save(tmp_path / "first.onnx"), save(tmp_path / "wrong.onnx", changed=altered("words", (7777,)))
    for other, verdict in ((first, "equal"), (wrong, "different")):
        assert splitgraph.verify(onnx.load(first), onnx.load(other)).verdict == verdict
        assert splitgraph.verify(first, onnx.load(other)).verdict == verdict


def test_a_rewrite_in_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """LayerNormalization is written as arithmetic below opset 17."""
    first, old = save(tmp_path / "first.onnx"), tmp_path / "old.onnx"
    assert cli.main(["downgrade", str(first), "--opset", "16", "-o", str(old), "--verify"]) == 0
    assert "verified equal on 3 inputs" in capsys.readouterr().out
    found = splitgraph.verify(first, old)
    assert (found.verdict, len(found.regions)) == ("equal", LAYERS)
