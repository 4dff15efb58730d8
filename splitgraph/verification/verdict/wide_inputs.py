"""Draw inputs for models that only run as a whole (OpenVINO IR has no regions), at which a difference may show that
ordinary numbers hide: every row of a table, sizes up to those of constants, and numbers between and beyond limits.

Numbers are a little off, so that no two of them are equal: engines break ties in ways of their own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from splitgraph.formats.openvino_ir import OpenVINOModel
from splitgraph.verification.inputs.input_maker import InputMaker
from splitgraph.verification.models.ir_constants import ir_constants, ir_limits
from splitgraph.verification.models.model_pair import ComparedModel
from splitgraph.verification.regions.between import draw_between
from splitgraph.verification.regions.constants import held_constants
from splitgraph.verification.values import Array, Value

# Numbers of constants of so many elements may be limits; so many numbers are drawn, those of one model first.
_FEW_ELEMENTS, _MOST_NUMBERS = 8, 16
# So many sizes up to this are drawn, the largest ones first, of inputs of at most so many elements.
_MOST_LENGTHS, _LONGEST, _MOST_ELEMENTS = 12, 4096, 2**16
_MOST_ROWS = 8
# Numbers are off by at most this share.
_OFF = 0.02
# Ties, and numbers that only a tie tells apart.
_HALVES = (0.5, -0.5, 1.5, 2.5, -1.5, 3.5, 1.0, 0.0)
_TIES = 4


class WideCase(NamedTuple):
    """Inputs. has_ties: they are exactly at limits. is_ordinary: their fractions are of ordinary size."""

    inputs: Mapping[str, Value]
    has_ties: bool = False
    is_ordinary: bool = False


def wide_cases(
    pair: Sequence[ComparedModel], maker: InputMaker, base: Mapping[str, Value], seed: int, *, has_ties: bool
) -> Iterator[WideCase]:
    """Yield inputs. base: of a case that the first model accepts. has_ties: exact limits are drawn, too. What a caller
    gave stays.
    """
    rng, drawn = np.random.default_rng(seed), maker.varying()
    numbers, lengths = _held(pair)
    rows = {name: count for name, count in maker.rows().items() if name in base}
    for name, count in rows.items():
        # At once, if the positions can be as many.
        for inputs in (*(each for each in maker.reaching(count) if _is_small(each)), base):
            for places in _all_rows(inputs[name], count, rng):
                yield WideCase({**_off(inputs, drawn, rng), name: places}, is_ordinary=True)
    middles = sorted({int(number) for number in numbers if number.is_integer() and 1 < number <= _LONGEST})
    between = [(low + high) // 2 for low, high in itertools.pairwise(middles)]
    wanted = sorted({*lengths, *middles, *(number + 1 for number in middles), *between}, reverse=True)
    for length in wanted[:_MOST_LENGTHS]:
        for inputs in maker.reaching(length):
            if _is_small(inputs) and _are_positions(inputs, base, rows, maker):
                yield WideCase(_off(inputs, drawn, rng), is_ordinary=True)
    free = {
        name: base[name] for name in drawn if name not in rows and name in base and _is_drawn(base[name], maker, name)
    }
    arrays = {name: value for name, value in free.items() if isinstance(value, np.ndarray)}
    for values in draw_between(arrays, numbers, rng):
        yield WideCase(_off(dict(base) | dict(values), drawn, rng))
    exact = np.array([*numbers, *_HALVES])
    for _ in range(_TIES if has_ties else 0):
        tied = {name: rng.choice(exact, value.shape).astype(value.dtype) for name, value in arrays.items()}
        yield WideCase(dict(base) | tied, has_ties=True)


def off_again(case: WideCase, drawn: Sequence[str], seed: int) -> WideCase:
    """Return a case whose numbers are a little off in another way. drawn: the inputs that are not given."""
    return case if case.has_ties else case._replace(inputs=_off(case.inputs, drawn, np.random.default_rng(seed)))


def _held(pair: Sequence[ComparedModel]) -> tuple[list[float], list[int]]:
    """Return the numbers of small constants, and the lengths of all."""
    told: list[dict[float, None]] = []
    lengths: set[int] = set()
    for model in pair:
        numbers: list[float] = []
        for dims, array in _constants(model):
            lengths |= {length for length in dims if 1 < length <= _LONGEST}
            if array is not None and array.size <= _FEW_ELEMENTS and array.dtype.kind in "fiu":
                numbers += map(float, array.reshape(-1).tolist())
        if isinstance(model.model, OpenVINOModel):
            numbers += ir_limits(model.model)
        told.append(dict.fromkeys(number for number in numbers if np.isfinite(number) and number))
    own = [number for one, other in (told, told[::-1]) for number in one if number not in other]
    shared = [number for number in told[0] if number in told[1]]
    return list(dict.fromkeys([*own, *shared]))[:_MOST_NUMBERS], sorted(lengths)


def _constants(model: ComparedModel) -> Iterator[tuple[Sequence[int], Array | None]]:
    if isinstance(model.model, OpenVINOModel):
        yield from ((one.dims, one.elements(model.model)) for one in ir_constants(model.model))
        return
    for held in held_constants(model.analysis.model, has_all_attributes=True):
        is_small = held.size <= _FEW_ELEMENTS
        dims = getattr(held.held, "dims", ())
        yield dims, held.elements(model.folder) if is_small else None


def _is_drawn(value: Value, maker: InputMaker, name: str) -> bool:
    """Return True for numbers that no operator reads as positions or sizes."""
    return isinstance(value, np.ndarray) and (value.dtype.kind == "f" or name in maker.plain_integers())


def _is_small(inputs: Mapping[str, Value]) -> bool:
    return sum(value.size for value in inputs.values() if isinstance(value, np.ndarray)) <= _MOST_ELEMENTS


def _are_positions(
    inputs: Mapping[str, Value], base: Mapping[str, Value], rows: Mapping[str, int], maker: InputMaker
) -> bool:
    """Return True if whole numbers that are no plain ones stay within their tables, or within those of `base`: what is
    read beyond is anything.
    """
    for name in set(maker.varying()) - maker.plain_integers():
        value, known = inputs.get(name), base.get(name)
        if isinstance(value, np.ndarray) and isinstance(known, np.ndarray) and value.dtype.kind in "iu" and value.size:
            most = rows[name] - 1 if name in rows else int(known.max(initial=0))
            if int(value.max()) > most:
                return False
    return True


def _all_rows(value: Value, count: int, rng: np.random.Generator) -> Iterator[Array]:
    """Yield positions in a table, each row among them if they are few."""
    if not isinstance(value, np.ndarray) or not value.size:
        return
    rows = rng.permutation(count)
    for case in range(min(-(-count // value.size), _MOST_ROWS)):
        yield np.resize(np.roll(rows, -case * value.size), value.shape).astype(value.dtype)


def _off(inputs: Mapping[str, Value], drawn: Sequence[str], rng: np.random.Generator) -> dict[str, Value]:
    made = dict(inputs)
    for name in drawn:
        value = inputs.get(name)
        if isinstance(value, np.ndarray) and value.dtype.name in ("float16", "float32", "float64"):
            made[name] = np.asarray(value * rng.uniform(1 - _OFF, 1 + _OFF, value.shape)).astype(value.dtype)
    return made
