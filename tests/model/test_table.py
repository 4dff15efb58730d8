"""The table of schemas says of every operator what the installed onnx says."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields

import onnx
import pytest

from splitgraph.model.schemas import OperatorVersion, installed, newest_opset, table, version_at, versions_of

INSTALLED = installed.installed_schemas()
WRITE_ANEW = "run `python -m splitgraph.model.schemas.installed` with the newest onnx, and read what changed"


def _values(version: OperatorVersion) -> dict[str, object]:
    return {field.name: getattr(version, field.name) for field in fields(version)}


def test_every_installed_version_is_in_the_table_as_it_is() -> None:
    for version in INSTALLED:
        found = [
            held for held in versions_of(version.domain, version.op) if held.since_version == version.since_version
        ]
        assert [_values(held) for held in found] == [_values(version)], WRITE_ANEW


def test_the_table_reaches_as_far_as_the_installed_onnx() -> None:
    assert newest_opset() >= onnx.defs.onnx_opset_version(), WRITE_ANEW
    for domain, opset in installed.installed_opsets().items():
        assert table.newest_in_table(domain) >= opset, WRITE_ANEW


def test_what_is_written_is_what_is_read() -> None:
    text = table.TABLE.read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines()[1:] if not line.startswith("types\t")]
    known = [version for domain, op in {(row[0], row[1]) for row in rows} for version in versions_of(domain, op)]
    assert len(known) == len(rows)
    assert len(rows) >= len(INSTALLED), WRITE_ANEW
    opsets = dict(entry.rsplit("=", 1) for entry in text.splitlines()[0].split("\t")[1:])
    assert installed.written(known, {domain: int(opset) for domain, opset in opsets.items()}) == text


@pytest.mark.parametrize(
    ("op", "opset", "since_version"),
    [
        ("Split", 12, 11),
        ("Split", 28, 18),
        ("Upsample", 9, 9),
        ("Upsample", 10, 10),
        ("GroupNormalization", 18, 18),
        ("GroupNormalization", 21, 21),
        ("Gelu", 19, None),
        ("NoSuchOperator", 18, None),
    ],
)
def test_the_version_at_an_opset(op: str, opset: int, since_version: int | None) -> None:
    found = version_at("", op, opset)
    assert (None if found is None else found.since_version) == since_version


def test_an_opset_beyond_the_table_is_asked_of_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer onnx than the table's works as the table's did."""
    monkeypatch.setattr(table, "newest_in_table", lambda domain="": 12)
    newest = onnx.defs.onnx_opset_version()
    assert (newest_opset(), newest_opset(12), newest_opset(13)) == (12, 12, newest)
    found = version_at.__wrapped__("", "Split", newest)
    assert found is not None
    assert found.since_version == onnx.defs.get_schema("Split").since_version


def test_an_operator_that_a_program_registers_is_known() -> None:
    schema = onnx.defs.OpSchema(
        "Halve",
        "com.example.registered",
        3,
        inputs=[onnx.defs.OpSchema.FormalParameter("x", "T")],
        outputs=[onnx.defs.OpSchema.FormalParameter("y", "T")],
        type_constraints=[("T", ["tensor(float)"], "")],
    )
    onnx.defs.register_schema(schema)
    try:
        found = version_at("com.example.registered", "Halve", 5)
        assert found is not None
        assert (found.since_version, found.min_inputs) == (3, 1)
        assert found.inputs[0].types == {"tensor(float)"}
    finally:
        onnx.defs.deregister_schema("Halve", 3, "com.example.registered")


def test_a_newer_version_that_a_program_registers_is_known() -> None:
    """Of an operator that the table has, at an opset of its domain that the table does not reach. In a process of its
    own: onnx takes back the schema, but not the opset.
    """
    program = """
import onnx
from splitgraph.model.schemas import version_at
single = onnx.defs.OpSchema.FormalParameter
types = [("T", ["tensor(float)"], "")]
inputs = [single("a", "T"), single("b", "T")]
schema = onnx.defs.OpSchema(
    "Normalizer", "ai.onnx.ml", 900, inputs=inputs, outputs=[single("y", "T")], type_constraints=types
)
onnx.defs.register_schema(schema)
found = version_at("ai.onnx.ml", "Normalizer", 900)
print(found.since_version, found.min_inputs)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["900", "2"]
