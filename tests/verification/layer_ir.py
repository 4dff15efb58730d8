"""OpenVINO IR of one layer that reads parameters alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from splitgraph.formats import OpenVINOModel, load_ir

_PRECISIONS = {"f32": "FP32", "i64": "I64", "i32": "I32"}


def of_layer(
    folder: Path, kind: str, version: str, parameters: Sequence[tuple[str, str]], rank: int, data: str = ""
) -> OpenVINOModel:
    """A layer of an operator set that gives one value of a rank and of the first parameter's type.

    parameters: their element type and shape as IR writes it ("f32", "4,?"). data: the layer's attributes.
    """
    ports = [_port(at, dtype, shape.count(",") + 1 if shape else 0) for at, (dtype, shape) in enumerate(parameters)]
    given = _port(len(ports), parameters[0][0], rank)
    layers = [
        f'<layer id="{at}" name="p{at}" type="Parameter" version="opset1">'
        f'<data shape="{shape}" element_type="{dtype}"/><output>{_numbered(ports[at], 0)}</output></layer>'
        for at, (dtype, shape) in enumerate(parameters)
    ]
    layers += [
        f'<layer id="{len(ports)}" name="y" type="{kind}" version="{version}"><data {data}/>'
        f"<input>{''.join(ports)}</input><output>{given}</output></layer>",
        f'<layer id="{len(ports) + 1}" name="end" type="Result" version="opset1">'
        f"<input>{_numbered(given, 0)}</input></layer>",
    ]
    edges = [(at, 0, len(ports), at) for at in range(len(ports))] + [(len(ports), len(ports), len(ports) + 1, 0)]
    wires = "".join(f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>' for a, b, c, d in edges)
    path = folder / "model.xml"
    path.write_text(f'<net name="m" version="11"><layers>{"".join(layers)}</layers><edges>{wires}</edges></net>')
    path.with_suffix(".bin").write_bytes(b"")
    return load_ir(path)


def _port(number: int, dtype: str, rank: int) -> str:
    return f'<port id="{number}" precision="{_PRECISIONS[dtype]}">{"<dim>-1</dim>" * rank}</port>'


def _numbered(port: str, number: int) -> str:
    return f'<port id="{number}"{port[port.index(" precision") :]}'
