"""What is inferred of operators that generate, align and hash text, and what onnxruntime gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.standard.inferred import check_inferred
from conversion.operators.standard.one_node import Case
from onnx import TensorProto, helper, parser

import splitgraph

_RNG = np.random.default_rng(10)
_HASHES = {"max_ngram_size": 3, "n_head_per_ngram": 2, "pad_id": 1}

_ROWS = {"K": 8}


def _floats(*shape: int) -> Any:
    return _RNG.standard_normal(shape).astype(np.float32)


def _integers(*numbers: int, dtype: str = "int64") -> Any:
    return np.array(numbers, dtype)


_TOKENS = (
    _integers(1, 2, 3, 4, 5),
    _integers(3, 5, 7, 9),
    _integers(11, 13, 17, 19),
    _integers(0, 2, 5, dtype="int32"),
)
_ATTENDING = (_floats(1, 5, 8), _floats(1, 7, 8), _floats(1, 8), _floats(2, 6, 7))


@pytest.mark.parametrize(
    "case",
    [
        Case("DynamicTimeWarping", [_floats(3, 4)], free=True),
        Case("DynamicTimeWarping", [_floats(1, 3, 4)]),
        Case(
            "BifurcationDetector",
            [_integers(1, 2, 3, 4, 5), _integers(1), np.array(0), _integers(2, 3, 9, 7, 5, 4)],
            {},
            2,
        ),
        Case("VarlenNGramHashMapping", _TOKENS, _HASHES, 2),
        Case(
            "VarlenNGramHashMapping",
            [*_TOKENS, None, None, None, np.zeros(5, np.int32), None, _integers(1, 1, dtype="int32")],
            {**_HASHES, "state_update_capacity": 2},
            4,
        ),
        *(
            Case(
                "AttnLSTM",
                [_floats(3, 2, 4), _floats(1, 20, 4 + more), _floats(1, 20, 5), *[None] * 5, *_ATTENDING, *last],
                {"hidden_size": 5},
                3,
            )
            for more, last in ((7, ()), (9, (None, _floats(1, 12, 9))))
        ),
        Case(
            "GatherPacked",
            [np.zeros((4, 32), np.uint8), _integers(1, 2)],
            {"packed_type": 0, "K": 8, "output_dtype": 1},
        ),
        Case(
            "GatherPacked", [np.zeros((4, 16), np.uint8), _integers(1)], {"packed_type": 1, "K": 8, "output_dtype": 10}
        ),
    ],
    ids=lambda case: case.operator,
)
def test_types_and_shapes_are_those_of_onnxruntime(case: Case) -> None:
    # The lengths of a path, and of tokens that are appended, are known only at run time.
    check_inferred(case, computed=case.operator in ("DynamicTimeWarping", "BifurcationDetector"))


def _search(operator: str, inputs: str, outputs: int, attributes: str = "") -> list[str]:
    """The types of the outputs of a search over a decoder of which nothing is known."""
    results = ", ".join(f"y{index}" for index in range(outputs))
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        g (int32[B, S] ids) => (int32[a, b] y0)
        <int32[1] longest = {{20}}, int32[1] beams = {{4}}, int32[1] returned = {{2}}, float[1] penalty = {{1.0}}>
        {{ {results} = com.microsoft.{operator} <eos_token_id = 1, pad_token_id = 0 {attributes}> ({inputs}) }}"""
    )
    decoder = helper.make_graph(
        [helper.make_node("Identity", ["t"], ["u"])],
        "decoder",
        [helper.make_tensor_value_info("t", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("u", TensorProto.FLOAT, [1])],
    )
    model.graph.node[0].attribute.append(helper.make_attribute("decoder", decoder))
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in results.split(", "))
    analysis = splitgraph.infer(model)
    assert not analysis.completeness.unknown_operators
    return [str(known) for known in analysis.outputs.values()]


def test_searches() -> None:
    best = "ids, longest, , beams, returned, penalty"
    assert _search("BeamSearch", best, 2) == ["int32[B, 2, 20]", "float32[B, 2]"]
    scored = _search("BeamSearch", best, 3, ", vocab_size = 50")
    assert scored[2] == "float32[?, B, 4, 50]"
    whisper = _search("WhisperBeamSearch", best, 5)
    assert whisper[0] == "int32[B, 2, 20]"
    assert whisper[4] == "float32[B]"
    assert _search("GreedySearch", "ids, longest", 1) == ["int32[B, 20]"]
    assert _search("Sampling", "ids, longest", 2, ", vocab_size = 50") == ["int32[B, 20]", "float32[B, 50]"]


def test_a_sparse_product() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        g (float[M, 3] a, float[N, 3] b) => (float[p, q] y)
        { y = com.microsoft.SparseToDenseMatMul <transB = 1> (a, b) }"""
    )
    kind = TensorProto.FLOAT
    model.graph.input[0].CopyFrom(helper.make_sparse_tensor_value_info("a", kind, ["M", 3]))
    model.graph.output[0].CopyFrom(onnx.ValueInfoProto(name="y"))
    assert str(splitgraph.infer(model).outputs["y"]) == "float32[M, N]"


def test_packed_rows_of_no_numbers_are_a_finding() -> None:
    case = Case("GatherPacked", [np.zeros((4, 32), np.uint8), _integers(1, 2)], {"packed_type": 0, "K": 0})
    (found,) = splitgraph.infer(case.model()).diagnostics
    assert "K is 0" in found.message
