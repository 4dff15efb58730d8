"""What is asked: a model, and the options of its inference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from splitgraph.diagnostics import Diagnostic, SplitgraphError, diagnostic
from splitgraph.dim import marks_unknown, parse_dim, symbols_of
from splitgraph.graph.scopes import FunctionKey, GraphPath, function_key, model_imports, plain_functions, scopes
from splitgraph.inference.given_sizes import UNBOUND, BoundSizes, bound_type
from splitgraph.inference.walk_results import SetAside
from splitgraph.onnx_proto import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto
from splitgraph.tensor_data import byte_size, lacks_data, misfit, misfit_of_sparse
from splitgraph.value_type import ValueType
from splitgraph.variants.variadic_split_1 import is_variadic_function

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
    sizes: BoundSizes = UNBOUND
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


class TensorCheck:
    """Checks the tensors of one model. lacking: the number of tensors without data in an architecture."""

    def __init__(self, model: ModelProto) -> None:
        self._model = model
        self._is_architecture: bool | None = None
        self.lacking = 0

    def problem(self, tensor: TensorProto) -> str | None:
        """What is wrong with a tensor; None for a sound one."""
        found = misfit(tensor)
        if found is not None or not lacks_data(tensor):
            return found
        if self._is_architecture is None:
            self._is_architecture = _is_architecture(self._model)
        if not self._is_architecture:
            return f"it has no elements, and its shape is {list(tensor.dims)}"
        self.lacking += 1
        return None

    def of_node(self, node: NodeProto) -> str | None:
        """What is wrong with the first malformed tensor among a node's attributes; None where all are sound."""
        for attribute in node.attribute:
            problem = self._of_attribute(attribute)
            if problem is not None:
                return f"attribute {attribute.name!r} of {node.op_type}: the tensor is malformed: {problem}"
        return None

    def _of_attribute(self, attribute: AttributeProto) -> str | None:
        if attribute.type == AttributeProto.TENSOR:
            return self.problem(attribute.t)
        if attribute.type == AttributeProto.TENSORS:
            return next(filter(None, map(self.problem, attribute.tensors)), None)
        if attribute.type == AttributeProto.SPARSE_TENSOR:
            return misfit_of_sparse(attribute.sparse_tensor)
        if attribute.type == AttributeProto.SPARSE_TENSORS:
            return next(filter(None, map(misfit_of_sparse, attribute.sparse_tensors)), None)
        return None

    def of_initializers(self, graph: GraphProto, location: str) -> Iterator[Diagnostic]:
        """A finding for each malformed initializer of a graph; only a warning if nothing reads the initializer."""
        problems = [(held.name, self.problem(held)) for held in graph.initializer]
        problems += [(sparse.values.name, misfit_of_sparse(sparse)) for sparse in graph.sparse_initializer]
        for name, problem in problems:
            if problem is None:
                continue
            if self._is_read(name):
                yield diagnostic("SG111", f"the initializer {name!r} is malformed: {problem}", location)
                continue
            text = f"the unused initializer {name!r} is malformed: {problem}"
            yield diagnostic("SG111", text, location, severity="warning", help="Remove the initializer.")

    def _is_read(self, name: str) -> bool:
        """True where a graph of the model reads or gives a value of this name."""
        graphs = [scope.proto for scope in scopes(self._model)]
        outputs = (value.name for graph in graphs if isinstance(graph, GraphProto) for value in graph.output)
        return name in outputs or any(name in node.input for graph in graphs for node in graph.node)

    def finding(self) -> Diagnostic | None:
        """The finding that the model is an architecture; None for a model that has its weights."""
        if not self.lacking:
            return None
        tensors = "1 tensor has a shape" if self.lacking == 1 else f"{self.lacking} tensors have shapes"
        return diagnostic("SG113", f"{tensors} but no elements: the weights were removed", "main", severity="warning")


def _is_architecture(model: ModelProto) -> bool:
    """True if more bytes are missing than present. A model that misses less is damaged."""
    given = lacking = 0
    constants = (attribute.t for node in model.graph.node if node.op_type == "Constant" for attribute in node.attribute)
    for tensor in (*model.graph.initializer, *constants):
        size = max(byte_size(tensor) or 0, 0)
        if lacks_data(tensor):
            lacking += size
        else:
            given += size
    return lacking > given
