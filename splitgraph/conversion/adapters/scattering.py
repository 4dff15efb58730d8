"""ScatterElements and ScatterND, where reductions do not exist: slice by slice, in order."""

from __future__ import annotations

from collections.abc import Callable

from splitgraph.conversion.adapters.registry import downward
from splitgraph.conversion.step import Inexact, Step
from splitgraph.dim import DimLike

# As many slices are scattered one after the other as a reader of the model may be expected to bear.
_MOST_SLICES = 32
_OPERATORS = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}


@downward("ScatterElements", 16, 18)
def elements_slice_by_slice(step: Step) -> None:
    """The updates of one slice along the axis meet different elements: gathered, combined with the updates and
    scattered, slice after slice, they are reduced in the order of their indices.
    """
    axis, shape = step.known_value("axis", 0), step.input_type(1).shape
    count = shape[axis] if shape else None

    def update(data: str, place: str, operator: str) -> str:
        indices, updates = (step.emit("Gather", [name, place], "slice", axis=axis) for name in step.inputs[1:])
        found = step.emit("GatherElements", [data, indices], "found", axis=axis)
        combined = step.emit(operator, [found, updates], "combined")
        return step.emit("ScatterElements", [data, indices, combined], "scattered", axis=axis)

    _one_after_the_other(step, count, update)


@downward("ScatterND", 16, 18)
def tuples_one_after_the_other(step: Step) -> None:
    """The update of one tuple of indices meets each element once: tuple after tuple, all are reduced in order."""
    shape = step.input_type(1).shape
    if shape is None or len(shape) != 2:
        raise Inexact(
            "a reduction is written as one scatter for each tuple of indices, and how many there are is not known, or "
            "they are not in one dimension"
        )

    def update(data: str, place: str, operator: str) -> str:
        indices, updates = (step.emit("Gather", [name, place], "slice", axis=0) for name in step.inputs[1:])
        found = step.emit("GatherND", [data, indices], "found")
        combined = step.emit(operator, [found, updates], "combined")
        return step.emit("ScatterND", [data, indices, combined], "scattered")

    _one_after_the_other(step, shape[0], update)


def _one_after_the_other(step: Step, count: DimLike | None, update: Callable[[str, str, str], str]) -> None:
    """Apply the updates of slices 0 to count - 1, in order."""
    step.require_types()
    reduction, dtype = step.known_value("reduction", "none"), step.known_dtype(0)
    if reduction not in _OPERATORS or (reduction in ("add", "mul") and step.upper.since_version == 18):
        raise Inexact(f"reduction={reduction} does not exist {step.side}")
    if dtype in ("bool", "string", "complex64", "complex128") or dtype == "bfloat16":
        raise Inexact(f"{_OPERATORS[reduction]} does not take {dtype}")
    if not isinstance(count, int) or count > _MOST_SLICES:
        many = f"there are {count}" if isinstance(count, int) else "how many there are is not known"
        raise Inexact(f"reduction={reduction} is written as one scatter for each slice of updates, and {many}")
    data = step.inputs[0]
    for place in range(count):
        data = update(data, step.constant([place], "place"), _OPERATORS[reduction])
    step.replace("Identity", [data])
