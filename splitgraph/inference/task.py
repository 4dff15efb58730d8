"""The task of an inference: a model, the sizes that the caller gives, and the options.

`Task` holds it all. `read_sizes` makes the caller's sizes from what was typed; `fix_sizes` writes them into a model.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from splitgraph.dim import (
    Dim,
    DimLike,
    evaluate,
    level_of,
    marks_unknown,
    parse_dim,
    parse_given_dim,
    read_dim_param,
    substitute_if_defined,
    symbol,
    symbols_of,
)
from splitgraph.findings.diagnostics import SplitgraphError, diagnostic, meant
from splitgraph.inference.walk_results import SetAside
from splitgraph.model.names import declared_values, dimension_names
from splitgraph.model.onnx_proto import (
    FunctionProto,
    ModelProto,
    ValueInfoProto,
)
from splitgraph.model.scopes import FunctionKey, GraphPath, Scope, function_key, model_imports, plain_functions
from splitgraph.model.value_type import ValueType
from splitgraph.model.values import LARGEST_DIM, tensor_types, value_type, write_dim, write_shape
from splitgraph.options import Sizes
from splitgraph.splits.variadic_split_1 import is_variadic_function


class Follow(Protocol):
    """Reads constants of nodes in other words before the nodes are inferred (`conversion/sizes/follow.py`)."""

    def begin(self) -> None:
        """Begin a walk."""

    def bounds(self) -> Mapping[str, tuple[int, int | None]]:
        """Return the bounds of symbols that are known from the start."""

    def is_own(self, path: GraphPath, index: int) -> bool:
        """Return True for a node that is not read like others that look alike."""

    def __call__(self, ctx: Any) -> None:
        """See a node, as its rule will."""


class BoundSizes(NamedTuple):
    """The sizes that the caller gives, for the symbols and inputs of a model.

    bound: the values of the model's symbols: numbers, or other symbols if a given shape has another name for a
    dimension. given: the type of each input with the given shape, None for an input without one; empty if no shapes are
    given.
    """

    bound: Mapping[str, DimLike]
    given: Sequence[ValueType | None]


UNBOUND = BoundSizes({}, ())


@dataclass(slots=True)
class Task:
    """A model, the options of its inference, and what the model declares besides its graphs.

    empty_chunks: what num_outputs chunks that overrun the dimension are. sizes: those that the caller gives. reserved:
    names that no generated symbol may have, besides those of the outermost graphs. is_reported: False for conversion,
    which needs no split reports, no warnings and no meanings of declared names. believes_shapes: declared shapes of
    node outputs are believed where inference does not know them. assumes_defaults: the defaults of the model's inputs
    are taken as constants. assumes_nonempty: the broadcast of dimensions that may be empty is assumed to be the larger
    one. sorts: all graphs are walked in topological order. set_aside: nodes with an accepted finding, by location, of
    which nothing is concluded. reads_by_form: a node in the form of another version is of that version. demands: by
    graph and name, what nodes demand of values of which an earlier walk knew less. given_types, declared_types: for a
    model of another format than ONNX, by graph and name: the types of inputs and constants, and the declared types of
    outputs. follow: sees each node before it is inferred.

    function_names: domain and name of every function: a node with that operator type may be a call, depending on its
    overload. input_dimensions: the names of dimensions in the declared shapes of the model's inputs. most_calls,
    most_repeated: how many calls are walked, and how many splits and findings of repeated calls are listed.
    """

    model: ModelProto
    empty_chunks: str = "clamp"
    sizes: BoundSizes = UNBOUND
    reserved: frozenset[str] = frozenset()
    is_reported: bool = True
    believes_shapes: bool = True
    assumes_defaults: bool = False
    assumes_nonempty: bool = False
    sorts: bool = False
    set_aside: SetAside = field(default_factory=dict)
    reads_by_form: bool = False
    demands: Mapping[GraphPath, Mapping[str, ValueType]] = field(default_factory=dict)
    given_types: Mapping[GraphPath, Mapping[str, ValueType]] = field(default_factory=dict)
    declared_types: Mapping[GraphPath, Mapping[str, ValueType]] = field(default_factory=dict)
    follow: Follow | None = None
    functions: dict[FunctionKey, FunctionProto] = field(init=False)
    variadic: set[FunctionKey] = field(init=False)
    function_names: set[tuple[str, str]] = field(init=False)
    plain_functions: frozenset[str] = field(init=False)
    imports: dict[str, int] = field(init=False)
    input_dimensions: set[str] = field(init=False)
    most_calls: int = field(init=False)
    most_repeated: int = field(init=False)

    def __post_init__(self) -> None:
        if self.empty_chunks not in ("clamp", "error"):
            raise SplitgraphError(f"empty_chunks is {self.empty_chunks!r}; it must be 'clamp' or 'error'")
        model = self.model
        self.functions = {function_key(function): function for function in model.functions}
        self.variadic = {function_key(function) for function in model.functions if is_variadic_function(function)}
        self.function_names = {key[:2] for key in self.functions}
        self.plain_functions = plain_functions(model)
        self.imports = model_imports(model)
        self.input_dimensions = {
            name
            for value in model.graph.input
            for dim in value.type.tensor_type.shape.dim
            if not marks_unknown(dim.dim_param)
            for name in symbols_of(parse_dim(dim.dim_param))
        }
        self.most_calls, self.most_repeated = most_calls(model), most_repeated(model)

    def bind(self, value: ValueType) -> ValueType:
        """Return the type with the caller's values in place of symbols."""
        return bound_type(value, self.sizes.bound)


# Limits ---------------------------------------------------------------------------------------------------------------

# The number of splits and findings of repeated calls that are listed for a small file.
MOST_REPEATED = 1_000
# Functions that call functions twice, each time with other types, turn a file of a few lines into a model of millions
# of nodes.
_MANY_CALLS = 2_000


def most_calls(model: ModelProto) -> int:
    """Return the limit of walked calls that repeat no earlier call: a fixed number, or the number of nodes in the file
    if that is larger.
    """
    return max(_MANY_CALLS, _nodes_in_file(model))


def most_repeated(model: ModelProto) -> int:
    """Return the limit of splits and findings that repeated calls list again."""
    return max(MOST_REPEATED, _nodes_in_file(model))


def _nodes_in_file(model: ModelProto) -> int:
    return len(model.graph.node) + sum(len(function.node) for function in model.functions)


# Reading the sizes that the caller gives ------------------------------------------------------------------------------


def read_sizes(model: ModelProto, sizes: Sizes) -> BoundSizes:
    """Return the sizes for a model. Raise SplitgraphError for a name that the model does not have, or for a value that
    is no size.
    """
    given = _read_input_shapes(model, sizes.input_shapes)
    numbers = _read_bindings(model, sizes.bind, given)
    if not numbers and not any(given):
        return UNBOUND
    given = [None if known is None or known.shape is None else bound_type(known, numbers) for known in given]
    return BoundSizes({**_implied_bindings(model, given), **numbers}, given)


def bound_type(value: ValueType, bound: Mapping[str, DimLike]) -> ValueType:
    """Return the type with the given values in place of symbols."""
    if not bound or value.shape is None:
        return value if value.element is None else replace(value, element=bound_type(value.element, bound))
    return value.with_shape([substitute_if_defined(dim, bound) if isinstance(dim, Dim) else dim for dim in value.shape])


def _read_bindings(
    model: ModelProto, bind: Mapping[str, int] | None, given: Sequence[ValueType | None]
) -> Mapping[str, DimLike]:
    """Return the values by symbol. Raise SplitgraphError if this is no mapping, a value is no dimension, or a name is
    no symbol of the model or of the given shapes.
    """
    if bind is None:
        return {}
    if not isinstance(bind, Mapping):
        raise SplitgraphError(f"bind is {bind!r}; it must give a number for each name, such as {{'N': 4}}")
    dims = [parse_dim(written) for written in dimension_names(model)]
    dims += [dim for known in given if known is not None for dim in known.shape or () if dim is not None]
    declared = frozenset().union(*map(symbols_of, dims))
    for name in bind:
        if name not in declared:
            known = ", ".join(sorted(declared)) or "none"
            several = "; give each name a --bind of its own" if "=" in str(name) else ""
            text = f"no dimension of the model is named {name!r}{several}{meant(name, declared)}; it has: {known}"
            if isinstance(name, str) and marks_unknown(name):
                text = (
                    f"{name!r} does not name a dimension: it marks unknown dimensions, whose sizes can differ."
                    f" Give the shape of the input with infer --input-shape. Named dimensions of the model: {known}"
                )
            raise SplitgraphError(text, [diagnostic("SG304", f"no dimension {name!r}")])
    return {name: _number(value, f"the dimension {name!r}") for name, value in bind.items()}


def _read_input_shapes(model: ModelProto, input_shapes: object) -> list[ValueType | None]:
    """Return the type with the given shape for each input of the model; None for an input without one. Return an empty
    list if no shapes are given.

    Raise SplitgraphError for what is no mapping, no input of the model, or no shape.
    """
    if input_shapes is None:
        return []
    if not isinstance(input_shapes, Mapping):
        raise SplitgraphError(
            f"input_shapes is {input_shapes!r}; it must give a shape for each name, such as {{'x': [1, 'N']}}"
        )
    names = [value.name for value in model.graph.input]
    for name in input_shapes:
        if name not in names:
            raise SplitgraphError(
                f"the model has no input {name!r}{meant(name, names)}; it has: {', '.join(names) or 'none'}"
            )
    dims = dimension_names(model)
    return [_given_type(value, input_shapes.get(value.name), dims) for value in model.graph.input]


def _implied_bindings(model: ModelProto, given: Sequence[ValueType | None]) -> dict[str, DimLike]:
    """Return the values of declared symbols that follow from the given shapes: numbers, else other symbols. The first
    value of a symbol counts. A different second one contradicts the declaration.
    """
    numbers: dict[str, DimLike] = {}
    renamed: dict[str, DimLike] = {}
    for value, known in zip(model.graph.input, given, strict=False):
        declared = value_type(value.type).shape
        if known is None or known.shape is None or declared is None or len(declared) != len(known.shape):
            continue
        for written, size in zip(declared, known.shape, strict=True):
            if not isinstance(written, Dim):
                continue
            if isinstance(size, int):
                numbers = {**_solved(written, size), **numbers}
            elif size is not None and written == symbol(str(written)) and str(written) not in symbols_of(size):
                renamed.setdefault(str(written), size)
    return {**renamed, **numbers}


def _solved(written: Dim, size: int) -> dict[str, DimLike]:
    """Solve a dimension such as N or 2*N + 1 for its symbol. Return the value with which the dimension
    has this size.
    """
    if len(written.symbols) != 1 or level_of(written) > 1:
        return {}
    (name,) = written.symbols
    start = evaluate(written, {name: 0})
    slope = evaluate(written, {name: 1}) - start
    if slope == 0 or written != slope * symbol(name) + start:
        return {}
    value, rest = divmod(size - start, slope)
    return {name: value} if rest == 0 and value >= 0 else {}


def _given_type(value: ValueInfoProto, shape: Any, names: Collection[str]) -> ValueType | None:
    if shape is None:
        return None
    if not isinstance(shape, Sequence) or isinstance(shape, (str, bytes)):
        raise SplitgraphError(f"the shape of {value.name!r} is {shape!r}; it must be a list such as [1, 3, 'H', None]")
    kind = value.type.WhichOneof("value")
    dims = tuple(_given_dim(dim, f"a dimension of {value.name!r}", names) for dim in shape)
    return ValueType("tensor" if kind is None else kind.removesuffix("_type"), None, dims)


def _given_dim(dim: Any, subject: str, names: Collection[str]) -> DimLike | None:
    if dim is None or isinstance(dim, Dim):
        return dim
    if not isinstance(dim, str):
        return _number(dim, subject, ", or a name such as 'N' for a size that a run decides")
    try:
        parsed = parse_given_dim(dim, names)
    except ValueError as error:
        raise SplitgraphError(f"{dim!r} is not a dimension: {error}") from None
    return _number(parsed, subject) if isinstance(parsed, int) else parsed


def _number(value: Any, subject: str, otherwise: str = "") -> int:
    """Return the value as a dimension. numpy's integers are integers; True and False are not. otherwise: what else is
    allowed.
    """
    number = None
    if not isinstance(value, bool) and hasattr(value, "__index__"):
        number = operator.index(value)
    if number is None or not 0 <= number <= LARGEST_DIM:
        allowed = f"an integer of at least 0 and at most 2**63 - 1{otherwise}"
        raise SplitgraphError(f"{subject} cannot be {value!r}; it must be {allowed}")
    return number


# Writing the sizes into a model ---------------------------------------------------------------------------------------

_Types = Mapping[GraphPath, Mapping[str, ValueType]]


def fix_sizes(model: ModelProto, sizes: BoundSizes, scopes: Sequence[Scope], types: _Types) -> None:
    """Write the sizes into the types that a model declares of inputs, outputs and inner values, in subgraphs too.
    Everything else stays byte for byte.

    scopes: the graphs of the model. types: the inferred types of each. A name in the body of a loop may have another
    value in each iteration. So it is replaced only where inference finds the same size.
    """
    for scope in scopes:
        # Names in a function belong to each call.
        if not scope.in_function:
            inferred = types.get(scope.path, {}) if "body" in scope.path else None
            for value in declared_values(scope):
                _bind(value, sizes.bound, inferred)
    for value, given in zip(model.graph.input, sizes.given, strict=False):
        if given is not None and given.shape is not None:
            _give(value, given, given.shape)


def _bind(value: ValueInfoProto, bound: Mapping[str, DimLike], inferred: Mapping[str, ValueType] | None) -> None:
    known = None if inferred is None else inferred.get(value.name)
    for tensor in tensor_types(value.type):
        for axis, entry in enumerate(tensor.shape.dim):
            dim = read_dim_param(entry.dim_param)
            size = None if dim is None else substitute_if_defined(dim, bound)
            if size is None or size == dim:
                continue
            if inferred is None or (known is not None and known.shape is not None and known.shape[axis] == size):
                write_dim(size, entry)


def _give(value: ValueInfoProto, given: ValueType, shape: Sequence[DimLike | None]) -> None:
    for tensor in tensor_types(value.type):
        if not tensor.HasField("shape"):
            write_shape(given, tensor)
        for dim, entry in zip(shape, tensor.shape.dim, strict=False):
            # A number says more than a name.
            if isinstance(dim, int) or not entry.HasField("dim_value") or entry.dim_value < 0:
                write_dim(dim, entry)
