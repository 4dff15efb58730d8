"""What is decided about a model that gets other sizes, and what a walk over it found."""

from __future__ import annotations

from dataclasses import dataclass, field

from splitgraph.conversion.sizes.digits import Order
from splitgraph.conversion.sizes.needs import (
    Alternative,
    Counted,
    Cut,
    InputPlace,
    Levels,
    Need,
    Reading,
    Repeated,
    Triangle,
)
from splitgraph.dim import Dim, DimLike
from splitgraph.inference.context import NodeContext
from splitgraph.inference.record import Requirement
from splitgraph.inference.walk_results import GraphDetail, NodePlace
from splitgraph.model.scopes import GraphPath
from splitgraph.model.value_type import Contents


@dataclass(slots=True)
class Decided:
    """What is decided about the inputs of nodes, and kept from walk to walk.

    entries: of constants, in terms of dimensions. expanded: the dimensions that inputs get, by axis. Of these, repeated
    tells what weights of several elements are along an axis, and patterns along several; cuts, which axes go over
    several dimensions, and levels, over several grids. orders: the digits along an axis of the input of a Reshape. met:
    the dimensions that values had.
    """

    entries: dict[InputPlace, dict[int, DimLike]] = field(default_factory=dict)
    expanded: dict[InputPlace, dict[int, DimLike]] = field(default_factory=dict)
    repeated: dict[InputPlace, dict[int, Repeated]] = field(default_factory=dict)
    patterns: dict[InputPlace, tuple[Counted, ...] | Triangle] = field(default_factory=dict)
    cuts: dict[InputPlace, Cut] = field(default_factory=dict)
    levels: dict[InputPlace, Levels] = field(default_factory=dict)
    orders: dict[tuple[InputPlace, int], Order] = field(default_factory=dict)
    met: dict[DimLike, None] = field(default_factory=dict)

    def nodes(self) -> set[NodePlace]:
        """Return the nodes about which something is decided."""
        return {place[:2] for place in (*self.entries, *self.expanded, *(place for place, _ in self.orders))}


@dataclass(slots=True)
class WalkFindings:
    """What one walk found.

    edits, attributes: what it read otherwise, None for an attribute that is dropped. values: the dimensions in place of
    numbers that nodes compute with (`values.py`). taking_all: poolings that take everything (`windows.py`). merged: the
    values whose digits were asked for. needs: the sizes that have to change, too. blocked: what cannot follow, by
    location. conditions: which sizes have to be equal. one_row: the axes of size 1 that come of weights. own: the nodes
    about which something is decided, or that read outputs which are constants. alternatives: the numbers with several
    readings. over: the nodes that mix places of a dimension, by symbol; over_merged: those where it was 1 and one
    factor of several. makers: the nodes of the main graph, by output. bodies: of loops whose states have the size that
    went in.
    """

    edits: dict[NodePlace, dict[int, Contents]] = field(default_factory=dict)
    attributes: dict[NodePlace, dict[str, tuple[int, ...] | None]] = field(default_factory=dict)
    values: dict[NodePlace, dict[int, dict[int, Dim]]] = field(default_factory=dict)
    taking_all: dict[NodePlace, bool] = field(default_factory=dict)
    merged: dict[tuple[InputPlace, int], str] = field(default_factory=dict)
    needs: list[Need] = field(default_factory=list)
    blocked: dict[str, str] = field(default_factory=dict)
    conditions: list[Requirement] = field(default_factory=list)
    one_row: dict[tuple[GraphPath, str], set[int]] = field(default_factory=dict)
    own: set[NodePlace] = field(default_factory=set)
    alternatives: dict[Reading, Alternative] = field(default_factory=dict)
    over: dict[str, tuple[str, str]] = field(default_factory=dict)
    over_merged: dict[str, tuple[str, str]] = field(default_factory=dict)
    makers: dict[str, NodeContext] = field(default_factory=dict)
    bodies: dict[GraphPath, GraphDetail] = field(default_factory=dict)
