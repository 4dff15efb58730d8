"""What a result says of its dims, and how much text that is."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from splitgraph import Analysis, Dim
from splitgraph.dim import symbols_of


class Counts(NamedTuple):
    """Of all values of all graphs: generated symbols, dims that contain one, dims that are unknown, values of unknown
    rank; characters of the longest dim, and of all dims and requirements together. Of a conversion only the last: the
    bytes of the model.
    """

    generated: int = 0
    with_generated: int = 0
    unknown: int = 0
    unknown_rank: int = 0
    longest: int = 0
    printed: int = 0


def count(result: Any) -> Counts:
    """The counts of an analysis or of a conversion."""
    if not isinstance(result, Analysis):
        return Counts(printed=result.model.ByteSize())
    shapes = [held.shape for graph in result.graphs.values() for held in graph.values() if held.shape is not None]
    dims = [dim for shape in shapes for dim in shape]
    length = cache(lambda dim: len(str(dim)))
    texts = [length(dim) for dim in dims if dim is not None]
    invented = cache(lambda dim: not result.generated.isdisjoint(symbols_of(dim)))
    return Counts(
        len(result.generated),
        sum(1 for dim in dims if isinstance(dim, Dim) and invented(dim)),
        result.completeness.dims - result.completeness.known,
        result.completeness.unknown_rank,
        max(texts, default=0),
        sum(texts) + sum(len(str(each)) for each in result.obligations),
    )


def write_counts(result: Any, target: str) -> None:
    """Called in a process of its own, for a result may take more memory than there is."""
    Path(target).write_text(json.dumps(count(result)))


def read_counts(written: Path) -> Counts:
    """What `write_counts` wrote."""
    return Counts(*json.loads(written.read_text()))
