"""Draw inputs for models that only run as a whole (OpenVINO IR has no regions), at which a difference may show that
ordinary numbers hide: every row of a table, sizes up to those of constants, and numbers between and beyond limits.

Numbers are a little off, so that no two of them are equal: engines break ties in ways of their own.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeGuard

import numpy as np

from splitgraph.formats.openvino_ir import OpenVINOModel
from splitgraph.verification.inputs.input_maker import InputMaker
from splitgraph.verification.models.ir_constants import ir_constants, ir_limits
from splitgraph.verification.models.model_pair import ComparedModel
from splitgraph.verification.regions.drawing.between import draw_between, draw_between_own
from splitgraph.verification.regions.finding.constants import held_constants
from splitgraph.verification.values import Array, Value
from splitgraph.verification.verdict.deciding_parts import DecidingPart, inner_cases, limits_of, row_cases

# Numbers of constants of so many elements may be limits; so many numbers are drawn, those of one model first.
_FEW_ELEMENTS, _MOST_NUMBERS = 8, 16
# So many sizes up to this are drawn, the largest ones first, of inputs of at most so many elements.
_MOST_LENGTHS, _LONGEST, _MOST_ELEMENTS = 12, 4096, 2**16
_MOST_ROWS = 8
# Numbers are off by at most this share.
_OFF = 0.02
# Numbers at a limit are off by this share: engines round less.
_NEAR = 1e-4
# Numbers that are off by this share are still others.
_NEARLY = 4e-6
# So many cases at limits inside of a model are drawn, and so many between so many limits of each input.
_MOST_INNER, _MOST_BETWEEN, _MOST_LIMITS = 64, 96, 12
# Larger numbers are not as engines, or other formulas, are made for.
_LARGE = 1e6
# Ties, and numbers that only a tie tells apart.
_HALVES = (0.5, -0.5, 1.5, 2.5, -1.5, 3.5, 1.0, 0.0)
_TIES = 4


class WideCase(NamedTuple):
    """Inputs. has_ties: they are exactly at limits. is_ordinary: their fractions are of ordinary size. off: numbers may
    be off by this share, by half of the way to the next one of the limits that their input has.
    """

    inputs: Mapping[str, Value]
    has_ties: bool = False
    is_ordinary: bool = False
    off: float = _OFF
    limits: Mapping[str, Array] = {}

    @property
    def is_large(self) -> bool:
        """Return True if there are numbers at which formulas overflow, or lose all of their digits."""
        arrays = (value for value in self.inputs.values() if isinstance(value, np.ndarray) and value.dtype.kind == "f")
        return any(np.abs(array.astype(np.float64)).max(initial=0.0) > _LARGE for array in arrays)

    def moved(self, drawn: Sequence[str], rng: np.random.Generator) -> WideCase:
        """Return the case with numbers that are a little off. drawn: the inputs that are not given."""
        if self.has_ties:
            return self
        made = dict(self.inputs)
        for name in drawn:
            value = self.inputs.get(name)
            if isinstance(value, np.ndarray) and value.dtype.name in ("float16", "float32", "float64"):
                made[name] = self._moved(value, self.limits.get(name), rng)
        return self._replace(inputs=made)

    def nearly(self, drawn: Sequence[str], rng: np.random.Generator) -> WideCase:
        """Return the case with numbers that are off by no more than they are rounded, a few times over."""
        return self._replace(off=min(self.off, _NEARLY)).moved(drawn, rng)

    def _moved(self, value: Array, limits: Array | None, rng: np.random.Generator) -> Array:
        most = self.off * np.abs(value.astype(np.float64))
        if limits is not None and limits.size:
            most = np.minimum(most, np.abs(value.astype(np.float64)[..., None] - limits).min(axis=-1) / 2)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(value + rng.uniform(-1, 1, value.shape) * most).astype(value.dtype)


class WideInputs(NamedTuple):
    """Draws cases. maker: of inputs. parts: what the models decide by. base: inputs that the first model accepts.
    first: rows of tables that come first, by the number of rows. has_ties: numbers are exactly at limits, too: the
    weights of both models have one precision. seed: of numbers.
    """

    pair: Sequence[ComparedModel]
    maker: InputMaker
    parts: Sequence[DecidingPart]
    base: Mapping[str, Value]
    first: Mapping[int, Sequence[int]]
    has_ties: bool
    seed: int

    def cases(self) -> Iterator[WideCase]:
        """Yield cases. What a caller gave stays."""
        rng, drawn = np.random.default_rng(self.seed), self.maker.varying()
        for case in self._cases(drawn, rng):
            yield case.moved(drawn, rng)

    def _cases(self, drawn: Sequence[str], rng: np.random.Generator) -> Iterator[WideCase]:
        numbers, lengths = _held(self.pair)
        rows = {name: count for name, count in self.maker.rows().items() if name in self.base}
        yield from self._at_rows(drawn, rows, rng)
        free = {name: self.base[name] for name in drawn if name not in rows and name in self.base}
        arrays = {name: value for name, value in free.items() if _is_drawn(value, self.maker, name)}
        own = limits_of(self.parts)
        yield from self._at_inner_limits(arrays, numbers, own)
        yield from self._at_lengths(numbers, lengths, rows)
        for values in draw_between(arrays, numbers, rng):
            yield WideCase({**self.base, **values}, limits=_sorted(dict.fromkeys(arrays, numbers)))
        if self.has_ties:
            yield from self._ties(arrays, [*numbers, *_HALVES], rng)

    def _at_rows(self, drawn: Sequence[str], rows: Mapping[str, int], rng: np.random.Generator) -> Iterator[WideCase]:
        for name, count in rows.items():
            # At once, if the positions can be as many.
            for inputs in (*(each for each in self.maker.reaching(count) if _is_small(each)), self.base):
                for places in _all_rows(inputs[name], count, rng):
                    yield WideCase({**inputs, name: places}, is_ordinary=True, off=0.0)

        def bases(count: int) -> list[Mapping[str, Value]]:
            return [*(each for each in self.maker.reaching(count) if _is_small(each)), self.base]

        free = [name for name in drawn if name not in rows]
        for values in row_cases(self.parts, bases, free, self.first, rng):
            yield WideCase(values, is_ordinary=True, off=0.0)

    def _at_inner_limits(
        self, arrays: Mapping[str, Array], numbers: Sequence[float], own: dict[str, list[float]]
    ) -> Iterator[WideCase]:
        """Yield cases at limits, and between those of each input. own: the limits that are known of each."""
        rng = np.random.default_rng(self.seed)
        for count, values in enumerate(inner_cases(self.parts, self.base, arrays, numbers)):
            for name, value in values.items():
                known = own.setdefault(name, [])
                changed = np.unique(np.asarray(value)[np.asarray(value) != arrays[name]].astype(np.float64))
                known += (number for number in changed[:_FEW_ELEMENTS] if _is_new(number, known))
            if count < _MOST_INNER:
                yield WideCase({**self.base, **values}, off=_NEAR)
        own = {name: known[:_MOST_LIMITS] for name, known in own.items() if name in arrays and known}
        for values in draw_between_own({name: arrays[name] for name in own}, own, rng, _MOST_BETWEEN):
            yield WideCase({**self.base, **values}, limits=_sorted(own))

    def _at_lengths(
        self, numbers: Sequence[float], lengths: Sequence[int], rows: Mapping[str, int]
    ) -> Iterator[WideCase]:
        middles = sorted({int(number) for number in numbers if number.is_integer() and 1 < number <= _LONGEST})
        between = [(low + high) // 2 for low, high in itertools.pairwise(middles)]
        wanted = sorted({*lengths, *middles, *(number + 1 for number in middles), *between}, reverse=True)
        for length in wanted[:_MOST_LENGTHS]:
            for inputs in self.maker.reaching(length):
                if _is_small(inputs) and _are_positions(inputs, self.base, rows, self.maker):
                    yield WideCase(inputs, is_ordinary=True)

    def _ties(
        self, arrays: Mapping[str, Array], numbers: Sequence[float], rng: np.random.Generator
    ) -> Iterator[WideCase]:
        """Yield ties: of what an input itself is compared with, and of all numbers."""
        for part in self.parts:
            for name, limits in part.limits.items():
                value = arrays.get(name)
                if value is None or value.dtype.kind != "f":
                    continue
                for limit in limits:
                    with contextlib.suppress(ValueError):
                        tied = np.broadcast_to(limit, value.shape).astype(value.dtype)
                        yield WideCase({**self.base, name: tied}, has_ties=True)
            for one, other in part.ties:
                left, right = (arrays.get(name) for name in (one, other))
                if left is not None and right is not None and left.shape == right.shape:
                    yield WideCase({**self.base, other: left.astype(right.dtype)}, has_ties=True)
        exact = np.array(numbers)
        for _ in range(_TIES):
            with np.errstate(over="ignore", invalid="ignore"):
                all_tied = {name: rng.choice(exact, value.shape).astype(value.dtype) for name, value in arrays.items()}
            yield WideCase({**self.base, **all_tied}, has_ties=True)


def _is_new(number: float, known: Sequence[float]) -> bool:
    return all(abs(number - other) > _OFF * max(abs(number), abs(other)) for other in known)


def _sorted(limits: Mapping[str, Sequence[float]]) -> dict[str, Array]:
    return {name: np.array(sorted({*found, 0.0})) for name, found in limits.items()}


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


def _is_drawn(value: Value, maker: InputMaker, name: str) -> TypeGuard[Array]:
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
