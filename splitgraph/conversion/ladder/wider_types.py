"""Computing a node in a wider element type where its operator does not take the type of its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from splitgraph.conversion.ladder.element_types import Slot, formal_at, slots_of
from splitgraph.conversion.step import Inexact, Step
from splitgraph.deferred import np
from splitgraph.schemas import OperatorVersion
from splitgraph.value_type import DTYPE_NUMBERS

# What each element type may be cast to so that casting the result back is exact, the first that is allowed taken.
_Table = Mapping[str, str]

# Elements are only moved: any type that holds every value of the narrower one. Between integers of one width Cast keeps
# the bits. saturate=0 gives the infinities of float8 back as they were.
_MOVED: _Table = {
    "bool": "uint8 int32 int64 float32",
    "int8": "int32 int64 float32",
    "uint8": "int32 uint32 int64 float32",
    "int16": "int32 int64 float32",
    "uint16": "int32 uint32 int64 float32",
    "int32": "int64 float64",
    "uint32": "int32 uint64 int64 float64",
    "int64": "uint64",
    "uint64": "int64",
    "float16": "float32",
    "bfloat16": "float32",
    "float32": "float64",
    "float8e4m3fn": "float16 float32",
    "float8e4m3fnuz": "float16 float32",
    "float8e5m2": "float16 float32",
    "float8e5m2fnuz": "float16 float32",
    "int4": "int8",
    "uint4": "uint8",
}
# Elements are compared, and the result is one of them or none at all: the cast must keep their order.
_ORDERED: _Table = {
    "bool": "uint8 int32 float32",
    "int8": "int32 float32 int64 float64",
    "uint8": "int32 float32 int64 float64",
    "int16": "int32 float32 int64 float64",
    "uint16": "int32 float32 int64 float64",
    "int32": "int64 float64",
    "uint32": "uint64 int64 float64",
    "float16": "float32",
    "bfloat16": "float32",
    "float8e4m3fn": "float16 float32",
    "float8e4m3fnuz": "float16 float32",
    "float8e5m2": "float16 float32",
    "float8e5m2fnuz": "float16 float32",
}
# No engine clips float64 at opset 11; integers of 32 bits are left to the adapter, which chooses between the bounds.
_CLIPPED: _Table = {dtype: wide for dtype, wide in _ORDERED.items() if dtype not in ("int32", "uint32")}
# The low bits of sums, differences and products depend on low bits only, and Cast to a narrower integer keeps these.
_MODULAR: _Table = {
    "int8": "int32 int64",
    "uint8": "uint32 int32 uint64 int64",
    "int16": "int32 int64",
    "uint16": "uint32 int32 uint64 int64",
    "int32": "int64",
    "uint32": "uint64 int64",
    "uint64": "int64",
    "float16": "float32",
    "bfloat16": "float32",
}
# Quotients and remainders of integers are exact in every type that holds both operands.
_DIVIDED: _Table = {
    "int8": "int32 int64",
    "uint8": "uint32 int32 uint64 int64",
    "int16": "int32 int64",
    "uint16": "uint32 int32 uint64 int64",
    "int32": "int64",
    "uint32": "uint64 int64",
    "float16": "float32",
    "bfloat16": "float32",
}
# float32 has more than twice the precision of the 16-bit types and two bits: an elementwise result, rounded twice, is
# the one rounded once. Longer computations round more coarsely in the narrow type itself.
_REAL: _Table = {"float16": "float32", "bfloat16": "float32"}

_TABLES: tuple[tuple[str, _Table], ...] = (
    (
        "Compress Concat DepthToSpace Equal Expand Flatten Gather GatherElements GatherND Identity MaxUnpool OneHot "
        "Reshape ReverseSequence Scatter Slice SpaceToDepth Squeeze Tile Transpose Trilu Unsqueeze Where",
        _MOVED,
    ),
    (
        "ArgMax ArgMin GlobalMaxPool Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual Max MaxPool "
        "MaxRoiPool Min NonZero ReduceMax ReduceMin Relu Sign TopK Unique",
        _ORDERED,
    ),
    ("Abs Add CumSum Gemm MatMul Mul Neg ReduceSum ReduceSumSquare ReduceProd Sub Sum", _MODULAR),
    ("Clip", _CLIPPED),
    ("Div Mod", _DIVIDED),
    (
        "Acos Acosh Asin Asinh Atan Atanh AveragePool BatchNormalization Ceil Celu Conv ConvTranspose Cos Cosh "
        "DeformConv Det Einsum Elu Erf Exp Floor Gelu GlobalAveragePool GlobalLpPool GridSample GRU HardSigmoid "
        "HardSwish Hardmax InstanceNormalization LRN LSTM LayerNormalization LeakyRelu Log LogSoftmax LpNormalization "
        "LpPool Mean MeanVarianceNormalization Mish NegativeLogLikelihoodLoss PRelu Pow RNN Reciprocal ReduceL1 "
        "ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean RoiAlign Round Selu Shrink Sigmoid Sin Sinh Softmax "
        "SoftmaxCrossEntropyLoss Softplus Softsign Sqrt Tan Tanh ThresholdedRelu",
        _REAL,
    ),
)
_TABLE_OF: Mapping[str, _Table] = {op: table for ops, table in _TABLES for op in ops.split()}
# Elements are moved as long as these attributes have their default.
_MOVED_BY_DEFAULT: Mapping[str, tuple[str, str]] = {
    "Pad": ("mode", "constant"),
    "ScatterElements": ("reduction", "none"),
    "ScatterND": ("reduction", "none"),
}
# What an empty set gives, in the narrower type.
_EMPTY: Mapping[str, tuple[str, str]] = {"ReduceMax": ("Max", "min"), "ReduceMin": ("Min", "max")}


def widen(step: Step, fits: OperatorVersion) -> None:
    """Cast what another version of the operator does not take to a type that it does, and the results back.

    Raises Inexact where no such type makes the node exact. What is written is in the dialect that the node comes from.
    """
    step.dialect = step.dialect or step.old.since_version
    groups: dict[str, list[Slot]] = {}
    for slot in slots_of(step.facts, step.old):
        groups.setdefault(slot.group, []).append(slot)
    widened = False
    for slots in groups.values():
        formals = [formal_at(fits.inputs if slot.is_input else fits.outputs, slot.position) for slot in slots]
        taken = [formal.types for formal in formals if formal is not None]
        # What has no place at all in the other version is not for a cast to help.
        if not taken or all(slot.types <= types for slot in slots for types in taken):
            continue
        allowed = frozenset.intersection(*taken)
        _widen_group(step, slots, allowed)
        widened = True
    if not widened:
        raise Inexact("its element types are not what stands in the way")


def _widen_group(step: Step, slots: Sequence[Slot], allowed: frozenset[str]) -> None:
    narrow = slots[0].found
    wide = _wider(step, narrow, allowed)
    step.reasons["type"] = f"{step.form.op_type} does not take {narrow} {step.side}"
    cast: dict[str, str] = {}
    for slot in slots:
        if slot.is_input:
            name = step.inputs[slot.position]
            if name not in cast:
                cast[name] = step.emit("Cast", [name], f"as_{wide}", to=DTYPE_NUMBERS[wide])
            step.inputs[slot.position] = cast[name]
            continue
        name = step.redirect(slot.position, f"as_{wide}")
        result = step.outputs[slot.position]
        if step.form.op_type in _EMPTY and narrow not in _REAL:
            result = _bounded(step, result, narrow, wide)
        saturate = 0 if narrow.startswith("float8") else None
        step.emit_after("Cast", [result], name, to=DTYPE_NUMBERS[narrow], saturate=saturate)


def _wider(step: Step, narrow: str, allowed: frozenset[str]) -> str:
    """The type to compute in: the first of those that are exact which is allowed."""
    op_type = step.form.op_type
    table = _TABLE_OF.get(op_type)
    if op_type in _MOVED_BY_DEFAULT:
        name, default = _MOVED_BY_DEFAULT[op_type]
        table = _MOVED if step.value(name, default) == default else _REAL
    types = {"float32": "tensor(float)", "float64": "tensor(double)"}
    for wide in (table or {}).get(narrow, "").split():
        if types.get(wide, f"tensor({wide})") in allowed:
            return wide
    raise Inexact(f"no element type that it takes holds {narrow or 'a type that is unknown'} exactly")


def _bounded(step: Step, result: str, narrow: str, wide: str) -> str:
    """The reduction of an empty set in the wide type, as that in the narrow one."""
    op_type, bound = _EMPTY[step.form.op_type]
    limits = {"min": 0, "max": 1} if narrow == "bool" else {"min": np.iinfo(narrow).min, "max": np.iinfo(narrow).max}
    name = step.new_name("bounded")
    step.emit_after(op_type, [result, step.constant(limits[bound], "bound", wide)], name)
    return name
