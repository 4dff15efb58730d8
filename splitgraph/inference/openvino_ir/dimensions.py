"""The shapes that Parameter layers declare: numbers, unknown dimensions, intervals as symbols with bounds."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from splitgraph.dim import DimLike, symbol
from splitgraph.formats.openvino_ir.notation import Interval, parse_shape


@dataclass(slots=True)
class Dimensions:
    """Reads the shapes of one model; `bounds` gathers what the intervals say of their symbols.

    new_name: gives a name for a symbol that begins with a hint and that nothing else has.
    """

    new_name: Callable[[str], str]
    bounds: dict[str, Interval] = field(default_factory=dict)

    def read(self, text: str, owner: str) -> tuple[DimLike | None, ...] | None:
        """The shape that an attribute writes; None for an unknown rank. owner: the layer, for the names of symbols."""
        shape = parse_shape(text)
        if shape is None:
            return None
        return tuple(self._dim(interval, f"{owner}_{axis}") for axis, interval in enumerate(shape))

    def _dim(self, interval: Interval, hint: str) -> DimLike | None:
        lowest, most = interval
        if lowest == most:
            return lowest
        if interval == (0, None):
            return None
        name = self.new_name(re.sub(r"\W", "_", hint, flags=re.ASCII))
        self.bounds[name] = interval
        return symbol(name)
