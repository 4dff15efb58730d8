"""The pages of the JSON documents, from the JSON Schemas in docs/reference/schemas/: an overview, what commands print
by what they are for, the files, and the parts that several of these have.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Schema = dict[str, Any]

_FOLDER = Path(__file__).with_name("reference") / "schemas"
_FILES_PAGE, _PARTS_PAGE = "json-files.md", "json-parts.md"
# Each page with its title and its documents. Files come with splitgraph, or splitgraph writes them.
DOCUMENT_PAGES = {
    "json-reading.md": ("JSON: infer, check", ("infer", "check", "targets")),
    "json-rewriting.md": ("JSON: rewriting, many models, failures", ("rewrite", "many", "failure")),
    "json-comparing.md": ("JSON: verify, diff", ("verify", "diff")),
    "json-others.md": ("JSON: report, explain, doctor", ("report", "explain", "doctor")),
    _FILES_PAGE: ("JSON: files", ("target", "operators", "answers", "outcome")),
}
_COMMON = "common"
_NOTE = "<!-- Generated from `docs/reference/schemas/` by `docs/make_reference.py`; do not edit by hand. -->"

_INTRODUCTION = f"""\
# JSON documents

{_NOTE}

With `--json` a command prints exactly one document on stdout, whether it succeeds or fails; everything else goes to
stderr. The text is ASCII: other characters are escaped. Every document begins with the key `splitgraph`, the version
that printed the document.

Each document has a [JSON Schema](https://json-schema.org/draft/2020-12) of draft 2020-12 in [schemas/](schemas/). The
tests of splitgraph validate the documents of every command against these schemas. The schemas refer to each other by
file name.

A schema allows exactly the keys that its own release prints. Later releases may add keys: a program that reads
documents of several releases ignores the keys that it does not know. A key that is removed, or that changes its
meaning, is listed in [CHANGELOG.md](../../CHANGELOG.md).

There is no document where the name of the command is missing or wrong, where stdout cannot be written (exit code 2),
and where the program is interrupted ([exit codes](command-line.md#exit-codes) 130 and above).

The [table of targets]({_FILES_PAGE}#table-of-targets), the [table of operators]({_FILES_PAGE}#table-of-operators) and
the [answers of runtimes]({_FILES_PAGE}#answers-of-a-runtime), JSON files that come with splitgraph, have schemas too,
and so does each line of the [report of many models]({_FILES_PAGE}#report-of-many-models). Several documents have
[parts]({_PARTS_PAGE}) in common.
"""


def json_page() -> str:
    """The overview as Markdown: what all documents have in common, and where each is."""
    rows = ["| of | page |\n|---|---|"]
    for page, (_, names) in DOCUMENT_PAGES.items():
        for name in names:
            title = read_schema(name)["title"]
            rows.append(f"| {title} | [{page}]({page}#{_anchor(title)}) |")
    return "\n".join([_INTRODUCTION, *rows, ""])


def documents_page(page: str) -> str:
    """The page of that name: a section for each of its documents, with every key."""
    title, names = DOCUMENT_PAGES[page]
    common, parts = read_schema(_COMMON), [f"# {title}\n\n{_NOTE}\n"]
    for name in names:
        parts += _document(name, read_schema(name), common)
    return "\n".join(parts)


def parts_page() -> str:
    """The page of the parts that documents and files have: a section for each."""
    common, parts = read_schema(_COMMON), [f"# JSON: parts of documents\n\n{_NOTE}\n"]
    for name in (*(name for _, names in DOCUMENT_PAGES.values() for name in names), _COMMON):
        schema = read_schema(name)
        for part in schema.get("$defs", {}).values():
            if not _is_case(part):
                parts += _part(part, schema, common)
    return "\n".join(parts)


def read_schema(name: str) -> Schema:
    """The schema of that name: "infer" for infer.schema.json."""
    schema: Schema = json.loads((_FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))
    return schema


def _document(name: str, schema: Schema, common: Schema) -> Iterator[str]:
    yield f"## {schema['title']}\n"
    yield f"{schema['description']} Schema: [{name}.schema.json](schemas/{name}.schema.json).\n"
    yield from _keys(schema, schema, common)
    for case in schema.get("$defs", {}).values():
        if _is_case(case):
            yield f"{case['description']}\n"
    for example in schema["examples"]:
        yield f"For example:\n\n```json\n{json.dumps(example, indent=2, ensure_ascii=False)}\n```\n"


def _part(part: Schema, home: Schema, common: Schema) -> Iterator[str]:
    yield f"## {part['title']}\n"
    yield f"{part['description']}\n"
    yield from _keys(part, home, common)


def _keys(schema: Schema, home: Schema, common: Schema) -> Iterator[str]:
    """The table of an object's keys, and where it has the keys of another part, the link to that."""
    properties: Schema = schema.get("properties", {})
    if properties:
        yield "| Key | Value | Meaning |\n|---|---|---|"
        required = schema.get("required", ())
        for key, value in properties.items():
            told = value["description"] if key in required else f"Not always there. {value['description']}"
            yield f"| `{key}` | {_value(value, home, common)} | {_in_a_cell(told)} |"
        yield ""
    if "$ref" in schema:
        also = "It also has the keys" if properties else "It has the keys"
        yield f"{also} of {_link(schema['$ref'], home, common)}.\n"


def _value(schema: Schema, home: Schema, common: Schema) -> str:
    """What a value may be, in words, with links to the parts."""
    if "$ref" in schema:
        return _link(schema["$ref"], home, common)
    if "anyOf" in schema:
        return ", or ".join(_value(choice, home, common) for choice in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return ", or ".join(_kind(kind, schema, home, common) for kind in kinds)


def _kind(kind: str, schema: Schema, home: Schema, common: Schema) -> str:
    if kind == "array":
        return f"array of: {_value(schema['items'], home, common)}"
    if kind == "object" and "additionalProperties" in schema:
        return f"object, each value: {_value(schema['additionalProperties'], home, common)}"
    return kind


def _link(reference: str, home: Schema, common: Schema) -> str:
    file, _, pointer = reference.partition("#/$defs/")
    title = (common if file.startswith(_COMMON) else home)["$defs"][pointer]["title"]
    return f"[{_lower(title)}]({_PARTS_PAGE}#{_anchor(title)})"


def _anchor(title: str) -> str:
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def _is_case(part: Schema) -> bool:
    # What narrows its document down for one case is told with the document.
    return part["title"].startswith("Failed ")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _in_a_cell(text: str) -> str:
    return text.replace("|", "\\|")
