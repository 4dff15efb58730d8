"""The versions of an ai.onnx operator, as plain values read once from the schemas of the installed onnx."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import onnx
from onnx.defs import OpSchema

from splitgraph.graph.attributes import attribute_value

Option = Literal["single", "optional", "variadic"]

_OPTIONS: dict[Any, Option] = {
    OpSchema.FormalParameterOption.Single: "single",
    OpSchema.FormalParameterOption.Optional: "optional",
    OpSchema.FormalParameterOption.Variadic: "variadic",
}


@dataclass(frozen=True, slots=True)
class Formal:
    """A formal input or output of an operator.

    type_variable: or the type itself. types: those allowed ("tensor(float)"). homogeneous: all values bound to the
    type variable have the same type. min_count: least number of values of a variadic one.
    """

    name: str
    type_variable: str
    types: frozenset[str]
    option: Option
    homogeneous: bool
    min_count: int

    @property
    def is_generic(self) -> bool:
        """True when the type is a variable that other inputs and outputs may share."""
        return "(" not in self.type_variable


@dataclass(frozen=True, slots=True)
class FormalAttribute:
    """An attribute of an operator version; type: the number of AttributeProto, default: None when there is none."""

    type: int
    required: bool
    default: onnx.AttributeProto | None

    @property
    def default_value(self) -> Any:
        """The default as a Python value, None when there is none."""
        return None if self.default is None else attribute_value(self.default)


@dataclass(frozen=True, slots=True)
class OperatorVersion:
    """One version of an operator. max_inputs, max_outputs: how many values the node may name."""

    op: str
    since_version: int
    deprecated: bool
    has_function: bool
    attributes: Mapping[str, FormalAttribute]
    inputs: tuple[Formal, ...]
    outputs: tuple[Formal, ...]
    max_inputs: int
    max_outputs: int


@cache
def version_at(op: str, opset: int) -> OperatorVersion | None:
    """The version of an ai.onnx operator that an opset means, None when the operator does not exist there."""
    if op in _EXPERIMENTAL:
        return _EXPERIMENTAL[op][opset >= _WITHOUT_EXPERIMENTS]
    try:
        schema = onnx.defs.get_schema(op, opset, "")
    except onnx.defs.SchemaError:
        return None
    return _read(op, schema.since_version)


@cache
def versions_between(op: str, lowest: int, highest: int) -> tuple[OperatorVersion, ...]:
    """Every version that the opsets lowest..highest mean, oldest first; the operator may be younger than `lowest`."""
    versions: list[OperatorVersion] = []
    version = version_at(op, highest)
    while version is not None:
        versions.append(version)
        if version.since_version <= lowest:
            break
        version = version_at(op, version.since_version - 1)
    return tuple(reversed(versions))


@cache
def _read(op: str, since_version: int) -> OperatorVersion:
    schema: Any = onnx.defs.get_schema(op, since_version, "")
    constraints = {bound.type_param_str: frozenset(bound.allowed_type_strs) for bound in schema.type_constraints}
    return OperatorVersion(
        op,
        schema.since_version,
        schema.deprecated,
        schema.has_function or schema.has_context_dependent_function,
        {name: _formal_attribute(attribute) for name, attribute in schema.attributes.items()},
        tuple(_formal(parameter, constraints) for parameter in schema.inputs),
        tuple(_formal(parameter, constraints) for parameter in schema.outputs),
        schema.max_input,
        schema.max_output,
    )


def _formal(parameter: Any, constraints: Mapping[str, frozenset[str]]) -> Formal:
    # Not `parameter.types`, which says the same: onnx below 1.21 cannot hand that over to Python.
    return Formal(
        parameter.name,
        parameter.type_str,
        constraints.get(parameter.type_str, frozenset((parameter.type_str,))),
        _OPTIONS[parameter.option],
        parameter.is_homogeneous,
        parameter.min_arity,
    )


def _constant_fill() -> OperatorVersion:
    """The experimental operator that onnx 1.0 to 1.3 had, as its document gives it."""
    types = frozenset(f"tensor({name})" for name in ("float", "int32", "int64", "bool"))
    kinds, make = onnx.AttributeProto, onnx.helper.make_attribute
    attributes = {
        "value": FormalAttribute(kinds.FLOAT, False, make("value", 0.0)),
        "dtype": FormalAttribute(kinds.INT, False, make("dtype", 1)),
        "shape": FormalAttribute(kinds.INTS, False, None),
        "extra_shape": FormalAttribute(kinds.INTS, False, None),
        "input_as_shape": FormalAttribute(kinds.INT, False, None),
    }
    inputs = (Formal("input", "T1", types, "optional", True, 1),)
    outputs = (Formal("output", "T2", types, "single", True, 1),)
    return OperatorVersion("ConstantFill", 1, False, False, attributes, inputs, outputs, 1, 1)


# From this opset on ConstantOfShape is there. No schema is left of what was experimental.
_WITHOUT_EXPERIMENTS = 9
_EXPERIMENTAL = {
    version.op: (version, replace(version, since_version=_WITHOUT_EXPERIMENTS, deprecated=True))
    for version in (_constant_fill(),)
}


def _formal_attribute(attribute: Any) -> FormalAttribute:
    default = attribute.default_value
    number = onnx.AttributeProto.AttributeType.Value(attribute.type.name)
    return FormalAttribute(number, attribute.required, default if default.type else None)
