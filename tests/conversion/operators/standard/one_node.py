"""Models of one node of another domain, and what their standard forms give in onnxruntime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper

import splitgraph

Array = NDArray[Any]
# Those of issue and of users: the newest that most runtimes read, and old ones.
OPSETS = (24, 17, 13, 11)


@dataclass(frozen=True)
class Case:
    """A node, what it reads in order (None: an input that is left out), and how its results are compared.

    constants: the positions of inputs that are initializers. free: inputs and outputs are declared without sizes.
    truth: what the outputs are, where the kernel is approximate by design; None takes the kernel's. opset: of the
    model. widths: free inputs keep their last sizes.
    """

    operator: str
    inputs: Sequence[Array | None]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: int = 1
    constants: frozenset[int] = frozenset()
    rtol: float = 1e-5
    atol: float = 1e-5
    domain: str = "com.microsoft"
    free: bool = False
    truth: Callable[..., Sequence[Array]] | None = None
    opset: int = 17
    widths: bool = False

    def __str__(self) -> str:
        inputs = "_".join("none" if value is None else _told(np.asarray(value)) for value in self.inputs)
        kind = f"{'free' if self.free else 'fixed'}-{self.outputs}-{len(self.constants)}"
        return f"{self.operator}-{inputs}-{np.asarray(self.inputs[0]).dtype}-{kind}-{self.attributes}"

    @property
    def feeds(self) -> dict[str, Array]:
        """The inputs of the model."""
        return {
            f"i{place}": np.asarray(value)
            for place, value in enumerate(self.inputs)
            if value is not None and place not in self.constants
        }

    def model(self) -> onnx.ModelProto:
        """The model of the node alone."""
        names = ["" if value is None else f"i{place}" for place, value in enumerate(self.inputs)]
        outputs = [f"o{place}" for place in range(self.outputs)]
        node = helper.make_node(self.operator, names, outputs, domain=self.domain, **self.attributes)
        graph = helper.make_graph(
            [node],
            "one",
            [_declared(name, value, self.free, self.widths) for name, value in self.feeds.items()],
            [onnx.ValueInfoProto(name=name) for name in outputs],
            [
                numpy_helper.from_array(value, f"i{place}")
                for place, value in enumerate(self.inputs)
                if value is not None and place in self.constants
            ],
        )
        imports = [helper.make_opsetid("", self.opset)]
        if self.domain:
            imports.append(helper.make_opsetid(self.domain, 1))
        return helper.make_model(graph, opset_imports=imports, ir_version=10 if self.opset > 20 else 8)


def _declared(name: str, value: Array, free: bool, widths: bool = False) -> onnx.ValueInfoProto:
    shape = [f"{name}_{axis}" for axis in range(value.ndim)] if free else list(value.shape)
    if widths and value.ndim:
        shape[-1] = value.shape[-1]
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), shape)


def _told(value: Array) -> str:
    """The shape of an input; of a few integers, such as lengths, what they are."""
    few = value.dtype.kind in "iu" and 0 < value.size <= 4
    return str(value.tolist()).replace(" ", "") if few else "x".join(map(str, value.shape))


def normal(generator: np.random.Generator, *shape: int, dtype: str = "float32") -> Array:
    """Numbers around 0."""
    return generator.standard_normal(shape).astype(dtype)


def without_last_gaps(inputs: Sequence[Array | None]) -> list[Array | None]:
    """The inputs of a node up to the last one that is given."""
    given = [place for place, value in enumerate(inputs) if value is not None]
    return list(inputs[: given[-1] + 1])


def run(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    """Run a model in onnxruntime as it is written, without optimizations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return [np.asarray(result) for result in session.run(None, dict(feeds))]


def standard(model: onnx.ModelProto, opset: int | None = None) -> onnx.ModelProto:
    """The model in operators of ai.onnx alone."""
    result = splitgraph.convert(model, standard=True, opset=opset).model
    assert {node.domain for node in every_node(result.graph)} <= {"", "ai.onnx"}
    assert {entry.domain for entry in result.opset_import} == {""}
    onnx.checker.check_model(result, full_check=True)
    return result


def every_node(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """The nodes of a graph and of its subgraphs."""
    found = []
    for node in graph.node:
        found.append(node)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                found += every_node(attribute.g)
    return found


def check(case: Case, opsets: Sequence[int] = OPSETS) -> None:
    """Compare the standard form at several opsets with the kernel, or with what it approximates."""
    model = case.model()
    kernel = run(model, case.feeds)
    for place, result in enumerate(kernel):
        # onnx's checker demands a type, which onnxruntime finds itself.
        model.graph.output[place].CopyFrom(_declared(f"o{place}", result, free=True))
    wanted = kernel if case.truth is None else case.truth(*case.inputs, **case.attributes)
    for opset in opsets:
        got = run(standard(model, opset), case.feeds)
        for place, (one, other) in enumerate(zip(wanted, got, strict=True)):
            assert one.dtype == other.dtype, (opset, place)
            assert one.shape == other.shape, (opset, place)
            np.testing.assert_allclose(other, one, case.rtol, case.atol, err_msg=f"opset {opset}, output {place}")


def check_types(case: Case) -> None:
    """Compare what inference says of the outputs with what the kernel gives: element type, rank and lengths, of which
    none is unknown.
    """
    model, feeds = case.model(), case.feeds
    bound = {
        dim.dim_param: size
        for given in model.graph.input
        for dim, size in zip(given.type.tensor_type.shape.dim, feeds[given.name].shape, strict=True)
        if dim.dim_param
    }
    analysis = splitgraph.infer(model, bind=bound)
    assert analysis.ok, analysis.diagnostics
    for name, result in zip([f"o{place}" for place in range(case.outputs)], run(model, feeds), strict=True):
        known = analysis.types[name]
        assert known.dtype == str(result.dtype), name
        assert known.shape is not None, name
        assert len(known.shape) == result.ndim, name
        assert None not in known.shape, (name, known.shape)
        assert all(not isinstance(dim, int) or dim == size for dim, size in zip(known.shape, result.shape, strict=True))


def refusal(case: Case, opset: int | None = None) -> str:
    """All messages of the refusal to write a case; "" where there is none."""
    try:
        splitgraph.convert(case.model(), standard=True, opset=opset)
    except splitgraph.ConversionError as error:
        return "; ".join(finding.message for finding in error.diagnostics)
    return ""
