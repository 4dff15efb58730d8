"""Find the constants in which two models differ, of which one is an IR, and say which of them no run reads.

A run reads a constant if the IR gives something else with other elements there. For ONNX models, see
`regions.checking.reading`.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence

import numpy as np
import onnx

from splitgraph.formats.openvino_ir import OpenVINOModel
from splitgraph.verification.engine_settings import EngineSettings
from splitgraph.verification.engines.engine_process import Attempt, EngineRun, Workplace, workplace
from splitgraph.verification.models.ir_constants import ChangedConstant, changed_constants, with_other_elements
from splitgraph.verification.models.model_pair import ComparedModel
from splitgraph.verification.values import tensors_of
from splitgraph.verification.verdict.ir_and_onnx import constants_of_one

# So many constants that differ are asked for, and so many of their rows come first.
_MOST_CONSTANTS, _MOST_ROWS = 8, 64
# So many inputs run at first: ordinary ones read most constants.
_FIRST = 4


def constants_that_differ(pair: Sequence[ComparedModel]) -> list[ChangedConstant]:
    """Return constants that differ, of the second IR, or of the only one."""
    (before, first), (after, second) = ((compared, compared.model) for compared in pair)
    found: Iterator[ChangedConstant] = iter(())
    if isinstance(first, OpenVINOModel) and isinstance(second, OpenVINOModel):
        found = changed_constants(first, second)
    elif isinstance(second, OpenVINOModel) and isinstance(first, onnx.ModelProto):
        found = constants_of_one(first, before.folder, second)
    elif isinstance(first, OpenVINOModel) and isinstance(second, onnx.ModelProto):
        found = constants_of_one(second, after.folder, first)
    return [*itertools.islice(found, _MOST_CONSTANTS)]


def rows_that_differ(changes: Sequence[ChangedConstant]) -> dict[int, list[int]]:
    """Return the rows in which constants differ, by the number of rows, along each dimension."""
    rows: dict[int, dict[int, None]] = {}
    for change in changes:
        shape = change.arrays[1].shape
        if not shape:
            continue
        for length, places in zip(shape, np.unravel_index(change.places, shape), strict=True):
            rows.setdefault(length, {}).update(dict.fromkeys(map(int, np.unique(places)[:_MOST_ROWS])))
    return {length: list(found) for length, found in rows.items()}


def unread_constants(
    changes: Sequence[ChangedConstant],
    pair: Sequence[ComparedModel],
    settings: EngineSettings,
    attempts: Sequence[Attempt],
    ends: float,
) -> Iterator[str]:
    """Yield where constants differ that no run reads. changes: what differs. attempts: what both models ran on. ends:
    as `time.monotonic` tells it.
    """
    compared = next(each for each in reversed(pair) if each.is_ir)
    model, ports = compared.model, None if compared.ports is None else compared.ports.as_json()
    assert isinstance(model, OpenVINOModel)
    for change in changes:
        where = f"`{change.constant.layer.name}` differs at {change.first_place()}"
        with workplace([model, with_other_elements(model, change)], (ports, ports), settings=settings) as own:
            if not _is_read(own, attempts, ends):
                found = "there was no time to find an input" if time.monotonic() >= ends else "no input was found"
                yield f"{where}, and {found} that reads it"


def _is_read(own: Workplace, attempts: Sequence[Attempt], ends: float) -> bool:
    """Return True if a run of two models tells them apart. own: where they are."""
    for part in (attempts[:_FIRST], attempts[_FIRST:]):
        ran = own.run("openvino", part, max(ends - time.monotonic(), 0.0))
        is_whole = time.monotonic() < ends
        if _differs(ran) or (is_whole and ran.outputs[0].keys() != ran.outputs[1].keys()):
            return True
    return False


def _differs(ran: EngineRun) -> bool:
    for key in ran.outputs[0].keys() & ran.outputs[1].keys():
        for one, other in zip(ran.outputs[0][key], ran.outputs[1][key], strict=True):
            for left, right in zip(tensors_of(one), tensors_of(other), strict=False):
                if left.shape != right.shape or left.tobytes() != right.tobytes():
                    return True
    return False
