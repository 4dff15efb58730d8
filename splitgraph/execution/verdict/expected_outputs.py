"""Compare the outputs of the first model with those that the caller expects, as in onnx's test data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.execution.comparison import Comparison, is_finite
from splitgraph.execution.inputs.given_inputs import GivenCase
from splitgraph.execution.models.model_pair import ComparedModel
from splitgraph.execution.values import Value, tensors_of

# Test data comes from other engines, which round differently: relative to each number, and to the largest number of an
# output, of which small numbers may be differences.
_RTOL = 1e-3
_ATOL = 1e-4


def find_unexpected(
    before: ComparedModel,
    outputs: Mapping[tuple[int, int], Sequence[Value]],
    cases: Mapping[tuple[int, int], GivenCase],
    plain: Comparison,
) -> Diagnostic | None:
    """Return a warning about the first output that is not as expected; None without one, and for random numbers.

    outputs: of the first model. cases: what the caller gave, for the same keys. plain: has the tolerances of the two
    models, which hold here if they are larger.
    """
    if before.draws_random_numbers:
        return None
    names = [value.name for value in before.interface.graph.output]
    for key, case in sorted(cases.items(), key=lambda item: item[0]):
        for position, wanted in case.outputs.items():
            comparison = _comparison(wanted, plain)
            found = comparison.compare_outputs([names[position]], [wanted], [outputs[key][position]], key[0])
            if found is not None:
                text = f"the first model does not give the outputs of {case.name}: {found.name}: {found.reason}"
                return diagnostic("SG509", text, severity="warning")
    return None


def _comparison(wanted: Value, plain: Comparison) -> Comparison:
    sizes = [np.abs(array[is_finite(array)].astype(np.float64)) for array in tensors_of(wanted) if _is_number(array)]
    largest = max([1.0, *(float(size.max()) for size in sizes if size.size)])
    sides = ("the test data has", "the model")
    tolerances = max(plain.rtol, _RTOL), max(plain.atol, _ATOL * largest)
    return Comparison(*tolerances, sides=sides, deadline=plain.deadline)


def _is_number(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" or "float" in array.dtype.name
