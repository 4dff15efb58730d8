"""OptionalHasElement and OptionalGetElement: tensors and sequences as inputs (18); Optional does not change."""

from __future__ import annotations

from splitgraph.conversion.operators.registry import downward, unchanged
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.deferred import np, numpy_helper

unchanged("Optional", 28)

# OptionalHasElement -------------------------------------------------------------------------------------------------

unchanged("OptionalHasElement", 18, 28)


@downward("OptionalHasElement", 18)
def write_answer_as_constant(node: NodeAtBoundary) -> None:
    """Writes the answer as a constant: a tensor or a sequence is always there, an omitted input never. Below 18 the
    input is required, and is an optional.
    """
    if node.uses_input(0) and node.input_type(0).kind not in ("tensor", "sequence"):
        node.require_types()
        raise Inexact("whether its input is an optional is unknown")
    has = node.uses_input(0)
    node.replace("Constant", [], value=numpy_helper.from_array(np.array(has)))


# OptionalGetElement -------------------------------------------------------------------------------------------------

unchanged("OptionalGetElement", 18, 28)


@downward("OptionalGetElement", 18)
def copy_element(node: NodeAtBoundary) -> None:
    """Copies a tensor or sequence that is no optional: it is the element itself."""
    if node.input_type(0).kind not in ("tensor", "sequence"):
        node.require_types()
        raise Inexact("whether its input is an optional is unknown")
    node.replace("Identity", node.inputs)
