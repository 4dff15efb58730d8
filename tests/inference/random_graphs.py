"""Random graphs that run: each node is tried in onnxruntime at the sizes of the design, and kept when it accepts it."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
OPSET = 18
# More elements than this would only cost time.
LARGEST = 20_000

# onnxruntime ends the process when some of these get a tensor without elements, and never ends a strided Conv of no
# channels.
ENDS_ON_EMPTY = frozenset({"Conv", "Einsum", "Expand", "Max", "Mean", "Min", "TopK"})
# A run takes milliseconds; seconds of CPU time after which one counts as endless.
LONGEST_RUN = 10

Value = Any
# What a node is: operator, inputs, number of outputs, attributes.
Made = tuple[str, Sequence[str], int, Mapping[str, Any]]
Maker = Callable[["Graph"], "Made | None"]
MAKERS: list[Maker] = []


def maker(weight: int = 1) -> Callable[[Maker], Maker]:
    """Register a function that proposes a node."""

    def register(function: Maker) -> Maker:
        MAKERS.extend([function] * weight)
        return function

    return register


class Graph:
    """A graph that grows node by node; `values` holds what each value is at the sizes of the design."""

    def __init__(self, rng: random.Random, prefix: str = "", outer: Graph | None = None) -> None:
        self.rng = rng
        self.prefix = prefix
        self.outer = outer
        self.values: dict[str, Value] = dict(outer.values) if outer else {}
        self.constants: dict[str, np.ndarray] = dict(outer.constants) if outer else {}
        self.own_constants: list[str] = []
        self.nodes: list[onnx.NodeProto] = []
        self.functions: list[onnx.FunctionProto] = outer.functions if outer else []
        self._count = 0

    # Choosing ------------------------------------------------------------------------------------------------------

    def name(self, base: str) -> str:
        self._count += 1
        return f"{self.prefix}{base.lower()}_{self._count}"

    def pick(self, wanted: Callable[[np.ndarray], bool]) -> str | None:
        """A tensor that satisfies a condition, rather a late one."""
        names = [name for name, v in self.values.items() if isinstance(v, np.ndarray) and wanted(v)]
        if not names:
            return None
        return names[max(self.rng.randrange(len(names)), self.rng.randrange(len(names)))]

    def real(self, *ranks: int) -> str | None:
        """A float tensor of one of these ranks, of any when there are none."""
        return self.pick(lambda v: v.dtype == np.float32 and (not ranks or v.ndim in ranks))

    def sizes(self) -> str | None:
        """A short vector of integers, which a shape could be."""
        return self.pick(lambda v: v.dtype == np.int64 and v.ndim == 1 and len(v) <= 6)

    def number(self) -> str | None:
        """An integer."""
        return self.pick(lambda v: v.dtype == np.int64 and v.ndim == 0)

    def sequence(self) -> str | None:
        names = [name for name, v in self.values.items() if isinstance(v, list)]
        return self.rng.choice(names) if names else None

    def shape(self, name: str | None) -> tuple[int, ...]:
        return tuple(np.shape(self.values[name])) if name else ()

    def axis(self, name: str | None) -> int:
        rank = len(self.shape(name))
        return self.rng.randrange(-rank, rank) if rank else 0

    def const(self, value: Any, dtype: Any = np.int64) -> str:
        """A new constant."""
        name = self.name("const")
        self.constants[name] = np.asarray(value, dtype=dtype)
        self.own_constants.append(name)
        return name

    def weight(self, *shape: int) -> str:
        return self.const(np.ones(shape) / 4, np.float32)

    # Growing -------------------------------------------------------------------------------------------------------

    def grow(self, count: int, makers: Sequence[Maker] = MAKERS) -> None:
        """Add up to so many nodes."""
        for _ in range(count):
            self.attempt(self.rng.choice(makers)(self))

    def attempt(self, made: Made | None) -> bool:
        """Add a node when onnxruntime runs it on what its inputs are."""
        if made is None or any(name is None for name in made[1]):
            return False
        op_type, inputs, count, attributes = made
        outputs = [self.name(op_type) for _ in range(count)]
        node = helper.make_node(op_type, inputs, outputs, **attributes)
        results = self._try(node)
        if results is None or any(_elements(value) > LARGEST for value in results):
            return False
        if is_lenient(node, {**self.values, **self.constants, **dict(zip(outputs, results, strict=True))}):
            return False
        self.nodes.append(node)
        self.values.update(zip(outputs, results, strict=True))
        return True

    def _try(self, node: onnx.NodeProto) -> list[Value] | None:
        names = sorted(_reads(node))
        tensors = (self.values[name] for name in node.input if isinstance(self.values.get(name), np.ndarray))
        if node.op_type in ENDS_ON_EMPTY and any(not value.size for value in tensors):
            return None
        feeds = {name: self.values[name] for name in names if name in self.values}
        inputs = [_value_info(name, value) for name, value in feeds.items()]
        held = [numpy_helper.from_array(self.constants[name], name) for name in names if name in self.constants]
        graph = helper.make_graph([node], "one", inputs, [onnx.ValueInfoProto(name=o) for o in node.output], held)
        try:
            with bounded_run():
                return list(session(model_of(graph, self.functions)).run(None, feeds))
        except Exception:  # whatever it is, the node is not for these inputs
            return None

    def proto(self, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[str], name: str) -> onnx.GraphProto:
        held = [numpy_helper.from_array(self.constants[constant], constant) for constant in self.own_constants]
        declared = [_value_info(output, self.values[output]) for output in outputs]
        return helper.make_graph(self.nodes, name, inputs, declared, held)


@contextmanager
def bounded_run(seconds: float = LONGEST_RUN) -> Iterator[None]:
    """Let an endless run of onnxruntime end the process, as its crashes do: nothing else stops one.

    CPU time, so that what comes out does not hang on how busy the machine is.
    """
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def model_of(graph: onnx.GraphProto, functions: Sequence[onnx.FunctionProto]) -> onnx.ModelProto:
    imports = [helper.make_opsetid("", OPSET), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=8)


def session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    """A session that runs the model as it is written."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def random_model(seed: int, nodes: int) -> tuple[onnx.ModelProto, dict[str, int], dict[str, Value]]:
    """A model, sizes at which it runs, and the values of the inputs that sizes alone do not give."""
    rng = random.Random(seed)
    sizes = {name: rng.choice([1, 2, 3, 4, 5, 6, 8]) for name in ("N", "M", "K")}
    graph = Graph(rng)
    inputs = []
    for index in range(rng.randint(2, 4)):
        dims = [rng.choice(["N", "M", "K", 1, 2, 3, 4, 6]) for _ in range(rng.randint(1, 4))]
        name = f"x{index}"
        inputs.append(helper.make_tensor_value_info(name, FLOAT, dims))
        shape = [sizes[dim] if isinstance(dim, str) else dim for dim in dims]
        graph.values[name] = np.random.default_rng(seed + index).standard_normal(shape).astype(np.float32)
    given = {"k": np.array(rng.randint(0, 3)), "flag": np.array(rng.random() < 0.5)}
    inputs += [
        helper.make_tensor_value_info("k", INT64, []),
        helper.make_tensor_value_info("flag", TensorProto.BOOL, []),
    ]
    graph.values.update(given)
    for name in [name for name in graph.values if name.startswith("x")]:
        graph.attempt(("Shape", [name], 1, {}))
    graph.grow(nodes)
    made = [output for node in graph.nodes for output in node.output]
    proto = graph.proto(inputs, made, "random")
    for output in proto.output:
        output.ClearField("type")
    return model_of(proto, graph.functions), sizes, given


def is_lenient(node: onnx.NodeProto, values: Mapping[str, Value]) -> bool:
    """True where onnxruntime runs a node that the specification does not allow, and makes up what it gives.

    It reduces an axis without elements, passes over empty tensors of any shape when it concatenates, and stacks what
    no iteration gave in the shape that the body declares, with 0 for what is not declared. What happens in a body is
    not seen: one that reads something empty counts as such.
    """
    has_body = node.op_type in ("If", "Loop", "Scan") or node.domain == "local"
    names = sorted(_reads(node)) if has_body else node.input
    tensors = [values[name] for name in names if isinstance(values.get(name), (np.ndarray, np.generic))]
    if node.op_type.startswith(("Reduce", "Arg")):
        return bool(tensors) and not np.size(tensors[0])
    if node.op_type == "Loop" and not np.size(values[node.output[1]]):
        return True
    if node.op_type == "ConcatFromSequence":
        tensors = values[node.input[0]]
    is_concat = node.op_type in ("Concat", "ConcatFromSequence")
    return (is_concat or has_body) and any(not np.size(value) for value in tensors)


def _reads(node: onnx.NodeProto) -> set[str]:
    """Names that a node reads, the bodies in it included."""
    names = {name for name in node.input if name}
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            inner = {name for each in attribute.g.node for name in _reads(each)}
            inner |= {value.name for value in attribute.g.output}
            own = {name for each in attribute.g.node for name in each.output}
            own |= {value.name for value in attribute.g.input} | {held.name for held in attribute.g.initializer}
            names |= inner - own
    return names


def _elements(value: Value) -> int:
    return sum(map(_elements, value)) if isinstance(value, list) else int(np.size(value))


def _value_info(name: str, value: Value) -> onnx.ValueInfoProto:
    """A declaration of kind and element type only."""
    first = (value[0] if value else np.zeros(0, np.float32)) if isinstance(value, list) else value
    dtype = helper.np_dtype_to_tensor_dtype(np.asarray(first).dtype)
    if isinstance(value, list):
        return helper.make_tensor_sequence_value_info(name, dtype, None)
    return helper.make_tensor_value_info(name, dtype, None)
