"""Comparing what splitgraph says of a chain of shape arithmetic with what the chain gives at many concrete sizes."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

from chain_models import model_of_chain
from chain_simulator import Chain, DoesNotRun, Values, evaluate_chain
from random_chains import random_chain

import splitgraph
from splitgraph.inference.analysis import Analysis

Sizes = Mapping[str, int]

# A word of Python, or a spelling of its objects, which no reader of a model knows.
_PYTHON: Final = re.compile(r"\b(None|True|False|inf|nan|Dim|Ellipsis|NotImplemented|lambda|object at)\b|<class")
_FUNCTIONS: Final = {"__builtins__": {}, "min": min, "max": max}
_MOST_POINTS = 150


@dataclass
class Findings:
    """Wrong answers of one chain, each as a kind and a text; and how often something was compared.

    plainer: dimensions that equal a symbol or a number wherever the chain runs, but are written otherwise. following:
    obligations that hold wherever the others do. named: whether other names of the symbols change the answer.
    excluded: of the points at which the chain runs, those at which an assumption fails, so that nothing is claimed.
    """

    wrong: list[tuple[str, str]] = field(default_factory=list)
    points: int = 0
    dims: int = 0
    symbolic: int = 0
    unknown: int = 0
    obligations: int = 0
    assumptions: int = 0
    excluded: int = 0
    plainer: list[str] = field(default_factory=list)
    following: list[str] = field(default_factory=list)
    named: bool = False


def check_chain(seed: int, *, rename: bool = False, broadcasts: bool = False) -> Findings:
    """Infer the chain of the seed with splitgraph's public API and compare."""
    chain, design = random_chain(seed, broadcasts=broadcasts)
    found = Findings()
    analysis = splitgraph.infer(model_of_chain(chain))
    for finding in analysis.diagnostics:
        if finding.severity == "error":
            found.wrong.append(("error", f"{finding.code} {finding.message}"))
    for text in texts_of(analysis):
        if _PYTHON.search(text):
            found.wrong.append(("Python word", text))
    runs = list(_runs(chain, design, seed))
    found.points = len(runs)
    claimed = [run for run in runs if all(_evaluated(str(each), run[0]) for each in analysis.assumptions)]
    found.assumptions, found.excluded = len(analysis.assumptions), len(runs) - len(claimed)
    _check_obligations(found, analysis, claimed)
    claims = {name: analysis.types[name].shape for name in runs[0][1] if analysis.types[name].kind == "tensor"}
    for sizes, values in claimed:
        _check_dims(found, claims, sizes, values)
    _count(found, claims, runs)
    if rename:
        found.named = _texts_under(chain, chain) != _texts_under(chain, _renamed(chain))
    return found


def texts_of(analysis: Analysis) -> Iterator[str]:
    """Everything that is written of an analysis."""
    yield from (finding.message for finding in analysis.diagnostics)
    yield from map(str, analysis.obligations)
    yield from map(str, analysis.assumptions)
    yield from map(str, analysis.types.values())
    for split in analysis.splits:
        yield from split.obligations
        yield from (str(length) for length in split.lengths if length is not None)


def _runs(chain: Chain, design: Sizes, seed: int) -> Iterator[tuple[Sizes, Values]]:
    """Sizes at which the chain runs, and its values; those of its design first."""
    names, rng = chain.symbols, random.Random(seed)
    points: list[dict[str, int]] = [{name: design[name] for name in names}]
    grid = list(product(range(13), repeat=len(names))) if len(names) < 3 else []
    rng.shuffle(grid)
    points += [dict(zip(names, point, strict=True)) for point in grid[:_MOST_POINTS]]
    while len(points) < _MOST_POINTS:
        point = {name: rng.choice((0, 1, 2, 3, 4, 5, 6, 8, 12, rng.randint(0, 64))) for name in names}
        # Near the design, where the chain is likely to run.
        kept = {name: design[name] for name in names if rng.random() < 0.5}
        points.append({**point, **kept})
    seen = set()
    for point in points:
        key = tuple(point[name] for name in names)
        if key in seen:
            continue
        seen.add(key)
        try:
            yield point, evaluate_chain(chain, point)
        except DoesNotRun:
            continue


def _evaluated(text: str, known: Mapping[str, Any]) -> Any:
    """The value of an expression as it is printed; None where it speaks of a symbol without a value."""
    try:
        return eval(text, _FUNCTIONS, dict(known))
    except NameError:
        return None


def _generated(claims: Mapping[str, Any], sizes: Sizes, values: Values) -> dict[str, int]:
    """The sizes, and the values of generated symbols, each where it stands alone for the first time."""
    known = dict(sizes)
    for name, shape in claims.items():
        for dim, real in zip(shape or (), values[name].shape, strict=False):
            known.setdefault(str(dim), real)
    return known


def _check_obligations(found: Findings, analysis: Analysis, runs: list[tuple[Sizes, Values]]) -> None:
    """Each obligation holds wherever the chain runs."""
    found.obligations = len(analysis.obligations)
    for text in map(str, analysis.obligations):
        for sizes, values in runs:
            try:
                claims = {name: known.shape for name, known in analysis.types.items() if name in values}
                holds = _evaluated(text, _generated(claims, sizes, values))
            except ZeroDivisionError:
                holds = False
            if holds is False:
                found.wrong.append(("obligation", f"{text} at {dict(sizes)}"))
                break


def _check_dims(found: Findings, claims: Mapping[str, Any], sizes: Sizes, values: Values) -> None:
    known = _generated(claims, sizes, values)
    for name, shape in claims.items():
        real = values[name].shape
        if shape is None:
            continue
        if len(shape) != len(real):
            found.wrong.append(("rank", f"{name} is {list(map(str, shape))}, but {real} at {dict(sizes)}"))
            continue
        for dim, size in zip(shape, real, strict=True):
            if dim is None:
                continue
            try:
                claimed = dim if isinstance(dim, int) else _evaluated(str(dim), known)
            except ZeroDivisionError:
                claimed = -1
            if claimed is not None and claimed != size and len(found.wrong) < 20:
                found.wrong.append(("dim", f"{name}: {dim} is {claimed}, but {size} at {dict(sizes)}"))


def _count(found: Findings, claims: Mapping[str, Any], runs: list[tuple[Sizes, Values]]) -> None:
    names = [name for name in runs[0][0].keys() & runs[-1][0].keys() if not name.startswith("_")]
    for name, shape in claims.items():
        for axis, dim in enumerate(shape or ()):
            found.dims += 1
            found.unknown += dim is None
            found.symbolic += dim is not None and not isinstance(dim, int)
            if dim is None or isinstance(dim, int) or len(runs) < 6 or str(dim) in names:
                continue
            real = [values[name].shape[axis] for _, values in runs]
            varied = len(set(real)) > 2
            plain = [symbol for symbol in names if varied and [sizes[symbol] for sizes, _ in runs] == real]
            if plain:
                found.plainer.append(f"{name}: {dim} is {plain[0]}")


def _renamed(chain: Chain) -> Chain:
    names = chain.symbols
    other = {name: name if name.startswith("_") else f"s{len(names) - place}" for place, name in enumerate(names)}
    inputs = {
        name: tuple(other[dim] if isinstance(dim, str) else dim for dim in dims) for name, dims in chain.inputs.items()
    }
    return chain._replace(inputs=inputs)


def _texts_under(chain: Chain, renamed: Chain) -> list[str]:
    """What is said of each dimension and of each obligation, as values at a few sizes: terms are sorted by name."""
    analysis = splitgraph.infer(model_of_chain(renamed))
    names = dict(zip(_symbols_in_order(renamed), _symbols_in_order(chain), strict=True))
    known = {new: 7 + 13 * place for place, new in enumerate(names)}
    said = [f"{len(analysis.obligations)} obligations"]
    for name, value in analysis.types.items():
        for dim in value.shape or ():
            said.append(f"{name} {dim if dim is None else _or_zero(str(dim), known)} {len(str(dim)) > 12}")
    return said


def _symbols_in_order(chain: Chain) -> list[str]:
    return list(dict.fromkeys(dim for dims in chain.inputs.values() for dim in dims if isinstance(dim, str)))


def _or_zero(text: str, known: Sizes) -> Any:
    try:
        return _evaluated(text, known)
    except ZeroDivisionError:
        return 0
