"""The schemas of the operators that the installed onnx knows.

Run as a module it writes the table of `splitgraph.model.schemas.table` anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from onnx import defs

from splitgraph.model.attributes import attribute_value
from splitgraph.model.schemas.operator_version import MARKS, TABLE, Formal, FormalAttribute, OperatorVersion, Option

_OPTIONS: dict[Any, Option] = {
    defs.OpSchema.FormalParameterOption.Single: "single",
    defs.OpSchema.FormalParameterOption.Optional: "optional",
    defs.OpSchema.FormalParameterOption.Variadic: "variadic",
}


def installed_schemas() -> list[OperatorVersion]:
    """Return all versions of all operators."""
    return [_described(schema) for schema in defs.get_all_schemas_with_history()]


@cache
def installed_versions(domain: str, op: str) -> tuple[OperatorVersion, ...]:
    """Return all versions of an operator, the oldest first; none for one that onnx does not know."""
    if not defs.has(op, domain):
        return ()
    # All of them are listed, which takes long, for an operator that onnx knows only.
    history = defs.get_all_schemas_with_history()
    versions = [_described(schema) for schema in history if schema.name == op and schema.domain == domain]
    return tuple(sorted(versions, key=lambda version: version.since_version))


def installed_opsets() -> dict[str, int]:
    """Return the newest opset of each domain that the installed onnx knows; of those without opsets of their own, the
    newest version of an operator.
    """
    newest: dict[str, int] = {}
    for schema in defs.get_all_schemas_with_history():
        newest[schema.domain] = max(newest.get(schema.domain, 0), schema.since_version)
    return newest | {"": newest_installed(), "ai.onnx.ml": defs.onnx_ml_opset_version()}


def newest_installed() -> int:
    """Return the newest opset of ai.onnx that the installed onnx knows."""
    newest: int = defs.onnx_opset_version()
    return newest


def _described(schema: Any) -> OperatorVersion:
    constraints = {bound.type_param_str: frozenset(bound.allowed_type_strs) for bound in schema.type_constraints}
    return OperatorVersion(
        schema.domain,
        schema.name,
        schema.since_version,
        schema.deprecated,
        schema.has_function or schema.has_context_dependent_function,
        {name: _formal_attribute(name, attribute) for name, attribute in sorted(schema.attributes.items())},
        tuple(_formal(parameter, constraints) for parameter in schema.inputs),
        tuple(_formal(parameter, constraints) for parameter in schema.outputs),
        schema.min_input,
        schema.max_input,
        schema.max_output,
    )


def _formal(parameter: Any, constraints: Mapping[str, frozenset[str]]) -> Formal:
    # Not `parameter.types`, which has the same content: onnx below 1.21 cannot pass it to Python.
    return Formal(
        parameter.name,
        parameter.type_str,
        constraints.get(parameter.type_str, frozenset((parameter.type_str,))),
        _OPTIONS[parameter.option],
        parameter.is_homogeneous,
        parameter.min_arity,
    )


def _formal_attribute(name: str, attribute: Any) -> FormalAttribute:
    default = attribute.default_value
    value = attribute_value(default) if default.type else None
    return FormalAttribute(name, attribute.type.value, attribute.required, value)


def written(versions: Iterable[OperatorVersion], opsets: Mapping[str, int]) -> str:
    """Return the table of these versions; opsets: the newest of each domain that they cover."""
    numbers: dict[str, int] = {}
    rows = []
    for version in sorted(versions, key=lambda version: (version.domain, version.op, version.since_version)):
        flags = [" deprecated"] * version.deprecated + [" function"] * version.has_function
        cells = (
            version.domain,
            version.op,
            f"{version.since_version}{''.join(flags)}",
            f"{version.min_inputs} {version.max_inputs} {version.max_outputs}",
            _written_formals(version.inputs, numbers),
            _written_formals(version.outputs, numbers),
            " ".join(_written_attribute(name, formal) for name, formal in version.attributes.items()),
        )
        rows.append("\t".join(cells))
    sets = [f"types\t{text}" for text in numbers]
    newest = [f"{domain}={opset}" for domain, opset in sorted(opsets.items())]
    return "\n".join(["\t".join(["opsets", *newest]), *sets, *rows]) + "\n"


def _written_formals(formals: Sequence[Formal], numbers: dict[str, int]) -> str:
    marks = {meaning: mark for mark, meaning in MARKS.items()}
    texts = []
    for formal in formals:
        number = numbers.setdefault("|".join(sorted(formal.types)), len(numbers))
        mark = marks[formal.option, formal.homogeneous, formal.min_count]
        texts.append(f"{formal.name}:{mark}:{formal.type_variable}:{number}")
    return ";".join(texts)


def _written_attribute(name: str, attribute: FormalAttribute) -> str:
    text, value = f"{name}:{'!' * attribute.required}:{attribute.type}", attribute.default_value
    if value is None:
        return text
    return f"{text}={','.join(map(str, value)) if isinstance(value, tuple) else value}"


if __name__ == "__main__":
    TABLE.write_text(written(installed_schemas(), installed_opsets()), encoding="utf-8")
