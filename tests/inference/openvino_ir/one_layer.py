"""An IR of one layer, made from what it reads and its attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from splitgraph.formats.openvino_ir import OpenVINOModel, load_ir

# A declared shape ("f32 2,?,1..4"), or the elements of a constant of int64: one number for a scalar.
Input = str | int | list[int]


def one_layer(
    folder: Path,
    type_: str,
    version: str,
    data: Mapping[str, str],
    inputs: Sequence[Input],
    declared: str = "",
    *,
    as_shape: bool = False,
    outputs: int = 1,
) -> OpenVINOModel:
    """The IR with a single output, y; declared: the dims of its port, separated by commas. as_shape: the output is the
    dimensions of another tensor, shaped, which is the result. outputs: of the layer; nothing reads those behind y.
    """
    weights, layers, edges = bytearray(), [], []
    for index, read in enumerate(inputs):
        layers.append(_source(index, read, weights))
        edges.append(f'<edge from-layer="{index}" from-port="0" to-layer="{len(inputs)}" to-port="{index}" />')
    count = len(inputs)
    attributes = " ".join(f"{name}={quoteattr(text)}" for name, text in data.items())
    ports = "".join(f'<port id="{index}" />' for index in range(count))
    unread = "".join(f'<port id="{count + extra}" />' for extra in range(1, outputs))
    dims = "".join(f"<dim>{dim}</dim>" for dim in declared.split(",") if dim)
    layers.append(
        f'<layer id="{count}" name="tested" type="{type_}" version="{version}"><data {attributes} />'
        f'<input>{ports}</input><output><port id="{count}" names="y">{dims}</port>{unread}</output></layer>'
    )
    if as_shape:
        layers += [
            _source(count + 2, 0, weights),
            f'<layer id="{count + 3}" name="shaped" type="Broadcast" version="opset3"><data mode="bidirectional" />'
            '<input><port id="0" /><port id="1" /></input><output><port id="2" names="shaped" /></output></layer>',
        ]
        edges.append(f'<edge from-layer="{count + 2}" from-port="0" to-layer="{count + 3}" to-port="0" />')
        edges.append(f'<edge from-layer="{count}" from-port="{count}" to-layer="{count + 3}" to-port="1" />')
    layers.append(
        f'<layer id="{count + 1}" name="result" type="Result" version="opset1"><input><port id="0" /></input></layer>'
    )
    last, port = (count + 3, 2) if as_shape else (count, count)
    edges.append(f'<edge from-layer="{last}" from-port="{port}" to-layer="{count + 1}" to-port="0" />')
    path = folder / "model.xml"
    path.write_text(
        f'<net name="one" version="11"><layers>{"".join(layers)}</layers><edges>{"".join(edges)}</edges></net>'
    )
    path.with_suffix(".bin").write_bytes(bytes(weights))
    return load_ir(path)


def _source(index: int, read: Input, weights: bytearray) -> str:
    output = f'<output><port id="0" names="i{index}" /></output></layer>'
    if isinstance(read, str):
        element_type, _, shape = read.partition(" ")
        return (
            f'<layer id="{index}" name="i{index}" type="Parameter" version="opset1">'
            f'<data element_type="{element_type}" shape="{shape}" />{output}'
        )
    content = np.array(read, dtype=np.int64).tobytes()
    shape = "" if isinstance(read, int) else str(len(read))
    place = f'offset="{len(weights)}" size="{len(content)}"'
    weights += content
    return (
        f'<layer id="{index}" name="i{index}" type="Const" version="opset1">'
        f'<data element_type="i64" shape="{shape}" {place} />{output}'
    )
