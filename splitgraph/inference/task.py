"""What is asked: a model, and the options of its inference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from splitgraph.diagnostics import SplitgraphError
from splitgraph.dim import marks_unknown, parse_dim, symbols_of
from splitgraph.graph.scopes import FunctionKey, GraphPath, function_key, model_imports, plain_functions
from splitgraph.inference.given_sizes import NO_SIZES, Sizes, bound_type
from splitgraph.inference.walk_results import SetAside
from splitgraph.onnx_proto import FunctionProto, ModelProto
from splitgraph.value_type import ValueType
from splitgraph.variants.variadic_function import is_variadic_function

# Of splits and findings of repeated calls so many are listed in a small file.
MOST_REPEATED = 1_000
# Functions that call functions twice, each time with other types, turn a file of a few lines into a model of millions
# of nodes.
_MANY_CALLS = 2_000


def most_calls(model: ModelProto) -> int:
    """The limit of walked calls that repeat no earlier call: a fixed number, or the number of nodes in the file if that
    is larger.
    """
    return max(_MANY_CALLS, _nodes_in_file(model))


def most_repeated(model: ModelProto) -> int:
    """The limit of splits and findings that repeated calls list again, as for calls."""
    return max(MOST_REPEATED, _nodes_in_file(model))


def _nodes_in_file(model: ModelProto) -> int:
    return len(model.graph.node) + sum(len(function.node) for function in model.functions)


@dataclass(slots=True)
class Task:
    """A model, the options of its inference, and what the model declares besides its graphs.

    empty_chunks: what num_outputs chunks that overrun the dimension are. sizes: those that the caller gives. reserved:
    names that no generated symbol may have, besides those of the outermost graphs. is_reported: False for conversion,
    which needs no split reports, no warnings and no meanings of declared names. believes_shapes: declared shapes of
    node outputs are believed where inference does not know them. assumes_defaults: the defaults of the model's inputs
    are taken as constants. assumes_nonempty: the broadcast of dimensions that may be empty is assumed to be the larger
    one. sorts: all graphs are walked in topological order. set_aside: nodes with an accepted finding, by location, of
    which nothing is concluded. demands: by graph and name, what nodes demand of values of which an earlier walk knew
    less. given_types, declared_types: for a model of another format than ONNX, by graph and name: the types of inputs
    and constants, and the declared types of outputs.

    function_names: domain and name of every function: a node with that operator type may be a call, depending on its
    overload. input_dimensions: the names of dimensions in the declared shapes of the model's inputs. most_calls,
    most_repeated: how many calls are walked, and how many splits and findings of repeated calls are listed.
    """

    model: ModelProto
    empty_chunks: str = "clamp"
    sizes: Sizes = NO_SIZES
    reserved: frozenset[str] = frozenset()
    is_reported: bool = True
    believes_shapes: bool = True
    assumes_defaults: bool = False
    assumes_nonempty: bool = False
    sorts: bool = False
    set_aside: SetAside = field(default_factory=dict)
    demands: Mapping[GraphPath, Mapping[str, ValueType]] = field(default_factory=dict)
    given_types: Mapping[GraphPath, Mapping[str, ValueType]] = field(default_factory=dict)
    declared_types: Mapping[GraphPath, Mapping[str, ValueType]] = field(default_factory=dict)
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
        """The type with the caller's values for symbols put in."""
        return bound_type(value, self.sizes.bound)
