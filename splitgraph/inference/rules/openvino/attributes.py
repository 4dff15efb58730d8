"""Registering the rules of OpenVINO's layers, and reading attributes, which an IR writes as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from splitgraph.dim import DimLike
from splitgraph.formats.openvino_ir.notation import dtype_of
from splitgraph.inference.context import NodeContext, Rule
from splitgraph.inference.rules.operands import InvalidNode, contents_or_unknown, dims_of, operator
from splitgraph.splits.openvino_split_1 import DOMAIN

_TRUTHS = {"true": True, "1": True, "false": False, "0": False}


def layer(*types: str, gives: Sequence[int | str | None] = (0,)) -> Callable[[Rule], Rule]:
    """Register a rule of these layers; `gives` as for `operator`."""
    return operator(*types, gives=gives, domain=DOMAIN)


def text(ctx: NodeContext, name: str, default: str = "") -> str:
    """Return an attribute in lower case, as OpenVINO reads the names of modes."""
    return str(ctx.attribute(name, default)).strip().lower()


def flag(ctx: NodeContext, name: str, default: bool) -> bool:
    """Return a boolean attribute. Raise InvalidNode if it is something else."""
    written = text(ctx, name, str(default))
    if written not in _TRUTHS:
        raise InvalidNode(f"attribute {name!r} is {written!r}; it must be true or false")
    return _TRUTHS[written]


def number(ctx: NodeContext, name: str, default: int) -> int:
    """Return an integer attribute. Raise InvalidNode if it is something else."""
    return _integer(name, text(ctx, name, str(default)))


def numbers(ctx: NodeContext, name: str) -> tuple[int, ...] | None:
    """Return an attribute that is a list of integers; None if it is absent. Raise InvalidNode if it is something
    else.
    """
    if name not in ctx.attributes():
        return None
    return tuple(_integer(name, entry.strip()) for entry in text(ctx, name).split(",") if entry.strip())


def _integer(name: str, written: str) -> int:
    try:
        return int(written)
    except ValueError:
        raise InvalidNode(f"attribute {name!r} contains {written!r}, which is not an integer") from None


def element_type(ctx: NodeContext, name: str, default: str | None) -> str | None:
    """Return the element type that an attribute names; None for an unknown one, `default` without the attribute."""
    return dtype_of(text(ctx, name)) if name in ctx.attributes() else default


def operator_set(ctx: NodeContext) -> int:
    """Return the number of the layer's operator set, which selects the version of the operator."""
    digits = str(ctx.attribute("operator_set", "")).removeprefix("opset")
    return int(digits) if digits.isascii() and digits.isdigit() else 1


def listed(ctx: NodeContext, index: int) -> tuple[DimLike | None, ...] | None:
    """Return the elements of an integer input that is a scalar or 1-D, None for each that is unknown; None if even
    their number is unknown. Raise InvalidNode for another rank.
    """
    dims = dims_of(ctx, index)
    if dims is not None and len(dims) > 1:
        raise InvalidNode(f"input {index} has rank {len(dims)}; it must be a scalar or have rank 1")
    contents = contents_or_unknown(ctx, index)
    return None if contents is None else contents.dims


def listed_axes(ctx: NodeContext, index: int) -> tuple[int, ...] | None:
    """Return the axes that an input names; None if one is unknown. Raise InvalidNode for a rank above 1."""
    known = listed(ctx, index)
    axes = None if known is None else tuple(axis for axis in known if isinstance(axis, int))
    return axes if known is not None and axes is not None and len(axes) == len(known) else None
