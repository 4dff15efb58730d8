"""The published JSON Schemas, docs/reference/schemas/, and what they say of a document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

FOLDER = Path(__file__).parent.parent / "docs" / "reference" / "schemas"
SCHEMAS: dict[str, dict[str, Any]] = {
    path.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.schema.json"))
}
# Their names are relative: nothing is fetched.
_REGISTRY: Registry = Registry().with_resources(
    [(name, Resource.from_contents(schema)) for name, schema in SCHEMAS.items()]
)


def wrong(document: Any, name: str) -> list[str]:
    """What is wrong with a document by a schema ("infer" for infer.schema.json), one text for each fault."""
    validator = Draft202012Validator(SCHEMAS[f"{name}.schema.json"], registry=_REGISTRY)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)]
