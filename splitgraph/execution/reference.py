"""The reference engine: onnx's reference evaluator, with strict kernels where it is lenient and without the operators
that it gets wrong.

onnx's evaluator validates no split, hands `new_ops` to subgraphs but not to functions, ignores the defaults of function
attributes, treats an omitted Loop condition as false and stacks scan outputs along the wrong axis. Here the split
family runs on `kernels`, in the version that the opset import of the enclosing model or function selects, Loop is our
own, and a call of a model-local function runs a copy of its body in which the caller's attributes are written out.
Where the evaluator would run an operator version with the meaning of another version the model is refused: its answer
would prove nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from splitgraph.execution.kernels import ONNX_KERNEL_VERSIONS, run_onnx
from splitgraph.execution.model_edits import nodes_within
from splitgraph.execution.values import UnsupportedError, Value, as_text, is_text

# Operators that the evaluator runs with the meaning of a later version: (operator, the first version that it runs
# rightly).
_FIRST_FAITHFUL_VERSION: Mapping[str, int] = {
    "Hardmax": 13,  # until 11 the axes from `axis` on counted as one
    "LogSoftmax": 13,
    "Softmax": 13,
    "PRelu": 7,  # a slope for each channel did not broadcast from the right
    "Resize": 11,  # the coordinate transformation changed
    "RoiAlign": 16,  # the default of coordinate_transformation_mode changed
    "Scan": 9,  # batched, and with sequence_lens
    "Selu": 6,  # other default coefficients
    "Tile": 6,  # other inputs
    "Upsample": 9,  # scales as attributes
}


class _Kernel(OpRun):
    """A split operator on our kernels; subclasses name the operator version."""

    version: ClassVar[tuple[str, int]]

    def _run(self, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        op_type, since_version = self.version
        arrays = [as_text(value) if isinstance(value, np.ndarray) and is_text(value) else value for value in inputs]
        return run_onnx(op_type, since_version, arrays, attributes, len(self.onnx_node.output))


def _kernel_class(op_type: str, since_version: int) -> type[_Kernel]:
    schema = onnx.defs.get_schema(op_type, since_version)
    members = {"version": (op_type, since_version), "op_schema": schema}
    return type(f"{op_type}_{since_version}", (_Kernel,), members)


class _Loop(OpRun):
    """Loop as the specification has it: no condition means true, and scan outputs get a new leading axis."""

    def need_context(self) -> bool:
        return True

    def _run(self, trip_count: Any = None, cond: Any = None, *carried: Any, context: Any = None, **_: Any) -> Any:
        body: Any = self.body  # type: ignore[attr-defined]  # OpRun sets an attribute for each of the node's
        state = list(carried)
        scans: list[list[Any]] = [[] for _ in range(len(body.output_names) - 1 - len(state))]
        limit = None if trip_count is None else int(np.asarray(trip_count).reshape(()))
        alive = cond is None or bool(np.asarray(cond).reshape(()))
        iteration = 0
        while alive and (limit is None or iteration < limit):
            feeds = dict(context or {})
            arguments = [np.array(iteration, dtype=np.int64), np.array(True), *state]
            feeds.update(zip(body.input_names, arguments, strict=True))
            results = body.run(None, feeds)
            alive = bool(np.asarray(results[0]).reshape(()))
            state = results[1 : 1 + len(state)]
            for scan, value in zip(scans, results[1 + len(state) :], strict=True):
                scan.append(value)
            iteration += 1
        stacked = [_stack(scan, index) for scan, index in zip(scans, _scan_types(body, len(state)), strict=True)]
        return (*state, *stacked)


def _scan_types(body: Any, states: int) -> list[Any]:
    return list(body.output_types[1 + states :])


def _stack(values: list[Any], declared: Any) -> Any:
    if values:
        return np.stack(values)
    tensor = declared.tensor_type
    if not tensor.elem_type or not tensor.HasField("shape"):
        raise UnsupportedError("a Loop without iterations gives a scan output of undeclared type")
    shape = [dim.dim_value for dim in tensor.shape.dim]
    return np.empty((0, *shape), dtype=onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))


class _Optional(OpRun):
    """Optional, giving the element itself or None, which is how the evaluator's other operators take it."""

    def _run(self, element: Any = None, **_: Any) -> tuple[Any]:
        return (element,)

    def _check_and_fix_outputs(self, res: tuple[Any, ...]) -> tuple[Any, ...]:
        return res


class _FunctionCall(OpRun):
    """A call of a model-local function whose body was specialised for this call."""

    def __init__(self, node: onnx.NodeProto, run_params: dict[str, Any], body: ReferenceEvaluator) -> None:
        super().__init__(node, run_params)
        self._body = body

    def _run(self, *inputs: Any, **_: Any) -> tuple[Any, ...]:
        names = self._body.input_names
        if len(inputs) > len(names):
            raise UnsupportedError(f"{self.op_type} is called with {len(inputs)} inputs but declares {len(names)}")
        feeds = {**dict.fromkeys(names), **dict(zip(names, inputs, strict=False))}
        return tuple(self._body.run(None, feeds, attributes={}))


_KERNELS: Mapping[tuple[str, int], type[OpRun]] = {
    (op_type, version): _kernel_class(op_type, version)
    for op_type, versions in ONNX_KERNEL_VERSIONS.items()
    for version in versions
    if version <= onnx.defs.onnx_opset_version()
}
_OWN: Mapping[str, type[OpRun]] = {
    "Loop": type("Loop", (_Loop,), {}),
    "Optional": type("Optional", (_Optional,), {}),
}


class _Evaluator(ReferenceEvaluator):
    """onnx's evaluator with our choice of implementations;

    `model_functions` is set on a subclass made for each model.
    """

    model_functions: ClassVar[Mapping[tuple[str, str, str], onnx.FunctionProto]] = {}

    @property
    def opsets(self) -> dict[str, int]:
        """Imported versions; "ai.onnx" is another name of the default domain."""
        versions = dict(self.opsets_)
        for name, alias in (("", "ai.onnx"), ("ai.onnx", "")):
            if name in versions:
                versions.setdefault(alias, versions[name])
        return versions

    def _load_impl(self, node: onnx.NodeProto, input_types: Any = None) -> Any:
        function = self.model_functions.get((node.domain, node.op_type, node.overload))
        if function is not None:
            body = specialise(function, node)
            evaluator = type(self)(body)
            return lambda node, run_params: _FunctionCall(node, run_params, evaluator)
        if node.domain not in ("", "ai.onnx"):
            return super()._load_impl(node, input_types)
        own = self._own_implementation(node)
        if own is not None:
            return own
        plain = onnx.NodeProto()
        plain.CopyFrom(node)
        plain.domain = ""
        return super()._load_impl(plain, input_types)

    def _own_implementation(self, node: onnx.NodeProto) -> type[OpRun] | None:
        opset = self.opsets.get("")
        if opset is None:
            raise UnsupportedError(f"{node.op_type} is used, but the opset import of ai.onnx is missing")
        try:
            since_version = onnx.defs.get_schema(node.op_type, opset).since_version
        except onnx.defs.SchemaError:
            raise UnsupportedError(f"{node.op_type} does not exist at opset {opset}") from None
        first = _FIRST_FAITHFUL_VERSION.get(node.op_type, 1)
        if since_version < first:
            wrong = f"runs {node.op_type}-{since_version} with the meaning of {node.op_type}-{first}"
            raise UnsupportedError(f"onnx's reference evaluator {wrong}")
        return _KERNELS.get((node.op_type, since_version)) or _OWN.get(node.op_type)


def load(model: onnx.ModelProto) -> ReferenceEvaluator:
    """Prepare a model to be run; UnsupportedError for one that the evaluator would not run faithfully."""
    functions = {(function.domain, function.name, function.overload): function for function in model.functions}
    evaluator = type("ModelEvaluator", (_Evaluator,), {"model_functions": functions})
    loaded: ReferenceEvaluator = evaluator(
        model.graph, opsets={imported.domain: imported.version for imported in model.opset_import}
    )
    return loaded


def run(evaluator: ReferenceEvaluator, feeds: Mapping[str, Value]) -> list[Value]:
    """Run a prepared model; the outputs in the order of the graph."""
    return list(evaluator.run(None, dict(feeds)))


def specialise(function: onnx.FunctionProto, call: onnx.NodeProto) -> onnx.FunctionProto:
    """A copy of a function's body in which every reference to an attribute is replaced by what the call gives.

    Defaults declared by the function apply where the call gives nothing; an attribute without either disappears, so
    that the operator's own default holds. The call itself must be free of references."""
    given = {attribute.name: attribute for attribute in function.attribute_proto}
    given.update({attribute.name: attribute for attribute in call.attribute})
    body = onnx.FunctionProto()
    body.CopyFrom(function)
    del body.attribute[:]
    del body.attribute_proto[:]
    for node in list(nodes_within(body.node)):
        if any(attribute.ref_attr_name for attribute in node.attribute):
            _write_out_references(node, given)
    return body


def _write_out_references(node: onnx.NodeProto, given: Mapping[str, onnx.AttributeProto]) -> None:
    resolved = []
    for attribute in node.attribute:
        source = given.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
        if source is None:
            continue
        copied = onnx.AttributeProto()
        copied.CopyFrom(source)
        copied.name = attribute.name
        resolved.append(copied)
    del node.attribute[:]
    node.attribute.extend(resolved)
