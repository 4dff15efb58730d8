"""The registry of variants against onnx's own schemas: a new version of a split operator turns these tests red."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import pytest
from onnx.defs import OpSchema

from splitgraph.model.value_type import DTYPE_NUMBERS
from splitgraph.splits import SPLIT_OPERATORS, VARIANTS, Variant, variant_at, variant_of
from splitgraph.verification.reference.kernels import ONNX_KERNEL_VERSIONS

SCHEMAS = [
    schema
    for schema in onnx.defs.get_all_schemas_with_history()
    if schema.domain == "" and schema.name in SPLIT_OPERATORS and not schema.deprecated
]
KINDS = {OpSchema.AttrType.INT: "int", OpSchema.AttrType.INTS: "ints", OpSchema.AttrType.STRING: "string"}
OPERATORS_PAGE = Path(__file__).parents[2] / "docs" / "operators.md"
OF_ONNX = [variant for variant in VARIANTS if variant.domain == ""]


def label(schema: OpSchema) -> str:
    return f"{schema.name}-{schema.since_version}"


def variant_for(schema: OpSchema) -> Variant:
    """The variant of a schema; fails with what is to be done when there is none."""
    found = variant_of(schema.name, schema.since_version)
    assert found is not None, (
        f"onnx has {label(schema)}, which splitgraph does not know: write splitgraph/splits/<its name>.py with a "
        "VARIANT and list it in splitgraph/splits/__init__.py; CONTRIBUTING.md says what else a version needs"
    )
    return found


def allowed_types(schema: OpSchema) -> set[str]:
    """The types that the first input may have, as onnx writes them.

    From the constraints, not `schema.inputs[0].types`: onnx below 1.21 cannot hand that over to Python.
    """
    variable = schema.inputs[0].type_str
    constraints = {bound.type_param_str: set(bound.allowed_type_strs) for bound in schema.type_constraints}
    return constraints.get(variable, {variable})


def element_types(schema: OpSchema) -> set[str]:
    """The element types that the first input may have, by splitgraph's names."""
    numbers = {number: name for name, number in DTYPE_NUMBERS.items()}
    texts = {text[len("tensor(") : -1] for text in allowed_types(schema)}
    named = {"float": "FLOAT", "double": "DOUBLE"}
    return {numbers[onnx.TensorProto.DataType.Value(named.get(text, text).upper())] for text in texts}


@pytest.mark.parametrize("schema", SCHEMAS, ids=label)
def test_every_version_has_a_variant(schema: OpSchema) -> None:
    variant = variant_for(schema)
    assert variant.inputs == (schema.min_input, schema.max_input)
    # onnx writes "any number" as the greatest int.
    most = None if schema.max_output > 1_000_000 else schema.max_output
    assert variant.outputs == (schema.min_output, most)
    assert {name: KINDS[attribute.type] for name, attribute in schema.attributes.items()} == dict(variant.attributes)
    assert variant.dtypes == element_types(schema)
    assert variant.label == label(schema)


@pytest.mark.parametrize("schema", SCHEMAS, ids=label)
def test_every_version_has_a_kernel_of_its_own(schema: OpSchema) -> None:
    assert schema.since_version in ONNX_KERNEL_VERSIONS[schema.name], (
        f"write a kernel of {label(schema)} in splitgraph/verification/reference/kernels.py, from the operator's "
        "document and not from the variant, and list the version in its table of versions"
    )


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: f"{variant.domain}.{variant.label}")
def test_every_version_has_a_row_in_the_documents(variant: Variant) -> None:
    """A row may be of several versions: "SplitToSequence-11, -24"."""
    rows = [line.split("|")[1] for line in OPERATORS_PAGE.read_text(encoding="utf-8").splitlines() if line[:2] == "| "]
    mine = [row for row in rows if f" {variant.op_type}-" in row and ("OpenVINO" in row) == (variant.domain != "")]
    found = {number for row in mine for number in re.findall(r"-(\d+)", row)}
    assert str(variant.since_version) in found, f"add a row of {variant.label} to docs/operators.md"


@pytest.mark.parametrize("variant", OF_ONNX, ids=lambda variant: variant.label)
def test_no_variant_is_made_up(variant: Variant) -> None:
    """Of the versions that the installed onnx can know."""
    known = {(schema.name, schema.since_version) for schema in SCHEMAS}
    assert (variant.op_type, variant.since_version) in known or variant.since_version > onnx.defs.onnx_opset_version()


@pytest.mark.parametrize("opset", range(1, onnx.defs.onnx_opset_version() + 1))
def test_an_opset_selects_the_version_that_onnx_selects(opset: int) -> None:
    for operator in SPLIT_OPERATORS:
        expected = max(
            (s.since_version for s in SCHEMAS if s.name == operator and s.since_version <= opset), default=None
        )
        found = variant_at(operator, opset)
        assert (None if found is None else found.since_version) == expected


def test_the_operators_are_the_family() -> None:
    assert set(SPLIT_OPERATORS) == {"Split", "SplitToSequence", "StringSplit"}
    splitting = {
        schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == "" and "Split" in schema.name
    }
    assert splitting == set(SPLIT_OPERATORS), (
        "onnx has another operator with Split in its name: decide whether it is one"
    )


def test_variants_are_listed_once() -> None:
    keys = [(variant.domain, variant.op_type, variant.since_version) for variant in VARIANTS]
    assert len(keys) == len(set(keys))
    assert variant_of("Split", 12) is None
    assert variant_of("Split", 13, "com.example") is None
