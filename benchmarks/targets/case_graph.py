"""A small graph around one node, as exporters write it: the node stands in the middle, and each input is given in one
way.

Data comes through an Add, results go into a Mul, and results that hold sizes into a ConstantOfShape: nothing of the
node is an input or an output of the graph, and nothing is folded into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
# How a value is given: initializer, Constant node, computed from constants, from the fixed or the open shape of an
# input, from the elements of an input, or as an input of the graph; or not at all.
How = Literal["init", "node", "folded", "sized", "shape", "computed", "input", "absent"]
# The version of other domains than ai.onnx that models import: what skl2onnx writes where it suffices.
DOMAIN_VERSION = 1
_FLOATS = ("float32", "float16", "float64", "bfloat16")


class CaseGraph:
    """Builds the model of a case. opset: of ai.onnx. subject: the node of the case, once `put` was called."""

    def __init__(self, opset: int, domain: str = "") -> None:
        self.opset, self.domain = opset, domain
        self.nodes: list[NodeProto] = []
        self.inputs: dict[str, tuple[Array, Sequence[int | str]]] = {}
        self.constants: dict[str, Array] = {}
        self.outputs: list[str] = []
        self.subject: NodeProto | None = None
        # How the next data is given that is a constant, and whether one was: then the results are made to depend on an
        # input after all.
        self.constant_data, self.is_constant = "", False
        # What the results of the node and of the graph are, once they were computed.
        self.values: dict[str, Array] = {}
        self._count = 0
        self._symbols: dict[str, int] = {}
        self._random = np.random.default_rng(7)

    # Values -----------------------------------------------------------------------------------------------------------

    def name(self, hint: str) -> str:
        """A name that no other value has."""
        self._count += 1
        return f"{hint}{self._count}"

    def numbers(self, *shape: int, dtype: str = "float32") -> Array:
        """Numbers of some size; small whole ones for integers."""
        if dtype == "bool":
            return self._random.random(shape) > 0.5
        if dtype in _FLOATS:
            return (self._random.random(shape) * 2 - 1).astype(dtype)
        return self._random.integers(1, 5, shape).astype(dtype)

    def data(
        self, shape: Sequence[int], dtype: str = "float32", *, open: Sequence[int] = (), array: Array | None = None
    ) -> str:
        """Data that is computed from an input of the graph. open: the dimensions that are symbols."""
        held = self.numbers(*shape, dtype=dtype) if array is None else array
        if self.constant_data:
            how, self.constant_data, self.is_constant = self.constant_data, "", True
            return self.given(held.astype(dtype), how)
        name = self.graph_input(held, open=open)
        return self.add("Add", [name, self.constant(np.array(0.5, dtype))]) if dtype in _FLOATS else name

    def graph_input(self, array: Array, *, open: Sequence[int] = ()) -> str:
        """An input of the graph."""
        name = self.name("x")
        places = {axis % array.ndim for axis in open} if array.ndim else set()
        shape = [self._symbol(axis, size) if axis in places else size for axis, size in enumerate(array.shape)]
        self.inputs[name] = array, shape
        return name

    def _symbol(self, axis: int, size: int) -> str:
        """The name of an open dimension: the same one for the same place and size, and for no other size."""
        name = f"d{axis}"
        return name if self._symbols.setdefault(name, size) == size else f"{name}_{size}"

    def constant(self, array: Array) -> str:
        """An initializer."""
        name = self.name("c")
        self.constants[name] = array
        return name

    def given(self, array: Any, how: str = "init", dtype: str | None = None) -> str:
        """A value that is given in this way; "" where it is absent."""
        held = np.asarray(array) if dtype is None else np.asarray(array, dtype)
        if how == "absent":
            return ""
        if how == "node":
            return self.add("Constant", [], value=numpy_helper.from_array(held, ""))
        if how == "folded" and held.dtype == bool:
            return self.add("Not", [self.constant(~held)])
        if how == "folded":
            zero = self.constant(np.zeros((), held.dtype))
            return self.add("Add", [self.constant(held), zero])
        if how == "input":
            return self.graph_input(held)
        if how == "computed":
            if held.dtype.kind == "f":
                return self.data(held.shape, str(held.dtype), array=held - np.array(0.5, held.dtype))
            made = self.data(held.shape, array=held.astype(np.float32) - np.float32(0.5))
            return self.add("Cast", [made], to=helper.np_dtype_to_tensor_dtype(held.dtype))
        if how in ("sized", "shape"):
            return self.sizes(held, is_open=how == "shape")
        return self.constant(held)

    def sizes(self, wanted: Array, *, is_open: bool = True) -> str:
        """A list or a number whose positive elements come from the sizes of an input, as exporters write it."""
        parts, flat = [], np.atleast_1d(wanted)
        taken = [int(each) for each in flat if each > 0]
        # Nobody asks for the size of a list, and some runtimes make a matrix of it.
        more = [2] * (3 - len(taken))
        source = self.data([*taken, *more], open=range(len(taken) or 1) if is_open else ())
        shape = self.add("Shape", [source])
        if not wanted.ndim:
            return self.add("Gather", [shape, self.constant(np.array(0))], axis=0)
        position = 0
        for each in flat:
            if each <= 0:
                parts.append(self.constant(np.array([each], np.int64)))
                continue
            picked = self.add("Gather", [shape, self.constant(np.array(position))], axis=0)
            parts.append(self.listed(picked))
            position += 1
        return self.add("Concat", parts, axis=0)

    def listed(self, name: str) -> str:
        """A list of one number."""
        if self.opset >= 13:
            return self.add("Unsqueeze", [name, self.constant(np.array([0]))])
        return self.add("Unsqueeze", [name], axes=[0])

    # Nodes ------------------------------------------------------------------------------------------------------------

    def add(self, op_type: str, inputs: Sequence[str], **attributes: Any) -> str:
        """A node of the context; its only output."""
        name = self.name("v")
        self.nodes.append(helper.make_node(op_type, list(inputs), [name], name=f"n_{name}", **attributes))
        return name

    def put(self, op_type: str, inputs: Sequence[str], outputs: int | str = 1, **attributes: Any) -> list[str]:
        """The node that the case is about. Attributes that are None and inputs at the end that are absent are left out.
        outputs: how many, or a text such as "10u": for each output, used, absent or unused.
        """
        kinds = "1" * outputs if isinstance(outputs, int) else outputs
        names = [self.name("r") if kind != "0" else "" for kind in kinds]
        given = list(inputs)
        while given and not given[-1]:
            given.pop()
        held = {name: value for name, value in attributes.items() if value is not None}
        self.subject = helper.make_node(op_type, given, names, name="subject", domain=self.domain, **held)
        self.nodes.append(self.subject)
        return [name for name, kind in zip(names, kinds, strict=True) if kind == "1"]

    # Results ----------------------------------------------------------------------------------------------------------

    def use(self, names: Sequence[str], dtype: str = "float32") -> None:
        """Results go into a Mul; others than float32 go through a Cast before that."""
        for name in names:
            plain = name if dtype == "float32" else self.add("Cast", [name], to=TensorProto.FLOAT)
            other = self.data((1,)) if self.is_constant else self.constant(np.array(2, np.float32))
            self.outputs.append(self.add("Mul", [plain, other]))

    def use_number(self, name: str, dtype: str) -> None:
        """A number that follows from sizes is what data is multiplied with. What data is divided by is a factor of Div:
        MNN divides by 1 there.
        """
        plain = name if dtype == "float32" else self.add("Cast", [name], to=TensorProto.FLOAT)
        one = self.add("Add", [plain, self.constant(np.array(1, np.float32))])
        self.outputs.append(self.add("Mul", [self.data((2, 3)), one]))

    def use_sizes(self, name: str, rank: int = 1) -> None:
        """A list of sizes becomes the shape of data; a number becomes one of a list before that, as exporters write it:
        some runtimes read sizes in such lists only.
        """
        if self.opset < 8:
            plain = self.add("Cast", [name], to=TensorProto.FLOAT)
            self.use([self.add("Mul", [self.data((2, 1)), plain])])
            return
        listed = name
        if not rank:
            listed = self.add("Concat", [self.constant(np.array([2])), self.listed(name)], axis=0)
        # The data is no constant: of a graph that is nothing but constants, runtimes give no results.
        self.use([self.add("Expand", [self.data((1, 1)), listed])])

    def model(self, names: Sequence[str] | None = None) -> ModelProto:
        """The model, with outputs whose shapes are not declared yet."""
        inputs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape)
            for name, (array, shape) in self.inputs.items()
        ]
        outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names or self.outputs]
        initializers = [numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        graph = helper.make_graph(self.nodes, "case", inputs, outputs, initializers)
        imports = [helper.make_opsetid("", self.opset)]
        if self.domain:
            imports.append(helper.make_opsetid(self.domain, DOMAIN_VERSION))
        return helper.make_model(graph, opset_imports=imports, ir_version=_ir_version(self.opset), producer_name="case")

    def feeds(self) -> dict[str, Array]:
        """The arrays of the inputs."""
        return {name: array for name, (array, _) in self.inputs.items()}


def _ir_version(opset: int) -> int:
    """The IR version that exporters write with an opset: old runtimes refuse newer ones."""
    return 8 if opset <= 18 else 9 if opset <= 20 else 10 if opset <= 22 else 11 if opset <= 24 else 12
