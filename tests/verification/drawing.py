"""Inputs drawn for a model, case by case."""

from __future__ import annotations

from typing import Any

import onnx

from splitgraph.inference import infer_model
from splitgraph.verification.inputs.input_maker import InputMaker


def maker(model: onnx.ModelProto, **options: Any) -> InputMaker:
    return InputMaker(infer_model(model, fill=False), **options)


def draw(model: onnx.ModelProto, cases: int = 3, **options: Any) -> list[dict[str, Any]]:
    made, drawn, earlier = maker(model, **options), [], []
    for case in range(cases):
        values, sizes = made.draw(case, 0, earlier)
        drawn.append(values)
        earlier.append(sizes)
    return drawn
