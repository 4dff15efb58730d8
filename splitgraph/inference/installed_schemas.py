"""The signatures of the operators that the installed onnx knows, as `schemas` describes them.

Run as a module it writes the table of `schemas` anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from onnx import defs

from splitgraph.inference.schemas import TABLE, FormalInput, Schema

_KINDS = (("tensor(", ""), ("seq(tensor(", "sequence of "), ("optional(tensor(", "optional of "))
_LONG_NAMES = {"float": "float32", "double": "float64"}


def installed_schemas() -> list[Schema]:
    """All versions of all operators."""
    return [_described(schema) for schema in defs.get_all_schemas_with_history()]


@cache
def installed_versions(domain: str, op_type: str) -> tuple[Schema, ...]:
    """All versions of an operator, the oldest first; none for one that onnx does not know."""
    history = defs.get_all_schemas_with_history()
    found = [_described(schema) for schema in history if schema.name == op_type and schema.domain == domain]
    return tuple(sorted(found, key=lambda schema: schema.since_version))


def newest_installed() -> int:
    """The newest opset of ai.onnx that the installed onnx knows."""
    newest: int = defs.onnx_opset_version()
    return newest


def _described(schema: Any) -> Schema:
    attributes = {name: attribute.type.value for name, attribute in schema.attributes.items()}
    required = tuple(sorted(name for name, attribute in schema.attributes.items() if attribute.required))
    variables = {held.type_param_str: held.allowed_type_strs for held in schema.type_constraints}
    inputs = []
    for formal in schema.inputs:
        # Not `formal.types`, which says the same: onnx below 1.21 cannot hand that over to Python.
        types = variables.get(formal.type_str, [formal.type_str])
        allowed = frozenset(text for held in types if (text := _plain(held)) is not None)
        is_shared = bool(allowed) and formal.type_str in variables and formal.is_homogeneous
        is_required = formal.option == defs.OpSchema.FormalParameterOption.Single
        inputs.append(FormalInput(formal.name, is_required, allowed or None, formal.type_str if is_shared else ""))
    return Schema(
        schema.domain,
        schema.name,
        schema.since_version,
        schema.deprecated,
        schema.min_input,
        schema.max_input,
        attributes,
        required,
        tuple(inputs),
    )


def _plain(spelled: str) -> str | None:
    """A schema's spelling of a type in ours; None for one that the check of types does not follow."""
    for prefix, kind in _KINDS:
        if spelled.startswith(prefix):
            name = spelled[len(prefix) :].rstrip(")")
            return kind + _LONG_NAMES.get(name, name)
    return None


def written(schemas: Iterable[Schema], opset: int) -> str:
    """The table of these schemas; opset: the newest of ai.onnx that they cover."""
    numbers: dict[str, int] = {}
    rows = []
    for schema in sorted(schemas, key=lambda s: (s.domain, s.name, s.since_version)):
        formals = []
        for formal in schema.inputs:
            types = "*" if formal.allowed is None else ",".join(sorted(formal.allowed))
            number = numbers.setdefault(types, len(numbers))
            formals.append(f"{formal.name}{'' if formal.is_required else '?'}:{number}:{formal.variable}")
        attributes = [
            f"{name}{'' if name in schema.required else '?'}:{kind}" for name, kind in sorted(schema.attributes.items())
        ]
        version = f"{schema.since_version}{' deprecated' * schema.is_deprecated}"
        count = f"{schema.fewest_inputs} {schema.most_inputs}"
        rows.append("\t".join((schema.domain, schema.name, version, count, " ".join(formals), " ".join(attributes))))
    sets = [f"types\t{text}" for text in numbers]
    return "\n".join([f"Signatures of onnx's operators up to opset {opset}", *sets, *rows]) + "\n"


if __name__ == "__main__":
    TABLE.write_text(written(installed_schemas(), newest_installed()), encoding="utf-8")
