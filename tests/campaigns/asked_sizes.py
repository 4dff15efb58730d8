"""The sizes that `written_bytes.py` and `said.py` ask `reshape` for: a batch, and other lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import splitgraph

_AXES = 3


class Request(NamedTuple):
    """A request to `reshape`: the shapes of inputs, or a batch."""

    shapes: Mapping[str, Sequence[int | str]]
    batch: int | str | None = None

    def arguments(self) -> list[str]:
        """Return the request as options of the command line."""
        if self.batch is not None:
            return ["--batch", str(self.batch)]
        texts = [f"{name}={','.join(map(str, shape))}" for name, shape in self.shapes.items()]
        return [each for text in texts for each in ("--input-shape", text)]

    def options(self) -> dict[str, Any]:
        """Return the request as arguments of the function."""
        return {"shapes": self.shapes} if self.batch is None else {"batch": self.batch}


def requests(model: Any) -> dict[str, Request]:
    """Return requests to a model by their names: any batch, a batch of 3, and each of its first lengths as a name, one
    smaller, and twice as large. No requests to a model that cannot be read.

    A length is a size of 2 or more behind the first axis. All inputs that have the size along the same axis get the
    new one.
    """
    try:
        types = splitgraph.infer(model).inputs
    except splitgraph.SplitgraphError:
        return {}
    shapes = {name: [_spelled(dim) for dim in type.shape] for name, type in types.items() if type.shape}
    found = {f"batch {size}": Request({}, size) for size in ("N", 3)} if shapes else {}
    sizes = {(axis, size) for shape in shapes.values() for axis, size in enumerate(shape) if axis}
    lengths = [(axis, size) for axis, size in sizes if isinstance(size, int) and size > 1]
    for axis, size in sorted(lengths)[:_AXES]:
        having = {name: shape for name, shape in shapes.items() if len(shape) > axis and shape[axis] == size}
        for new in ("T", size - 1, 2 * size):
            asked = {name: [*shape[:axis], new, *shape[axis + 1 :]] for name, shape in having.items()}
            found[f"axis {axis} of {size} to {new}"] = Request(asked)
    return found


def _spelled(dim: object) -> int | str:
    return dim if isinstance(dim, int) else str(dim)
