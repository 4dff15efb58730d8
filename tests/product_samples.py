"""The default tests run a sample of the cases of a test: where parameters multiply, and where `sample` says how many.

The slow tests run the rest.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

# Conversions to many opsets, of many element types and shapes; in other folders a case takes a few milliseconds.
FOLDERS = [Path(__file__).parent / name for name in ("conversion", "conformance")]


def mark_rest_as_slow(items: Iterable[pytest.Item]) -> None:
    """Mark the cases that are in no sample. `sample(n)` asks for n cases of a test. A product is a test with several
    parametrizations; its sample has each value of each of them.
    """
    tests: dict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and not item.get_closest_marker("slow"):
            tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        wanted = cases[0].get_closest_marker("sample")
        is_product = any(folder in cases[0].path.parents for folder in FOLDERS) and len(_factors(cases[0])) > 1
        for case in _mixed(cases)[wanted.args[0] :] if wanted else _rest(cases) if is_product else ():
            case.add_marker(pytest.mark.slow)


def _factors(case: pytest.Function) -> list[tuple[str, ...]]:
    """Return the names that each parametrization of a test gives."""
    names = [mark.args[0] for mark in case.iter_markers("parametrize")]
    return [tuple(each.replace(" ", "").split(",")) if isinstance(each, str) else tuple(each) for each in names]


def _rest(cases: Iterable[pytest.Function]) -> list[pytest.Function]:
    """Return the cases that are not in the sample, which does not depend on what else is collected."""
    rest, seen = list[pytest.Function](), set[object]()
    for case in _mixed(cases):
        values = {(names, *(id(case.callspec.params[name]) for name in names)) for names in _factors(case)}
        if values <= seen:
            rest.append(case)
        seen |= values
    return rest


def _mixed(cases: Iterable[pytest.Function]) -> list[pytest.Function]:
    """Return cases in an order that is always the same, and not that in which they are written."""
    return sorted(cases, key=lambda case: zlib.crc32(case.nodeid.encode()))
