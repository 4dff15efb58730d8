"""One version of an operator: what its schema says of inputs, outputs and attributes; and the file of all versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from splitgraph.model.attributes import make_attribute
from splitgraph.model.onnx_proto import AttributeProto

Option = Literal["single", "optional", "variadic"]


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


@dataclass(frozen=True)
class FormalAttribute:
    """An attribute of an operator version; type: the number of AttributeProto, default_value: as a Python value, None
    when there is none.
    """

    name: str
    type: int
    required: bool
    default_value: Any = None

    @cached_property
    def default(self) -> AttributeProto | None:
        """The default as a node would have it, None when there is none. Few of them are ever asked for."""
        return None if self.default_value is None else make_attribute(self.name, self.default_value)


@dataclass(frozen=True, eq=False)
class OperatorVersion:
    """One version of an operator.

    domain: "" for ai.onnx. has_function: onnx has a function body for it. min_inputs, max_inputs, max_outputs: how many
    values a node may name.
    """

    domain: str
    op: str
    since_version: int
    deprecated: bool
    has_function: bool
    attributes: Mapping[str, FormalAttribute]
    inputs: tuple[Formal, ...]
    outputs: tuple[Formal, ...]
    min_inputs: int
    max_inputs: int
    max_outputs: int

    @cached_property
    def min_outputs(self) -> int:
        """How many outputs a node must name: up to the last that is not optional."""
        required = (place for place, formal in enumerate(self.outputs, 1) if formal.option != "optional")
        return max(required, default=0)


# The table -----------------------------------------------------------------------------------------------------------


TABLE = Path(__file__).with_name("schemas.txt")

# How many values an input or output stands for, as the table marks it: option, whether they are of one type, least
# number.
MARKS: Mapping[str, tuple[Option, bool, int]] = {
    "": ("single", True, 1),
    "?": ("optional", True, 1),
    "*": ("variadic", True, 1),
    "**": ("variadic", False, 1),
    "*0": ("variadic", True, 0),
    "**0": ("variadic", False, 0),
}
