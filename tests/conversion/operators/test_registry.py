"""Somebody decided about every boundary, and no decision is about a boundary that does not exist."""

from __future__ import annotations

from collections import defaultdict

import onnx
import pytest

from splitgraph.conversion.keep import route_of
from splitgraph.conversion.operators.registry import RULES, UNCHANGED, decision, load_families
from splitgraph.model.schemas import table
from splitgraph.model.schemas.experimental import EXPERIMENTAL, experiments_end
from splitgraph.model.schemas.history import meant_version, versions_between
from splitgraph.model.schemas.table import _RELEASES, minimum_ir_version
from splitgraph.model.scopes import MACHINE_LEARNING, VERSIONED_DOMAINS
from splitgraph.splits import SPLIT_OPERATORS

for _domain in VERSIONED_DOMAINS:
    load_families(_domain)


def _versions(domain: str = "") -> dict[str, list[int]]:
    """Of the installed onnx, and of the table, which knows more than an older onnx does."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == domain:
            found[schema.name].add(schema.since_version)
    for row in (line.split("\t") for line in table.TABLE.read_text(encoding="utf-8").splitlines()[1:]):
        if row[0] == domain:
            found[row[1]] |= {version.since_version for version in table.versions_of(domain, row[1])}
    return {op: sorted(versions) for op, versions in found.items()}


def _boundaries() -> set[tuple[str, int]]:
    """Those of all domains, whose operators have no name in common."""
    return {
        (op, version)
        for domain in VERSIONED_DOMAINS
        for op, versions in _versions(domain).items()
        if op not in SPLIT_OPERATORS
        for version in versions[1:]
    }


def test_domains_have_no_operator_in_common() -> None:
    assert _versions(MACHINE_LEARNING)
    assert not _versions().keys() & _versions(MACHINE_LEARNING).keys()


@pytest.mark.parametrize("op", sorted(_versions(MACHINE_LEARNING)))
def test_versions_of_machine_learning_are_those_of_the_schema_history(op: str) -> None:
    versions = versions_between(op, 1, table.newest_in_table(MACHINE_LEARNING), MACHINE_LEARNING)
    assert [version.since_version for version in versions] == _versions(MACHINE_LEARNING)[op]


def test_every_operator_has_a_route_from_each_version_of_machine_learning_to_each() -> None:
    newest = table.newest_in_table(MACHINE_LEARNING)
    for op, versions in _versions(MACHINE_LEARNING).items():
        for start in range(versions[0], newest + 1):
            for end in range(1, newest + 1):
                route = route_of(op, start, end, MACHINE_LEARNING)
                crossed = [version for version in versions if min(start, end) < version <= max(start, end)]
                assert not isinstance(route, str)
                assert (route is None) == (not crossed), (op, start, end)


def test_every_boundary_is_decided() -> None:
    undecided = _boundaries() - UNCHANGED - RULES.keys()
    assert not undecided, (
        f"decide about {sorted(undecided)} in a family of splitgraph/conversion/operators/: what changed, by the "
        "signatures and the documents of both versions; and whether the operator's rule in splitgraph/inference/rules "
        "still holds"
    )


def test_no_boundary_is_decided_twice() -> None:
    assert not UNCHANGED & RULES.keys()


def test_every_decision_is_about_a_boundary() -> None:
    # Of what was experimental no schema is left.
    experimental = {(op, experiments_end(op)) for op in EXPERIMENTAL}
    assert not (UNCHANGED | RULES.keys()) - experimental - _boundaries()


def test_split_family_exists_and_is_decided_elsewhere() -> None:
    assert _versions().keys() >= SPLIT_OPERATORS
    assert not {op for op, _ in UNCHANGED | RULES.keys()} & SPLIT_OPERATORS


def test_unknown_boundary_is_refused_in_both_directions() -> None:
    rule = decision("Relu", 10_000)
    assert rule is not None
    assert (rule.up, rule.down) == (RULES["Unsqueeze", 13].up, RULES["Unsqueeze", 13].down)


@pytest.mark.parametrize("op", ["Relu", "Softmax", "GridSample", "Identity"])
def test_versions_are_those_of_the_schema_history(op: str) -> None:
    newest = onnx.defs.onnx_opset_version()
    history = sorted(
        {s.since_version for s in onnx.defs.get_all_schemas_with_history() if (s.name, s.domain) == (op, "")}
    )
    assert [version.since_version for version in versions_between(op, 1, newest)] == history


def test_version_before_the_first_is_none() -> None:
    assert meant_version("GridSample", 15) is None
    assert meant_version("NoSuchOperator", 15) is None


@pytest.mark.parametrize(
    ("opset", "expected"), [(1, 3), (2, 3), (8, 3), (9, 4), (11, 6), (14, 7), (15, 8), (18, 8), (21, 10)]
)
def test_minimum_ir_version(opset: int, expected: int) -> None:
    assert minimum_ir_version(opset) == expected


def test_minimum_ir_version_is_that_of_the_release() -> None:
    """As the installed onnx lists its releases; the newest opset of the table is asked about with any onnx."""
    released = {opset: ir for _, ir, opset, *_ in reversed(onnx.helper.VERSION_TABLE)}
    for opset, ir_version in released.items():
        assert minimum_ir_version(opset) == ir_version, "extend _RELEASES in splitgraph/model/schemas/table.py"
    assert _RELEASES[-1][0] == table.newest_in_table(), "extend _RELEASES in splitgraph/model/schemas/table.py"


def test_minimum_ir_version_never_decreases() -> None:
    found = [minimum_ir_version(opset) for opset in range(1, onnx.defs.onnx_opset_version() + 1)]
    assert found == sorted(found)


@pytest.mark.parametrize("opset", [-1, 0, 10_000])
def test_minimum_ir_version_of_unknown_opset(opset: int) -> None:
    with pytest.raises(ValueError, match="not between"):
        minimum_ir_version(opset)
