"""Repairs of faulty nodes that can mean only one thing.

There are three: an attribute that the version does not have and that changes nothing; an attribute or outputs that a
Split-18 lacks; a value that another version names differently. Forbidden element types that runtimes read, all in one
way, need no repair: the tables at the end list them.

A node is repaired only if its attributes, the reference evaluator and OpenVINO agree on its meaning, as far as they
accept it (onnxruntime refuses all of these nodes). Where they differ, the node stays an error: the reference evaluator
obeys `axes` of a ReduceMax-18, for example, and OpenVINO ignores them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from splitgraph.dim import DimLike
from splitgraph.inference.context import NodeContext
from splitgraph.inference.walk_results import Repair
from splitgraph.model.attributes import UNRESOLVED, attribute_value, make_attribute
from splitgraph.model.onnx_proto import AttributeProto
from splitgraph.model.schemas import OperatorVersion, kinds, version_at, versions_of
from splitgraph.model.schemas.allowed_values import constrained_attributes, fault_of_value, meant_value
from splitgraph.model.value_type import MAX_ITEMS
from splitgraph.splits.canonical import clamped_lengths


def find_repairs(ctx: NodeContext, schema: OperatorVersion) -> list[Repair]:
    """Return the repairs of an ai.onnx node. There are none if it is sound, or if it can mean several things."""
    unknown = ctx.attributes().keys() - schema.attributes.keys()
    values = _of_values(ctx, schema)
    if not unknown and schema.op != "Split":
        return values
    candidates = [_superfluous(ctx, schema, name) for name in ctx.attributes() if name in unknown]
    repairs = [repair for repair in candidates if repair is not None]
    if len(repairs) < len(candidates):
        return []
    repairs += values
    if schema.op == "Split" and schema.since_version >= 18:
        more = _of_split_18(ctx)
        return repairs if more is None else [*repairs, more]
    return repairs


# Values that the version does not allow -------------------------------------------------------------------------------

# Attributes that are read only with some values of another attribute.
_READ_ONLY_WITH = {("Resize", "nearest_mode"): ("mode", ("nearest",))}
_HELP_OF_VALUE = "Set {} to {!r}; a conversion does so."
_HELP_OF_UNREAD = "Remove the attribute; a conversion does so."


def _of_values(ctx: NodeContext, schema: OperatorVersion) -> list[Repair]:
    """Return the repairs of attributes with a value that the version does not allow."""
    repairs = []
    for name in ctx.attributes().keys() & constrained_attributes("", schema.op):
        # An attribute of a function has a value for each call.
        if ctx.attributes()[name].ref_attr_name or name not in schema.attributes:
            continue
        value = ctx.attribute(name)
        fault = fault_of_value("", schema.op, schema.since_version, name, value)
        if fault is None or fault.run_by:
            continue
        label = f"{schema.op}-{schema.since_version}: {fault.text}"
        shape = ctx.input(0).shape
        meant = meant_value("", schema.op, schema.since_version, name, value, None if shape is None else len(shape))
        governing, values = _READ_ONLY_WITH.get((schema.op, name), ("", ()))
        if meant is not None:
            text = f"{label}. It can only mean {meant!r} here"
            repairs.append(Repair("SG302", text, (), make_attribute(name, meant), _HELP_OF_VALUE.format(name, meant)))
        elif governing and _value_or_default(ctx, schema, governing) not in (*values, UNRESOLVED):
            repairs.append(
                Repair("SG302", f"{label}. It changes nothing here and is ignored", (name,), None, _HELP_OF_UNREAD)
            )
    return repairs


def _value_or_default(ctx: NodeContext, schema: OperatorVersion, name: str) -> object:
    formal = schema.attributes.get(name)
    return ctx.attribute(name, None if formal is None else formal.default_value)


# Attributes that the version does not have ----------------------------------------------------------------------------


def _superfluous(ctx: NodeContext, schema: OperatorVersion, name: str) -> Repair | None:
    attribute = ctx.attributes()[name]
    if attribute.ref_attr_name:
        return None
    rule = _RULES.get((schema.op, name)) or _RULES.get(("", name)) or _is_later_default
    value = attribute_value(attribute)
    if not changes_nothing(schema.op, name, value) and not rule(ctx, schema, name, value):
        return None
    label = f"{schema.op}-{schema.since_version}"
    text = f"{label} has no attribute {name!r}; it changes nothing here and is ignored"
    return Repair("SG416", text, (name,))


# A list whose elements are all 1.
ALL_ONES = "all 1"
# By operator and attribute, the value that changes nothing.
SUPERFLUOUS: Mapping[str, Mapping[str, int | str]] = {
    **{op: {"dilations": ALL_ONES} for op in ("AveragePool", "LpPool", "MaxPool")},
    "BatchNormalization": {"spatial": 1},
    **{op: {"output_sequence": 0} for op in sorted(kinds.RECURRENT)},
    "Resize": {"antialias": 0, "keep_aspect_ratio_policy": "stretch"},
}


def changes_nothing(op: str, name: str, value: object) -> bool:
    """Return True if an attribute of another version has a value that changes nothing."""
    neutral = SUPERFLUOUS.get(op, {}).get(name)
    if neutral == ALL_ONES:
        return isinstance(value, tuple) and bool(value) and set(value) == {1}
    return neutral is not None and value == neutral


# Decides whether an attribute that the version does not have may be removed.
_Rule = Callable[[NodeContext, OperatorVersion, str, object], bool]
# The default of these does not mean the same as the version before.
_OTHER_BY_DEFAULT = frozenset({"Resize", "Upsample", "coordinate_transformation_mode"})


def _is_later_default(_: NodeContext, schema: OperatorVersion, name: str, value: object) -> bool:
    """Return True if a later version has the attribute with this value as default, and means the same as this version
    then.
    """
    if schema.op in _OTHER_BY_DEFAULT or name in _OTHER_BY_DEFAULT:
        return False
    later = (
        version.attributes.get(name)
        for version in versions_of("", schema.op)
        if version.since_version > schema.since_version
    )
    first = next((formal for formal in later if formal is not None), None)
    return first is not None and first.default_value is not None and first.default_value == value


def _is_of_the_past(_: NodeContext, schema: OperatorVersion, name: str, value: object) -> bool:
    """Return True if an earlier version had the attribute, and it never changed the outputs."""
    return any(
        name in version.attributes
        for version in versions_of("", schema.op)
        if version.since_version < schema.since_version
    )


def _broadcasts_alike(ctx: NodeContext, schema: OperatorVersion, name: str, value: object) -> bool:
    """Return True if the attribute is 1 and there is no axis: before opset 7, an operator then broadcasts as later
    versions do.
    """
    return "axis" not in ctx.attributes() and value == 1 and _is_of_the_past(ctx, schema, name, value)


def _counts_outputs(ctx: NodeContext, schema: OperatorVersion, name: str, value: object) -> bool:
    """Return True if the chunks are equal parts, as of this version. Without another reading they are taken for such;
    a node that is read by its form has another one.
    """
    total, count = _split_dimension(ctx), len(ctx.outputs)
    if ctx.reads_by_form and (total is None or total % count):
        return False
    return value == count


def _ratio_unused(ctx: NodeContext, schema: OperatorVersion, name: str, value: object) -> bool:
    """Return True if a Dropout cannot be in training: it returns its input then."""
    return not ctx.has_input(1) and not ctx.has_input(2)


def _is_for_inference(ctx: NodeContext, schema: OperatorVersion, name: str, value: object) -> bool:
    return value == 1 and schema.since_version >= 7 and not ctx.attribute("training_mode", 0)


def _lengths_alike(ctx: NodeContext, schema: OperatorVersion, name: str, value: object) -> bool:
    """Return True if the lengths equal those of the input, or are equal parts of a known dimension."""
    if not isinstance(value, tuple) or len(value) != len(ctx.outputs):
        return False
    if ctx.has_input(1):
        return _input_is(ctx, value)
    return len(set(value)) == 1 and sum(value) == _split_dimension(ctx) and "num_outputs" not in ctx.attributes()


def _axes_alike(ctx: NodeContext, schema: OperatorVersion, name: str, value: object) -> bool:
    """Return True if the axes equal those of the input, or the default axes."""
    if not isinstance(value, tuple):
        return False
    shape = ctx.input(0).shape
    if ctx.has_input(1):
        return _input_is(ctx, value)
    if shape is None or schema.op == "Unsqueeze":
        return False
    axes = {axis + len(shape) if isinstance(axis, int) and axis < 0 else axis for axis in value}
    if schema.op == "Squeeze":
        return all(isinstance(dim, int) for dim in shape) and axes == {at for at, dim in enumerate(shape) if dim == 1}
    return axes == set(range(len(shape))) and "noop_with_empty_axes" not in ctx.attributes()


def _has_axes(ctx: NodeContext, schema: OperatorVersion, name: str, value: object) -> bool:
    """Return True for the value 0, which is the behaviour of this version, and for a node with axes: the attribute only
    matters without them.
    """
    return value == 0 or bool(ctx.attribute("axes"))


def _input_is(ctx: NodeContext, value: tuple[object, ...]) -> bool:
    contents = ctx.contents(1)
    return contents is not None and tuple(contents.items) == value


def _split_dimension(ctx: NodeContext) -> int | None:
    dim = _dimension(ctx)
    return dim if isinstance(dim, int) else None


def _dimension(ctx: NodeContext) -> DimLike | None:
    """Return the dimension that a Split splits; None if it is unknown."""
    shape, axis = ctx.input(0).shape, ctx.attribute("axis", 0)
    if shape is None or not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
        return None
    return shape[axis]


def _has_one_scale(ctx: NodeContext, schema: OperatorVersion, name: str, value: object) -> bool:
    """Return True if there is no axis along which scales could differ."""
    shape = ctx.input(1).shape
    return _is_later_default(ctx, schema, name, value) and shape is not None and all(size == 1 for size in shape)


# By operator ("" for every operator) and attribute.
_RULES: dict[tuple[str, str], _Rule] = {
    ("", "consumed_inputs"): _is_of_the_past,
    ("", "broadcast"): _broadcasts_alike,
    ("", "noop_with_empty_axes"): _has_axes,
    ("", "axes"): _axes_alike,
    **{(op, "axis"): _has_one_scale for op in ("DequantizeLinear", "QuantizeLinear")},
    ("Split", "num_outputs"): _counts_outputs,
    ("Split", "split"): _lengths_alike,
    ("Dropout", "ratio"): _ratio_unused,
    ("BatchNormalization", "is_test"): _is_for_inference,
    ("Dropout", "is_test"): _is_for_inference,
}


# What a Split-18 lacks ------------------------------------------------------------------------------------------------


def _of_split_18(ctx: NodeContext) -> Repair | None:
    count, parts, total = ctx.attributes().get("num_outputs"), len(ctx.outputs), _split_dimension(ctx)
    if count is None:
        if ctx.has_input(1) or not parts or not _fills(ctx, parts):
            return None
        text = f"neither the input split nor the attribute num_outputs is given; read as {parts} chunks"
        return Repair("SG207", text, (), make_attribute("num_outputs", parts))
    if not ctx.has_input(1):
        # No engine is known to run another version so.
        return _of_missing_outputs(ctx, count) if ctx.since_version == 18 else None
    if count.ref_attr_name or count.i != parts or total is None:
        return None
    if not _input_is(ctx, clamped_lengths(total, -(-total // parts), parts)):
        return None
    text = "both the input split and the attribute num_outputs are given and agree; num_outputs is removed"
    return Repair("SG208", text, ("num_outputs",))


_HELP_OF_OUTPUTS = "Add the missing outputs; upgrade, downgrade and convert do so."


def _of_missing_outputs(ctx: NodeContext, count: AttributeProto) -> Repair | None:
    """Return the repair of a node with fewer outputs than num_outputs. Nobody reads the last parts.

    OpenVINO runs uneven chunks only on a fixed dimension and an axis of at least 0, and refuses an empty last chunk. If
    a dynamic dimension is uneven at run time, its parts are wrong, which the finding says.
    """
    outputs, chunks, total = len(ctx.outputs), ctx.attribute("num_outputs"), _dimension(ctx)
    if count.ref_attr_name or not isinstance(chunks, int) or not 0 < outputs < chunks <= MAX_ITEMS:
        return None
    if total is None:
        return None
    if isinstance(total, int):
        is_run = total % chunks == 0 or (ctx.attribute("axis", 0) >= 0 and (chunks - 1) * -(-total // chunks) < total)
        if not is_run:
            return None
    is_even = isinstance(total, int) or ctx.facts.prove_divisible(total, chunks)
    where = "" if is_even else f" where the dimension is divisible by {chunks}"
    text = f"num_outputs is {chunks}, but the node has {outputs} output(s); they are the first of {chunks} parts. "
    text += f"The node runs alike in OpenVINO and the reference evaluator{where}; onnxruntime refuses it"
    return Repair("SG209", text, help=_HELP_OF_OUTPUTS, more_outputs=chunks - outputs)


def _fills(ctx: NodeContext, parts: int) -> bool:
    """Return True if no chunk is empty. The dimension must be known. No exporter means empty chunks."""
    total, shape, axis = _split_dimension(ctx), ctx.input(0).shape, ctx.attribute("axis", 0)
    if shape is not None and isinstance(axis, int) and not -len(shape) <= axis < len(shape):
        return False
    return total is None or total == 0 or (parts - 1) * -(-total // parts) < total


# Element types that the version does not allow, and that runtimes read, all in one way --------------------------------

# By operator, the inputs whose integers may be int32 where the schema asks for int64, or for one type in all of them.
# Runtimes read ConstantOfShape so, too, but a test of onnx demands the error (tests/conformance/test_onnx_suites.py).
INT32_INPUTS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys((*kinds.REDUCTIONS, "Squeeze", "Unsqueeze"), (1,)),
    **dict.fromkeys(("Expand", "GatherND", "Reshape", "ScatterND", "Tile", "TopK"), (1,)),
    "AffineGrid": (1,),
    "Loop": (0,),
    "NonMaxSuppression": (2,),
    "Resize": (3,),
    "ReverseSequence": (1,),
    "RoiAlign": (2,),
    "RotaryEmbedding": (3,),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "STFT": (1, 3),
}
_SMALL = ("int8", "int16", "uint8", "uint16")
_INTEGERS = (*_SMALL, "int32", "int64", "uint32", "uint64")
_WIDE = ("int32", "int64", "uint32", "uint64")
# By operator, the version that takes more element types and is otherwise the same, and those of its types that older
# versions are run with.
NEWER_TYPES: dict[str, tuple[int, tuple[str, ...]]] = {
    **dict.fromkeys(("Add", "Div", "Mul", "Sub"), (14, _SMALL)),
    "Clip": (12, _INTEGERS),
    "Equal": (11, (*_INTEGERS, "float16", "float32", "float64")),
    "Flatten": (9, (*_INTEGERS, "bool")),
    **dict.fromkeys(("Greater", "Less"), (9, _INTEGERS)),
    **dict.fromkeys(("Gemm", "MatMul", "PRelu"), (9, _WIDE)),
    **dict.fromkeys(("Max", "Min"), (12, _INTEGERS)),
    "Pow": (12, ("int32", "int64")),
    "Relu": (14, ("int8", "int16", "int32", "int64")),
}
# The oldest opset that was measured.
FIRST_OPSET = 7
Types = Sequence[str | None]


@cache
def newer_version(schema: OperatorVersion, opset: int) -> OperatorVersion | None:
    """Return the newer version of an operator by which runtimes read this one; None if there is none."""
    newer, _ = NEWER_TYPES.get(schema.op, (0, ()))
    if schema.domain or opset < FIRST_OPSET or schema.since_version >= newer:
        return None
    return version_at("", schema.op, newer)


def as_int64(schema: OperatorVersion, given: Types, opset: int) -> tuple[str | None, ...] | None:
    """Return the types of a node's inputs, with int32 as int64 where runtimes read it so. Return None if
    they do not.
    """
    inputs = INT32_INPUTS.get(schema.op, ())
    if (
        schema.domain
        or opset < FIRST_OPSET
        or not any(given[index] == "int32" for index in inputs if index < len(given))
    ):
        return None
    return tuple("int64" if index in inputs and text == "int32" else text for index, text in enumerate(given))


def are_measured(schema: OperatorVersion, given: Types) -> bool:
    """Return True if the newer version was measured with the types that this version does not allow."""
    _, measured = NEWER_TYPES[schema.op]
    return all(text is None or text in measured or text.startswith("float") for text in given)
