"""Cut a model after some of its nodes: what runs up to there, and one node alone.

The outputs of a prefix are the values that later nodes read and that depend on the elements of inputs: constants and
sizes are no results that every runtime gives back. Floating-point values come first, because some runtimes give back no
others; if there are none, the others are cast. Nodes that no output needs are left out: a Shape that nobody has read
yet would fail in a runtime that lacks it, and so would the prefix.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper

from splitgraph.dim import Dim
from splitgraph.inference.analysis import Analysis
from splitgraph.model.places import operator_label, version_of
from splitgraph.model.scopes import model_imports, node_label, reads, sort_nodes, sorted_order
from splitgraph.model.value_type import DTYPE_NUMBERS, UNKNOWN, ValueType
from splitgraph.model.values import type_proto
from splitgraph.verification.models.dependence import values_of_elements
from splitgraph.verification.regions.finding.cut import called_functions
from splitgraph.verification.values import Value

_FLOATS = ("float32", "float64", "float16", "bfloat16")
# What is cast to float32 if there is no other output.
_CAST = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


class _Output(NamedTuple):
    """An output of a cut model. name: of the value; shown: of the output, another one if it is cast."""

    name: str
    shown: str
    type: ValueType


class CutModel:
    """A model whose nodes are numbered in topological order.

    model: not changed. analysis: of it.
    """

    def __init__(self, model: onnx.ModelProto, analysis: Analysis) -> None:
        self._model = model
        self._types = analysis.types
        nodes = list(model.graph.node)
        self._order = sorted_order(nodes)
        self.nodes = [nodes[index] for index in self._order]
        self._reads = [[name for name in dict.fromkeys(reads(node)) if name] for node in self.nodes]
        self._makers = {name: index for index, node in enumerate(self.nodes) for name in node.output if name}
        self._of_elements = values_of_elements(_sorted(model, self._order))
        self._last_read: dict[str, int] = {}
        for index, names in enumerate(self._reads):
            self._last_read.update(dict.fromkeys(names, index))
        self._last_read.update(dict.fromkeys((value.name for value in model.graph.output), len(nodes)))

    @staticmethod
    def given(model: onnx.ModelProto, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Return those of the inputs that a part of the model has."""
        names = {value.name for value in model.graph.input}
        return {name: value for name, value in inputs.items() if name in names}

    def place(self, index: int) -> tuple[str, str]:
        """Return the location of a node, and its operator with its version."""
        node = self.nodes[index]
        label = operator_label(node, version_of(node, model_imports(self._model)))
        return f"main/{node_label(node, self._order[index])}", label

    # Prefixes --------------------------------------------------------------------------------------------------------

    def prefix(self, count: int) -> onnx.ModelProto | None:
        """Return the model of the first nodes; None if it would have no output."""
        return self._with_outputs(self._live(count), count)

    def _live(self, count: int) -> list[str]:
        """Return the values of the first nodes that are read later and depend on elements of inputs."""
        live = (name for name, maker in self._makers.items() if maker < count <= self._last_read.get(name, -1))
        return [name for name in live if name in self._of_elements]

    def up_to(self, index: int) -> onnx.ModelProto | None:
        """Return the model whose outputs are those of a node; None if it would have none."""
        return self._with_outputs([name for name in self.nodes[index].output if name in self._of_elements], index + 1)

    def _with_outputs(self, names: Sequence[str], count: int) -> onnx.ModelProto | None:
        outputs = self._outputs(names)
        if not outputs:
            return None
        needed = self._needed([output.name for output in outputs], count)
        return self._made(needed, outputs, list(self._model.graph.input))

    def _outputs(self, names: Sequence[str]) -> list[_Output]:
        types = {name: self._types.get(name, UNKNOWN) for name in names}
        tensors = {name: value for name, value in types.items() if value.kind == "tensor"}
        floats = [_Output(name, name, value) for name, value in tensors.items() if value.dtype in _FLOATS]
        if floats:
            return floats
        return [
            _Output(name, f"{name}.as_float", ValueType("tensor", "float32", value.shape))
            for name, value in tensors.items()
            if value.dtype in _CAST
        ]

    def _needed(self, names: Sequence[str], count: int, known: Collection[str] = ()) -> list[int]:
        """Return the nodes below a number that some values need, in order. known: values that no node needs to make."""
        waiting, needed = [self._makers[name] for name in names], set[int]()
        while waiting:
            index = waiting.pop()
            if index not in needed and index < count:
                needed.add(index)
                made = (name for name in self._reads[index] if name in self._makers and name not in known)
                waiting += (self._makers[name] for name in made)
        return sorted(needed)

    def _made(
        self, indices: Sequence[int], outputs: Sequence[_Output], inputs: Sequence[onnx.ValueInfoProto]
    ) -> onnx.ModelProto:
        """Return a model of some nodes, with the constants that they read."""
        source, made = self._model, onnx.ModelProto(ir_version=self._model.ir_version)
        nodes = [self.nodes[index] for index in indices]
        read = {name for index in indices for name in self._reads[index]}
        inside = {name for node in nodes for name in node.output}
        made.opset_import.extend(source.opset_import)
        made.functions.extend(called_functions(source, nodes))
        graph = made.graph
        graph.name = source.graph.name or "prefix"
        graph.node.extend(nodes)
        # Some runtimes refuse a model with an input that nothing reads.
        graph.input.extend(value for value in inputs if value.name in read)
        graph.initializer.extend(tensor for tensor in source.graph.initializer if tensor.name in read)
        graph.sparse_initializer.extend(each for each in source.graph.sparse_initializer if each.values.name in read)
        shown = {output.shown for output in outputs}
        graph.value_info.extend(each for each in source.graph.value_info if each.name in inside - shown)
        for output in outputs:
            if output.shown != output.name:
                cast = helper.make_node("Cast", [output.name], [output.shown], to=onnx.TensorProto.FLOAT)
                graph.node.append(cast)
            graph.output.append(_declared(output.shown, output.type))
        return made

    # A few nodes -----------------------------------------------------------------------------------------------------

    def needed_by(self, count: int) -> set[int]:
        """Return the nodes that the prefix of so many nodes holds."""
        live = [output.name for output in self._outputs(self._live(count))]
        return set(self._needed(live, count))

    def needed_for(self, index: int) -> list[int]:
        """Return the nodes that make what a node reads, in order."""
        return self._needed(self.read_by([index]), index)

    def with_sequences(self, index: int, known: Collection[int]) -> list[int]:
        """Return a node, after those that make the sequences which it reads: no runner gives a sequence back. known:
        nodes that are known to be right.
        """
        group, waiting = {index}, [index]
        while waiting:
            for name in self.read_by([waiting.pop()]):
                maker = self._makers[name]
                if self._types.get(name, UNKNOWN).kind not in ("tensor", "unknown") and maker not in {*group, *known}:
                    group.add(maker)
                    waiting.append(maker)
        return sorted(group)

    def values_for(self, indices: Sequence[int]) -> onnx.ModelProto | None:
        """Return the model whose outputs are what some nodes read, in the order of `read_by`; None if an engine could
        not give these.
        """
        names = self.read_by(indices)
        types = [self._types.get(name, UNKNOWN) for name in names]
        if any(value.kind != "tensor" or value.dtype not in DTYPE_NUMBERS for value in types):
            return None
        outputs = [_Output(name, name, value) for name, value in zip(names, types, strict=True)]
        return self._made(self._needed(names, indices[0]), outputs, list(self._model.graph.input))

    def read_by(self, indices: Sequence[int]) -> list[str]:
        """Return the values that some nodes read, and that others make."""
        names = dict.fromkeys(name for index in indices for name in self._reads[index] if name in self._makers)
        return [name for name in names if self._makers[name] not in indices]

    def inputs_of(self, indices: Sequence[int]) -> list[str]:
        """Return the inputs of the model that some nodes read."""
        constants = {tensor.name for tensor in self._model.graph.initializer}
        names = {value.name for value in self._model.graph.input} - constants
        return list(dict.fromkeys(name for index in indices for name in self._reads[index] if name in names))

    def alone(
        self, indices: Sequence[int], values: Mapping[str, Value]
    ) -> tuple[onnx.ModelProto, dict[str, Value]] | None:
        """Return the model of some nodes alone, and its inputs: what depends on elements of inputs is given, in fixed
        sizes, and all else is constant. Its outputs are those of the last node. None if it would have no inputs or no
        outputs. values: what the nodes read.
        """
        given = {name: value for name, value in values.items() if name in self._of_elements}
        outputs = self._outputs([name for name in self.nodes[indices[-1]].output if name])
        if not outputs or not given or not all(isinstance(value, np.ndarray) for value in values.values()):
            return None
        inputs = [
            helper.make_tensor_value_info(name, DTYPE_NUMBERS[str(self._types[name].dtype)], list(value.shape))
            for name, value in given.items()
        ]
        made = self._made(indices, outputs, inputs)
        del made.graph.value_info[:]
        constants = (numpy_helper.from_array(values[name], name) for name in values if name not in given)
        made.graph.initializer.extend(constants)
        return made, given

    # Sizes -----------------------------------------------------------------------------------------------------------

    def sizes_behind(self, group: Sequence[int]) -> list[int]:
        """Return the nodes that make sizes and other values which some nodes read, and which depend on no elements of
        inputs; constants are left out.
        """
        names = [name for name in self.read_by(group) if name not in self._of_elements]
        needed = self._needed(names, group[0])
        return [index for index in needed if self._reads[index] or self.nodes[index].op_type != "Constant"]

    def made_by(self, indices: Sequence[int]) -> onnx.ModelProto | None:
        """Return the model whose outputs are all results of some nodes; None if an engine could not give these."""
        names = [name for index in indices for name in self.nodes[index].output if name]
        types = [self._types.get(name, UNKNOWN) for name in names]
        if not indices or any(value.kind != "tensor" or value.dtype not in DTYPE_NUMBERS for value in types):
            return None
        outputs = [_Output(name, name, value) for name, value in zip(names, types, strict=True)]
        return self._made(self._needed(names, indices[-1] + 1), outputs, list(self._model.graph.input))

    def with_constants(self, index: int, values: Mapping[str, Value]) -> onnx.ModelProto | None:
        """Return the model whose outputs are those of a node, and in which some values are constants."""
        outputs = self._outputs([name for name in self.nodes[index].output if name])
        if not outputs:
            return None
        needed = self._needed([output.name for output in outputs], index + 1, values)
        made = self._made(needed, outputs, list(self._model.graph.input))
        inside = {name for node in made.graph.node for name in node.input}
        constants = (numpy_helper.from_array(value, name) for name, value in values.items() if name in inside)
        made.graph.initializer.extend(constants)
        return made


def _sorted(model: onnx.ModelProto, order: Sequence[int]) -> onnx.ModelProto:
    """Return the model with its nodes in topological order."""
    if list(order) == sorted(order):
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    sort_nodes(copy)
    return copy


def _declared(name: str, value: ValueType) -> onnx.ValueInfoProto:
    """Declare an output: of its shape, the rank and what is a number, because some runtimes read expressions as names
    of other dimensions.
    """
    shape = value.shape and tuple(None if isinstance(dim, Dim) else dim for dim in value.shape)
    proto = type_proto(ValueType("tensor", value.dtype, shape))
    return onnx.ValueInfoProto(name=name, type=proto)
