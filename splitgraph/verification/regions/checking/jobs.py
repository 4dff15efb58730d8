"""Write the message that tells the process of an engine which regions to run, in batches that fit in memory."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

from splitgraph.dim import evaluate
from splitgraph.model.value_type import DTYPE_NUMBERS, UNKNOWN, ValueType
from splitgraph.model.values import type_proto
from splitgraph.verification.inputs.model_inputs import numpy_dtype
from splitgraph.verification.inputs.solver import SymbolSizes
from splitgraph.verification.regions.checking.checked import CheckedKind, CheckedRegion
from splitgraph.verification.regions.checking.question import RegionQuestion
from splitgraph.verification.regions.checking.region_job import DrawnKind, MemberMessage, RegionJob

# The values that regions need are in memory together up to so many bytes; one of unknown size counts as so many.
_MOST_VALUES, _UNKNOWN_SIZE = 2**28, 2**20


def job_of(
    question: RegionQuestion,
    members: Sequence[CheckedRegion],
    kinds: Sequence[CheckedKind],
    sizes: Sequence[SymbolSizes],
    drawn: Mapping[int, Sequence[int]],
    seconds: float,
    *,
    only_asks: bool,
    counted: Collection[int] | None = None,
) -> RegionJob | None:
    """Return the message; None if there is nothing to check.

    sizes: of the cases. drawn: the kinds to compare on drawn values, each with the cases that end the engine; seconds:
    for all of these. only_asks: nothing is compared, and only what the regions read of their constants is asked.
    counted: the members to compare where elements of the inputs decide sizes; None for all, at sizes of the inputs.
    """
    needed = {
        number: [border.before for border in (*member.region.inputs, *member.region.outputs)]
        for number, member in enumerate(members)
    }
    waiting = [
        number
        for number, member in enumerate(members)
        if not member.kind.crashed
        and (not only_asks or member.kind.unread(is_needed=False))
        and (counted is None or number in counted)
    ]
    if not waiting:
        return None
    are_fixed = (bool(kind.fixed) for kind in kinds)
    regions = ((member.kind.number, member.region) for member in members)
    rtol, atol = question.tolerances
    return RegionJob(
        outputs=[value.name for value in question.first.graph.output],
        captured=sorted({name for names in needed.values() for name in names} - question.inputs),
        kinds=[
            kind.message(axes, is_strict=question.is_strict, has_jumps=question.has_jumps)
            for kind, axes in zip(kinds, question.axes.of_kinds(are_fixed, regions), strict=True)
        ],
        members=[_message(member, question.types) for member in members],
        batches=in_batches(((number, needed[number]) for number in waiting), question.types, sizes),
        drawn=[
            DrawnKind(number, str(kinds[number].base), kinds[number].base_seconds, ending)
            for number, ending in drawn.items()
        ],
        seconds=seconds,
        rtol=rtol,
        atol=atol,
        seed=question.seed,
        only_asks=only_asks,
        counts=counted is not None,
    )


def _message(member: CheckedRegion, types: Mapping[str, ValueType]) -> MemberMessage:
    """Return what an engine process reads of a region. The types of its inputs are hexadecimal digits, "" if they are
    not known.
    """
    inputs = [border.before for border in member.region.inputs]
    outputs = [border.before for border in member.region.outputs]
    protos = [type_proto(types.get(name, UNKNOWN)) for name in inputs]
    declared = ["" if proto is None else proto.SerializeToString().hex() for proto in protos]
    return MemberMessage(member.kind.number, inputs, declared, outputs)


def in_batches(
    needed: Iterable[tuple[int, Sequence[str]]], types: Mapping[str, ValueType], sizes: Sequence[SymbolSizes]
) -> list[list[int]]:
    """Return numbers in batches. needed: each number with the names of its values. types: of the values. sizes: those
    of the symbols at which the values are computed.
    """
    batches: list[list[int]] = [[]]
    held: dict[str, int] = {}
    for number, names in needed:
        new = {name: _bytes_of(types.get(name, UNKNOWN), sizes) for name in names}
        if batches[-1] and sum((held | new).values()) > _MOST_VALUES:
            batches.append([])
            held = {}
        batches[-1].append(number)
        held |= new
    return batches


def _bytes_of(value: ValueType, sizes: Sequence[SymbolSizes]) -> int:
    if value.shape is None or None in value.shape or value.dtype not in DTYPE_NUMBERS or value.dtype == "string":
        return _UNKNOWN_SIZE
    largest = 0
    for chosen in sizes:
        try:
            count = math.prod(evaluate(dim, chosen) for dim in value.shape if dim is not None)
        except (KeyError, ArithmeticError):
            return _UNKNOWN_SIZE
        largest = max(largest, count * numpy_dtype(value.dtype).itemsize)
    return largest
