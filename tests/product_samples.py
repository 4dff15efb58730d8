"""The default tests run a sample of the cases of a test: where parameters multiply, where `sample` says how many, and
of long tables where each case runs an engine; and no case that takes long (`long_cases.py`).

The slow tests run the rest. CI runs one part of them after the other (`--part`), day by day.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from long_cases import long_cases

# Conversions to many opsets, of many element types and shapes; in other folders a case takes a few milliseconds.
FOLDERS = [Path(__file__).parent / name for name in ("conversion", "conformance")]
# Engines run in each case. Of a table, this share runs by default, and so many cases at least.
ENGINES = [
    Path(__file__).parent / name
    for name in (
        "verification",
        "openvino_runtime",
        "conversion/operators/standard",
        "conversion/operators/machine_learning",
    )
]
SHARE, LEAST = 3, 6


def mark_rest_as_slow(items: Iterable[pytest.Item]) -> None:
    """Mark the cases that are in no sample. `sample(n)` asks for n cases of a test. A product is a test with several
    parametrizations; its sample has each value of each of them.
    """
    tests: dict[str, list[pytest.Function]] = defaultdict(list)
    too_long = long_cases()
    for item in items:
        if item.nodeid in too_long:
            item.add_marker(pytest.mark.slow)
        if isinstance(item, pytest.Function) and not item.get_closest_marker("slow"):
            tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        wanted = cases[0].get_closest_marker("sample")
        for case in _mixed(cases)[wanted.args[0] :] if wanted else _left_out(cases):
            case.add_marker(pytest.mark.slow)


def _left_out(cases: Sequence[pytest.Function]) -> list[pytest.Function]:
    """Return the cases of a test that are in no sample, without a number that the test asks for."""
    folders = cases[0].path.parents
    if any(folder in folders for folder in FOLDERS) and len(_factors(cases[0])) > 1:
        return _rest(cases)
    if any(folder in folders for folder in ENGINES) and cases[0].get_closest_marker("parametrize"):
        return _mixed(cases)[max(LEAST, len(cases) // SHARE) :]
    return []


def of_part(items: Iterable[pytest.Item], part: str) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests of a part, such as "2/5" for the second of five, and the others. A test is always in the same
    part.
    """
    number, count = map(int, part.split("/"))
    if not 1 <= number <= count:
        raise pytest.UsageError(f"--part {part}: the first number is one of 1 to {count}")
    own: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        (own if zlib.crc32(item.nodeid.encode()) % count == number - 1 else others).append(item)
    return own, others


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
