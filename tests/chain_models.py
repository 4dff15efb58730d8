"""ONNX models of the random chains of shape arithmetic."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from chain_simulator import Chain, Param, Step
from onnx import TensorProto, helper


def model_of_chain(chain: Chain) -> onnx.ModelProto:
    """The chain as an ONNX model, all values of which are its outputs' ancestors or outputs."""
    return _Writer(chain).model()


# Inputs that were attributes before an opset.
_ATTRIBUTE_BEFORE: Mapping[str, int] = {"Split": 13, "Slice": 10, "Pad": 11, "Squeeze": 13, "Unsqueeze": 13}


class _Writer:
    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def model(self) -> onnx.ModelProto:
        for step in self.chain.steps:
            self._write(step)
        inputs = [
            helper.make_tensor_value_info(
                name, TensorProto.FLOAT, [None if str(dim)[0] == "_" else dim for dim in dims]
            )
            for name, dims in self.chain.inputs.items()
        ]
        graph = helper.make_graph(self.nodes, "chain", inputs, [], self.constants)
        imports = [helper.make_opsetid("", self.chain.opset)]
        return helper.make_model(graph, opset_imports=imports, ir_version=8)

    def _node(self, op: str, step: Step, *more: str, **attributes: object) -> None:
        self.nodes.append(helper.make_node(op, [*step.inputs, *more], list(step.outputs), **attributes))

    def _ints(self, param: Param, *, scalar: bool = False) -> str:
        """The name of a value that holds the integers."""
        if isinstance(param, str):
            return self._as_scalar(param) if scalar else param
        items = (param,) if isinstance(param, int) else tuple(param or ())
        name = f"k{len(self.constants)}"
        self.constants.append(helper.make_tensor(name, TensorProto.INT64, [] if scalar else [len(items)], items))
        return name

    def _as_scalar(self, name: str) -> str:
        made = f"{name}_scalar{len(self.nodes)}"
        self.nodes.append(helper.make_node("Reshape", [name, self._ints(())], [made]))
        return made

    def _write(self, step: Step) -> None:
        writer = getattr(self, f"_write_{step.op.lower()}", None)
        if writer is not None:
            writer(step)
        else:
            self._node(step.op, step)

    def _given(self, step: Step, order: tuple[str, ...]) -> None:
        """A node whose integers are attributes in old opsets, and inputs since."""
        params = {name: step.params[name] for name in order if name in step.params}
        if self.chain.opset < _ATTRIBUTE_BEFORE.get(step.op, 0):
            self._node(step.op, step, **params)
        else:
            self._node(step.op, step, *[self._ints(param) for param in params.values()])

    def _write_concat(self, step: Step) -> None:
        self._node("Concat", step, axis=step.params["axis"])

    def _write_split(self, step: Step) -> None:
        axis, opset = step.params["axis"], self.chain.opset
        if "lengths" not in step.params:
            chunks = {"num_outputs": len(step.outputs)} if opset >= 18 else {}
            self._node("Split", step, axis=axis, **chunks)
        elif opset < 13:
            self._node("Split", step, axis=axis, split=step.params["lengths"])
        else:
            self._node("Split", step, self._ints(step.params["lengths"]), axis=axis)

    def _write_reshape(self, step: Step) -> None:
        self._node("Reshape", step, self._ints(step.params["target"]))

    def _write_flatten(self, step: Step) -> None:
        self._node("Flatten", step, axis=step.params["axis"])

    def _write_slice(self, step: Step) -> None:
        self._given(step, ("starts", "ends", "axes", "steps"))

    def _write_transpose(self, step: Step) -> None:
        self._node("Transpose", step, perm=step.params["perm"])

    def _write_addtensors(self, step: Step) -> None:
        self._node("Add", step)

    def _write_expand(self, step: Step) -> None:
        self._node("Expand", step, self._ints(step.params["target"]))

    def _write_tile(self, step: Step) -> None:
        self._node("Tile", step, self._ints(step.params["repeats"]))

    def _write_pad(self, step: Step) -> None:
        self._given(step, ("pads",))

    def _write_squeeze(self, step: Step) -> None:
        self._given(step, ("axes",))

    def _write_unsqueeze(self, step: Step) -> None:
        self._given(step, ("axes",))

    def _write_constantofshape(self, step: Step) -> None:
        if self.chain.opset < 9:
            wide = f"{step.outputs[0]}_random"
            zero = helper.make_tensor(f"{wide}_k", TensorProto.FLOAT, [1], [0.0])
            self.constants.append(zero)
            self.nodes.append(helper.make_node("Expand", [zero.name, self._ints(step.params["shape"])], [wide]))
            self.nodes.append(helper.make_node("Identity", [wide], list(step.outputs)))
        else:
            self._node("ConstantOfShape", step, self._ints(step.params["shape"]))

    def _write_range(self, step: Step) -> None:
        ends = [self._ints(step.params[name], scalar=True) for name in ("start", "limit", "delta")]
        whole = f"{step.outputs[0]}_whole"
        self.nodes.append(helper.make_node("Range", ends, [whole]))
        self.nodes.append(helper.make_node("Cast", [whole], list(step.outputs), to=TensorProto.FLOAT))

    def _write_splittosequence(self, step: Step) -> None:
        lengths = [self._ints(step.params["size"], scalar=True)] if "size" in step.params else []
        lengths += [self._ints(step.params["lengths"])] if "lengths" in step.params else []
        kept = {"keepdims": step.params["keepdims"]} if "keepdims" in step.params else {}
        self._node("SplitToSequence", step, *lengths, axis=step.params["axis"], **kept)

    def _write_sequenceat(self, step: Step) -> None:
        self._node("SequenceAt", step, self._ints(step.params["position"], scalar=True))

    def _write_sequencelength(self, step: Step) -> None:
        count = f"{step.outputs[0]}_count"
        self.nodes.append(helper.make_node("SequenceLength", list(step.inputs), [count]))
        self.nodes.append(helper.make_node("Reshape", [count, self._ints((1,))], list(step.outputs)))

    def _write_concatfromsequence(self, step: Step) -> None:
        self._node("ConcatFromSequence", step, axis=step.params["axis"])

    def _write_constant(self, step: Step) -> None:
        items = step.params["value"]
        self._node("Constant", step, value=helper.make_tensor("", TensorProto.INT64, [len(items)], items))

    def _write_gather(self, step: Step) -> None:
        self._node("Gather", step, self._ints((step.params["index"],)))

    def _write_reduceprod(self, step: Step) -> None:
        more = [] if self.chain.opset < 18 else [self._ints((0,))]
        axes = {"axes": [0]} if self.chain.opset < 18 else {}
        self._node("ReduceProd", step, *more, keepdims=1, **axes)
