"""Cases for every operator version: onnx's node tests and nodes as models have them, at the opsets of all versions.

    python benchmarks/targets/operator_cases.py FOLDER [OPERATOR ...]

A case is called OPERATOR-VERSION.NUMBER.TEST.WAY. The ways: `inputs`, all inputs are inputs of the graph, as in the
node test; `constant`, all but the first are initializers; `dim0`, `dim1` and `dim2`, the same with the first, the
second, or the later dimensions as symbols; `shapes`, with sizes computed from the shape of another input; an element
type; or these ways with data of another rank (`dim1_rank3`). The first numbers of an operator are the most telling
ones: a slow runtime is measured with those only (`measure.py --most`). The plainest test comes in all ways; others only
if they have one or two traits that no case before them has, and a few more for the count. Other versions are made by
splitgraph. A case counts if onnxruntime or the reference evaluator computes what the node test expects, or if both
compute the same.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from cases import write_case
from extra_cases import extra_tests, import_tests
from node_signatures import signature_tests
from onnx import ModelProto, TensorProto, numpy_helper
from ways import WAYS, of_rank, of_type

sys.path[:0] = [str(Path(__file__).parents[2] / "tests"), str(Path(__file__).parents[2])]

import splitgraph  # noqa: E402, the folders above are on the path only now
from splitgraph.model.schemas import versions_of  # noqa: E402
from splitgraph.model.schemas.history import versions_between  # noqa: E402
from splitgraph.options import STRICT  # noqa: E402
from splitgraph.runtimes.check import examine  # noqa: E402
from splitgraph.runtimes.operator_traits import needs_a_case  # noqa: E402

Array = np.ndarray[Any, Any]
# Of one operator version: the most cases; how many there are even if the later ones have nothing new; and how many
# there are at most if the later ones only have two traits together that no case has.
_MOST, _ENOUGH, _MOST_FOR_PAIRS = 40, 12, 20
# Older opsets than this one are found in no model that a runtime of today is given.
_OLDEST = 7
# Models have sequences and images where the node tests have matrices, and conditions of one number.
_RANKS = (3, 4, 0)
_TYPES = ("float16", "int64", "int32", "bool", "float64")


@dataclass(frozen=True, slots=True)
class Test:
    """A model of one operator, its inputs, and its expected outputs, none where engines have to say what they are.
    operator: with its domain, without a version.
    """

    name: str
    operator: str
    model: ModelProto
    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]


def write(folder: Path, operators: Sequence[str] = ()) -> Counter[str]:
    """Write the cases of these operators, or of all; returns how many there are of each operator version."""
    by_operator: dict[str, list[Test]] = defaultdict(list)
    tests = [*_node_tests(), *(Test(*extra) for extra in extra_tests())]
    tests += [Test(*signature, {}) for signature in signature_tests()]
    for test in tests:
        by_operator[test.operator].append(test)
    written = Counter[str]()
    for operator, every in sorted(by_operator.items()):
        if operators and operator not in operators:
            continue
        # Runtimes differ about infinities and NaN, which models do not have: they are measured where nothing else is.
        tests = [test for test in every if all(map(_is_finite, test.inputs.values()))] or every
        for version, opset in _versions(operator):
            # Operators of onnxruntime have no versions.
            key = f"{operator}-{version}" if version else operator
            for number, (name, model, inputs, outputs) in enumerate(_cases(key, opset, tests), 1):
                write_case(folder, f"{key}.{number:03}.{name}", model.SerializeToString(), inputs, outputs)
                written[key] += 1
        print(
            operator, {key: count for key, count in written.items() if key.rpartition("-")[0] == operator}, flush=True
        )
    for label, model, inputs, outputs in import_tests():
        write_case(folder, f"{label}.001.relu.inputs", model.SerializeToString(), inputs, outputs)
        written[label] += 1
    return written


def _node_tests() -> Iterator[Test]:
    """The node tests of one node whose inputs and outputs are tensors."""
    from node_tests import node_tests

    for case in node_tests():
        graph = case.model.graph
        if "_expanded" in case.name or len(graph.node) != 1 or not case.data_sets:
            continue
        inputs, outputs = case.data_sets[0]
        given = dict(zip((value.name for value in graph.input), map(_array, inputs), strict=False))
        wanted = dict(zip((value.name for value in graph.output), map(_array, outputs), strict=False))
        if len(given) == len(graph.input) and all(_is_plain(each) for each in (*given.values(), *wanted.values())):
            node = graph.node[0]
            domain = f"{node.domain}." if node.domain else ""
            yield Test(case.name.removeprefix("test_"), domain + node.op_type, case.model, given, wanted)


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def _is_plain(value: Any) -> bool:
    """True for an array that a file of NumPy holds, which are those of its own element types."""
    return isinstance(value, np.ndarray) and (value.dtype.kind in "fiubO" and value.dtype.isbuiltin == 1)


def _is_finite(array: Array) -> bool:
    return array.dtype.kind != "f" or bool(np.all(np.isfinite(array)))


def _versions(operator: str) -> list[tuple[int, int | None]]:
    """The versions of an operator, the newest first: each with the first opset at which it is current, because a
    runtime may not know later ones. None for an operator of another domain, which is measured at the opset that the
    tests have.
    """
    if "." in operator:
        domain, _, name = operator.rpartition(".")
        return [(version.since_version, None) for version in versions_of(domain, name)] or [(0, None)]
    since = sorted(
        version.since_version
        for version in versions_between(operator, 1, onnx.defs.onnx_opset_version())
        if not version.deprecated
    )
    ends = dict(zip(since, [*(following - 1 for following in since[1:]), _OLDEST], strict=True))
    return [(version, max(version, _OLDEST)) for version in reversed(since) if ends[version] >= _OLDEST]


_Case = tuple[str, ModelProto, Mapping[str, Array], Mapping[str, Array]]


def _cases(label: str, opset: int | None, tests: Sequence[Test]) -> Iterator[_Case]:
    """The cases of an operator version, the most telling ones first. label: its name. opset: as `_versions`."""
    usable = sorted((at for test in tests if (at := _at(test, label, opset)) is not None), key=_plainness)
    seen, count = set[frozenset[str]](), 0
    for case, is_telling in [
        *((case, True) for test in usable[:1] for case in _in_all_ways(test)),
        *((case, True) for dtype in _TYPES for case in _of_other_type(usable[:4], dtype)),
        *((case, False) for rank in _RANKS for case in _of_other_rank(usable[:4], rank)),
        *((case, False) for test in usable[1:] for case in _in_all_ways(test)),
    ]:
        traits = sorted(filter(needs_a_case, _traits(label, case[1])))
        alone, pairs = ({frozenset(part) for part in combinations(traits, size)} for size in (1, 2))
        # Pairs tell which of two traits is to blame that come together in the first cases.
        is_new = bool(alone - seen) or (count < _MOST_FOR_PAIRS and bool(pairs - seen))
        if (is_telling or is_new or count < _ENOUGH) and _counts(case):
            seen |= alone | pairs
            count += 1
            name, model, inputs, outputs = case
            yield name, model, inputs, outputs or _agreed(model, inputs) or {}
            if count == _MOST:
                return


def _in_all_ways(test: Test) -> Iterator[_Case]:
    """The cases of a test; as it is, if it is of a model."""
    if not test.outputs:
        yield f"{test.name}.model", test.model, test.inputs, {}
        return
    for way in WAYS:
        made = WAYS[way](test.model, test.inputs)
        if made is not None:
            yield f"{test.name}.{way}", *made, test.outputs


def _of_other_type(tests: Sequence[Test], dtype: str) -> Iterator[_Case]:
    """The first of the tests that can have another element type."""
    for test in tests:
        made = of_type(test.model, test.inputs, dtype)
        if made is not None and _agreed(*made) is not None:
            yield f"{test.name}.{dtype}", *(WAYS["constant"](*made) or made), {}
            return


def _of_other_rank(tests: Sequence[Test], rank: int) -> Iterator[_Case]:
    """The first of the tests that can have data of another rank, in all ways."""
    for test in tests:
        made = of_rank(test.model, test.inputs, rank)
        outputs = None if made is None else _agreed(*made)
        if made is not None and outputs is not None:
            for name, model, inputs, wanted in _in_all_ways(Test(test.name, test.operator, *made, outputs)):
                yield f"{name}_rank{rank}", model, inputs, wanted
            return


def _counts(case: _Case) -> bool:
    """True where engines compute what the test expects, or all the same where it expects nothing."""
    _, model, inputs, outputs = case
    return _computes(model, inputs, outputs) if outputs else _agreed(model, inputs) is not None


def _traits(label: str, model: ModelProto) -> frozenset[str]:
    """The traits of the node that a case is about."""
    nodes = examine(model, STRICT).nodes
    return next((node.own for node in nodes if node.label == label), frozenset())


def _plainness(test: Test) -> tuple[bool, bool, bool, int, str]:
    """Sorts what models use most to the front: node tests, float32, no vectors, few attributes."""
    is_float = any(array.dtype == np.float32 for array in test.inputs.values())
    is_vector = max((array.ndim for array in list(test.inputs.values())[:1]), default=0) == 1
    return not test.outputs, not is_float, is_vector, len(test.model.graph.node[0].attribute), test.name


def _at(test: Test, label: str, opset: int | None) -> Test | None:
    """The test at the opset of an operator version; None where it cannot go there as one node of this operator."""
    if opset is None or _imported(test.model) == opset:
        return test if any(each.label == label for each in examine(test.model, STRICT).nodes) else None
    for model, inputs in ((test.model, test.inputs), WAYS["constant"](test.model, test.inputs)):
        try:
            made = splitgraph.convert(model, opset=opset).model
        except splitgraph.SplitgraphError:
            # Older versions have attributes where newer ones have inputs: those have to be constants.
            continue
        if _operators(made) == _operators(test.model) and _imported(made) == opset:
            return Test(test.name, test.operator, made, inputs, test.outputs)
    return None


def _operators(model: ModelProto) -> list[str]:
    return sorted(node.op_type for node in model.graph.node if node.op_type != "Constant")


def _imported(model: ModelProto) -> int:
    return next((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), 0)


# What counts ----------------------------------------------------------------------------------------------------------


def _computes(model: ModelProto, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> bool:
    """True where one of two engines computes what is expected."""
    return any(_agree(found, list(outputs.values())) for found in _runs(model, inputs))


def _agreed(model: ModelProto, inputs: Mapping[str, Array]) -> Mapping[str, Array] | None:
    """What the engines compute; None where they contradict each other or none runs the model."""
    found = list(_runs(model, inputs))
    if not found or not all(_agree(found[0], each) for each in found):
        return None
    if not all(_is_plain(array) and _is_finite(array) for array in found[0]):
        return None
    return dict(zip((value.name for value in model.graph.output), found[0], strict=True))


def _runs(model: ModelProto, inputs: Mapping[str, Array]) -> Iterator[list[Any]]:
    import onnxruntime
    from onnx.reference import ReferenceEvaluator

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        # Whatever an engine raises, the other one is asked; a case that neither runs does not count.
        with contextlib.suppress(Exception):
            session = onnxruntime.InferenceSession(model.SerializeToString(), options)
            yield list(session.run(None, dict(inputs)))
        with contextlib.suppress(Exception):
            yield list(ReferenceEvaluator(model).run(None, dict(inputs)))


def _agree(found: Sequence[Any], wanted: Sequence[Any]) -> bool:
    return len(found) == len(wanted) and all(map(_is_close, found, wanted))


def _is_close(found: Any, wanted: Any) -> bool:
    if not isinstance(found, np.ndarray) or found.shape != wanted.shape or found.dtype != wanted.dtype:
        return False
    if not _is_plain(wanted):
        return False
    if wanted.dtype.kind == "O":
        return bool(np.all(found.astype(str) == wanted.astype(str)))
    allowed = 1e-2 if wanted.dtype == np.float16 else 1e-3
    return bool(np.allclose(found.astype(float), wanted.astype(float), allowed, allowed, equal_nan=True))


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    counts = write(Path(sys.argv[1]), sys.argv[2:])
    print(f"{counts.total()} cases of {len(counts)} operator versions in {sys.argv[1]}")
