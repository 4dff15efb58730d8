"""The default tests run a sample of the tests whose parameters multiply; the slow tests run the rest."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

# Conversions to many opsets, of many element types and shapes; in other folders a case takes a few milliseconds.
FOLDERS = [Path(__file__).parent / name for name in ("conversion", "conformance")]


def mark_rest_as_slow(items: Iterable[pytest.Item]) -> None:
    """Mark the cases of products that are in no sample. A product is a test with several parametrizations; its sample
    has each value of each of them.
    """
    products: dict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and any(folder in item.path.parents for folder in FOLDERS):
            products[item.nodeid.partition("[")[0]].append(item)
    for cases in products.values():
        for case in _rest(cases) if len(_factors(cases[0])) > 1 else ():
            case.add_marker(pytest.mark.slow)


def _factors(case: pytest.Function) -> list[tuple[str, ...]]:
    """Return the names that each parametrization of a test gives."""
    names = [mark.args[0] for mark in case.iter_markers("parametrize")]
    return [tuple(each.replace(" ", "").split(",")) if isinstance(each, str) else tuple(each) for each in names]


def _rest(cases: Iterable[pytest.Function]) -> list[pytest.Function]:
    """Return the cases that are not in the sample, which does not depend on what else is collected."""
    rest, seen = list[pytest.Function](), set[object]()
    for case in sorted(cases, key=lambda case: zlib.crc32(case.nodeid.encode())):
        values = {(names, *(id(case.callspec.params[name]) for name in names)) for names in _factors(case)}
        if values <= seen:
            rest.append(case)
        seen |= values
    return rest
