"""The lengths of sequences that a recurrent operator reads: all steps, or as many as the number says."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, numpy_helper, parser

import splitgraph

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def recurrent(operator: str, lengths: str = "5, 5", *, is_read: bool = True) -> ModelProto:
    """Two sequences of 5 steps."""
    made = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[5, 2, 3] x) => (float[?, ?, ?, ?] y) <int32[2] l = {{{lengths}}}>
        {{ y = {operator} <hidden_size = 4> (x, w, r, , {"l" if is_read else ""}) }}""")
    for name, columns in (("w", 3), ("r", 4)):
        weights = np.random.default_rng(columns).standard_normal((1, 4 * GATES[operator], columns))
        made.graph.initializer.append(numpy_helper.from_array(weights.astype(np.float32), name))
    return made


def _run(given: ModelProto, x: np.ndarray) -> list[np.ndarray]:
    """What a model gives at sizes that it may not declare. The oldest evaluator knows no sequences of several items."""
    model = ModelProto()
    model.CopyFrom(given)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    found: list[np.ndarray] = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})
    return found


def _read_by(made: ModelProto, operator: str) -> str:
    (name,) = [node.input[4] for node in made.graph.node if node.op_type == operator]
    return name


@pytest.mark.parametrize("operator", GATES)
@pytest.mark.parametrize("steps", ["T", 7])
def test_all_steps_are_asked(operator: str, steps: str | int) -> None:
    with pytest.raises(splitgraph.SplitgraphError) as caught:
        splitgraph.reshape(recurrent(operator), {"x": [steps, 2, 3]})
    said = [(found.code, found.message) for found in caught.value.diagnostics]
    assert [code for code, _ in said] == ["SG421", "SG421"]
    assert [message.split(" can mean ")[0] for _, message in said] == ["entry 0", "entry 1"]


@pytest.mark.parametrize("operator", GATES)
def test_lengths_follow_or_stay_as_somebody_says(operator: str) -> None:
    places = [f"main/{operator}#0[{entry}]" for entry in (0, 1)]
    x = np.random.default_rng(0).standard_normal((8, 2, 3)).astype(np.float32)
    all_steps = _run(recurrent(operator, is_read=False), x)[0]
    made = splitgraph.reshape(recurrent(operator), {"x": ["T", 2, 3]}, follow=[f"{place}=T" for place in places])
    made.model.graph.output.add(name=_read_by(made.model, operator))
    found, read = _run(made.model, x)
    assert read.tolist() == [8, 8]
    np.testing.assert_allclose(found, all_steps, rtol=1e-6)
    kept = splitgraph.reshape(recurrent(operator), {"x": [8, 2, 3]}, keep=places).model
    (lengths,) = [each for each in kept.graph.initializer if each.name == _read_by(kept, operator)]
    assert numpy_helper.to_array(lengths).tolist() == [5, 5]


@pytest.mark.parametrize("operator", GATES)
def test_other_lengths_are_no_size_and_a_batch_repeats_them(operator: str) -> None:
    assert splitgraph.reshape(recurrent(operator, "3, 2"), {"x": ["T", 2, 3]}, verify=False).model
    after = splitgraph.reshape(recurrent(operator), {"x": [5, "N", 3]}, verify=False).model
    x = np.random.default_rng(0).standard_normal((5, 6, 3)).astype(np.float32)
    expected = _run(recurrent(operator, is_read=False), x)[0]
    np.testing.assert_allclose(_run(after, x)[0], expected, rtol=1e-6)
