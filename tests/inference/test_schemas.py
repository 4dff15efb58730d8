"""The table of signatures says of every operator what the installed onnx says."""

from __future__ import annotations

from dataclasses import fields

import onnx
import pytest

from splitgraph.inference import installed_schemas, schemas
from splitgraph.inference.schemas import Schema, newest_in_table, newest_opset, schema_of, versions_of

INSTALLED = installed_schemas.installed_schemas()


def _values(schema: Schema) -> dict[str, object]:
    return {field.name: getattr(schema, field.name) for field in fields(schema)}


def test_every_installed_version_is_in_the_table_as_it_is() -> None:
    for schema in INSTALLED:
        found = [held for held in versions_of(schema.domain, schema.name) if held.since_version == schema.since_version]
        assert [_values(held) for held in found] == [_values(schema)], (
            "run `python -m splitgraph.inference.installed_schemas` with the newest onnx, and read what changed"
        )


def test_the_table_reaches_as_far_as_the_installed_onnx() -> None:
    assert newest_in_table() >= onnx.defs.onnx_opset_version()


def test_what_is_written_is_what_is_read() -> None:
    text = schemas.TABLE.read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines()[1:] if not line.startswith("types\t")]
    known = [schema for domain, name in {(row[0], row[1]) for row in rows} for schema in versions_of(domain, name)]
    assert len(known) == len(rows) >= len(INSTALLED)
    assert installed_schemas.written(known, newest_in_table()) == text


@pytest.mark.parametrize(
    ("op_type", "opset", "since_version"),
    [
        ("Split", 12, 11),
        ("Split", 28, 18),
        ("Upsample", 9, 9),
        ("Upsample", 10, None),
        ("GroupNormalization", 18, 18),
        ("GroupNormalization", 21, 21),
        ("Gelu", 19, None),
        ("NoSuchOperator", 18, None),
    ],
)
def test_the_version_at_an_opset(op_type: str, opset: int, since_version: int | None) -> None:
    found = schema_of("", op_type, opset)
    assert (None if found is None else found.since_version) == since_version


def test_an_opset_beyond_the_table_is_asked_of_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer onnx than the table's works as the table's did."""
    monkeypatch.setattr(schemas, "newest_in_table", lambda: 12)
    newest = onnx.defs.onnx_opset_version()
    assert (newest_opset(12), newest_opset(13)) == (12, newest)
    found = schema_of("", "Split", newest)
    assert found is not None
    assert found.since_version == 18


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
        found = schema_of("com.example.registered", "Halve", 5)
        assert found is not None
        assert (found.since_version, found.fewest_inputs) == (3, 1)
        assert found.inputs[0].allowed == {"float32"}
    finally:
        onnx.defs.deregister_schema("Halve", 3, "com.example.registered")
