"""Optional, OptionalGetElement, OptionalHasElement."""

from __future__ import annotations

from splitgraph.conversion.operators.registry import downward, unchanged
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact
from splitgraph.deferred import np, numpy_helper

unchanged("Optional", 28)

# OptionalHasElement -------------------------------------------------------------------------------------------------

unchanged("OptionalHasElement", 18, 28)


@downward("OptionalHasElement", 18)
def has_what_it_is_given(context: AdapterContext) -> None:
    """Below 18 there is always an input, and it is an optional: a tensor or a sequence is always there, an input that
    is left out never.
    """
    if context.uses_input(0) and context.input_type(0).kind not in ("tensor", "sequence"):
        context.require_types()
        raise Inexact("whether its input is an optional is unknown")
    has = context.uses_input(0)
    context.replace("Constant", [], value=numpy_helper.from_array(np.array(has)))


# OptionalGetElement -------------------------------------------------------------------------------------------------

unchanged("OptionalGetElement", 18, 28)


@downward("OptionalGetElement", 18)
def element_that_is_given(context: AdapterContext) -> None:
    """A tensor or sequence that is no optional is itself what it gives."""
    if context.input_type(0).kind not in ("tensor", "sequence"):
        context.require_types()
        raise Inexact("whether its input is an optional is unknown")
    context.replace("Identity", context.inputs)
