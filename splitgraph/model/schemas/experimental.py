"""The experimental operators of onnx 1.0 to 1.4, whose schemas onnx no longer has.

They had no versions: each stands here as onnx last documented it. An attribute that was optional without a default, and
without which no runtime loads the node, is required here. onnxruntime loads these operators up to opset 9, but for
those without a kernel: ConstantFill, GivenTensorFill and GRUUnit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from splitgraph.model.onnx_proto import AttributeProto
from splitgraph.model.schemas import table
from splitgraph.model.schemas.operator_version import Formal, FormalAttribute, OperatorVersion

_FLOATS = frozenset({"tensor(double)", "tensor(float)", "tensor(float16)"})
_INDICES = frozenset({"tensor(int32)", "tensor(int64)"})
_INT, _FLOAT, _INTS = AttributeProto.INT, AttributeProto.FLOAT, AttributeProto.INTS


def _attribute(name: str, type: int, default: float | None = None, *, required: bool = False) -> FormalAttribute:
    return FormalAttribute(name, type, required, default)


def _operator(
    op: str, inputs: tuple[Formal, ...], attributes: tuple[FormalAttribute, ...] = (), output: Formal | None = None
) -> OperatorVersion:
    """Return an experimental operator; without `output` the output is of the type of the first input."""
    given = output or replace(inputs[0], name="output", option="single")
    least = sum(formal.option == "single" for formal in inputs)
    named = {attribute.name: attribute for attribute in attributes}
    return OperatorVersion("", op, 1, False, False, named, inputs, (given,), least, len(inputs), 1)


def _input(name: str, variable: str, types: frozenset[str], *, optional: bool = False) -> Formal:
    return Formal(name, variable, types, "optional" if optional else "single", True, 1)


def _floats(op: str, *attributes: FormalAttribute) -> OperatorVersion:
    return _operator(op, (_input("input", "T", _FLOATS),), attributes)


def _scaled(op: str, alpha: float | None, beta: float | None) -> OperatorVersion:
    pairs = (("alpha", alpha), ("beta", beta))
    return _floats(op, *(_attribute(name, _FLOAT, default, required=default is None) for name, default in pairs))


def _constant_fill() -> OperatorVersion:
    types = frozenset(f"tensor({name})" for name in ("float", "int32", "int64", "bool"))
    attributes = (
        _attribute("value", _FLOAT, 0.0),
        _attribute("dtype", _INT, 1),
        _attribute("shape", _INTS),
        _attribute("extra_shape", _INTS),
        _attribute("input_as_shape", _INT),
    )
    output = Formal("output", "T2", types, "single", True, 1)
    return _operator("ConstantFill", (_input("input", "T1", types, optional=True),), attributes, output)


def _given_tensor_fill() -> OperatorVersion:
    attributes = (
        _attribute("values", AttributeProto.FLOATS, required=True),
        _attribute("shape", _INTS),
        _attribute("extra_shape", _INTS),
        _attribute("input_as_shape", _INT),
    )
    return _operator("GivenTensorFill", (_input("shape", "T", _FLOATS, optional=True),), attributes)


def _dynamic_slice() -> OperatorVersion:
    slice_1 = table.version_at("", "Slice", 1)
    assert slice_1 is not None
    bounds = [_input(name, "Tind", _INDICES, optional=name == "axes") for name in ("starts", "ends", "axes")]
    return _operator("DynamicSlice", (_input("data", "T", slice_1.inputs[0].types), *bounds))


EXPERIMENTAL: Mapping[str, OperatorVersion] = {
    version.op: version
    for version in (
        _scaled("Affine", 1.0, 0.0),
        _constant_fill(),
        _floats("Crop", _attribute("border", _INTS, required=True), _attribute("scale", _INTS)),
        _dynamic_slice(),
        _given_tensor_fill(),
        _floats(
            "ImageScaler",
            _attribute("bias", AttributeProto.FLOATS, required=True),
            _attribute("scale", _FLOAT, 1.0),
        ),
        _floats(
            "MeanVarianceNormalization",
            _attribute("across_channels", _INT, 0),
            _attribute("normalize_variance", _INT, 1),
        ),
        _scaled("ParametricSoftplus", None, None),
        _floats("Scale", _attribute("scale", _FLOAT, 1.0)),
        _scaled("ScaledTanh", None, None),
        _floats("ThresholdedRelu", _attribute("alpha", _FLOAT, 1.0)),
    )
}

# Experimental operators of which nobody says exactly what they compute, with the reason.
UNSPECIFIED: Mapping[str, str] = {
    "ATen": "its attributes name an operator of PyTorch, of which ONNX says nothing",
    "Caffe2ConvTranspose": "it is an operator of Caffe2 that no release of onnx 1 has",
    "ChannelShuffle": "no release of onnx 1 has it",
    "Embedding": "only onnx 1.0 had it, and no runtime loads it",
    "FC": "the document of onnx 1.0 gives two layouts of its weights",
    "GRUUnit": "its document does not give the equations, and no runtime loads it",
    "LoopIndexTensor": "it has a meaning only in the loops of onnx 1.1, and no runtime loads it",
    "SpatialBN": "it is an operator of Caffe2 that no release of onnx 1 has",
}

# The opset from which on an operator is no longer experimental, but gone, or an operator like any other.
_ENDS = {"ConstantFill": 9, "MeanVarianceNormalization": 9}
_ENDS_OTHERWISE = 10


def experiments_end(op: str) -> int:
    """Return the opset from which on an experimental operator is gone, or an operator like any other."""
    return _ENDS.get(op, _ENDS_OTHERWISE)


def experimental_at(op: str, opset: int) -> OperatorVersion | None:
    """Return an operator of ai.onnx as the experiment that it is at an opset; None where it is none."""
    return EXPERIMENTAL.get(op) if opset < experiments_end(op) else None


def was_experimental(op: str) -> bool:
    """Return True for an operator that onnx had as an experiment, and has no longer."""
    return op in UNSPECIFIED or (op in EXPERIMENTAL and not table.versions_of("", op))
