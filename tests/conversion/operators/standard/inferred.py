"""The standard form of an operator, and what inference tells of its outputs, held to what the kernel gives."""

from __future__ import annotations

from collections.abc import Sequence

from conversion.operators.standard import one_node
from conversion.operators.standard.one_node import OPSETS, Case, run

import splitgraph


def check(case: Case, opsets: Sequence[int] = OPSETS, *, computed: bool = False) -> None:
    """Compare the standard form with the kernel, and what is inferred with the results. computed: sizes depend on
    elements that are known only at run time.
    """
    check_inferred(case, computed=computed)
    one_node.check(case, opsets)


def check_inferred(case: Case, *, computed: bool = False) -> None:
    """Require the element type and the shape of each output; sizes that are numbers are those of the run."""
    model = case.model()
    known = splitgraph.infer(model).outputs
    for place, result in enumerate(run(model, case.feeds)):
        of = known[f"o{place}"]
        assert of.dtype == str(result.dtype).replace("object", "string"), place
        assert of.shape is not None, place
        assert len(of.shape) == result.ndim, place
        assert computed or None not in of.shape, place
        pairs = zip(of.shape, result.shape, strict=True)
        assert all(not isinstance(dim, int) or dim == size for dim, size in pairs), place
