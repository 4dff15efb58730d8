"""The reference in docs/reference/: its JSON Schemas, and the pages that are generated."""

from __future__ import annotations

import copy
import importlib
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from json_schemas import SCHEMAS, wrong
from jsonschema import Draft202012Validator

import splitgraph
from splitgraph.cli import program

DOCS = Path(__file__).parents[2] / "docs"
DOCUMENTS = ("infer", "rewrite", "verify", "diff", "report", "explain", "doctor", "many", "failure")
FILES = ("target", "operators", "outcome")
EXAMPLES = [(name, example) for name in (*DOCUMENTS, *FILES) for example in SCHEMAS[f"{name}.schema.json"]["examples"]]
# Their keys are names of the model, not of the contract.
OF_THE_MODEL = ("inputs", "outputs", "operators", "opset", "from", "to", "values", "graphs", "symbols", "attributes")
# Keys that are there in some documents only.
OPTIONAL = ("operators", "values", "graphs", "why", "unchanged", "kept", "dry_run", "diff", "element")
# In files of operators, a number that would be 0 and a list that would be empty are left out.
OF_AN_OPERATOR = (
    "notes",
    "open",
    *("reads", "refuses", "hangs", "dies", "rank", "wrong", "rules", "unread", "unexplained", "like", "said"),
    *("sources", "types", "other_types"),
)
# What another document calls so is always there.
REQUIRED_IN = {"diff": ("values",), "check": ("why",), "common": ("why",), "rewrite": ("why",)}


def optional(name: str) -> set[str]:
    """The keys that a document may lack. name: of the document or of its schema."""
    if name.startswith("operators"):
        return {*OF_AN_OPERATOR}
    return {*OPTIONAL}.difference(REQUIRED_IN.get(name.partition(".")[0], ()))


DIFFERENCES = ("parts", "nodes", "values", "new_findings", "gone_findings")
VALUE = {"kind": "tensor", "dtype": "float32", "shape": ["N", None, 2**70]}
STEP = {
    **dict.fromkeys(("name", "graph", "location", "operator", "reason"), "main/s"),
    **VALUE,
    "source": "node",
    "elements": [1, "N", None],
    "reads": ["y"],
    "enters": ["unk0"],
}
FOUND = {
    "code": "SG302",
    "severity": "warning",
    "message": "...",
    "location": "main/s",
    "help": "",
    "node": "s",
    "operator": "Split-18",
    "target": None,
    "blocking_opset": None,
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_a_valid_schema_of_its_own_name(name: str) -> None:
    schema = SCHEMAS[name]
    Draft202012Validator.check_schema(schema)
    # A name without a place: schemas are found beside each other, on any machine.
    assert (schema["$schema"], schema["$id"]) == ("https://json-schema.org/draft/2020-12/schema", name)
    assert schema["title"]
    assert schema["description"]


def schemas_within(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object in a schema that describes an object; what narrows one down (allOf, if, ...) does not."""
    if isinstance(schema, dict):
        if "properties" in schema and "description" in schema:
            yield schema
        for key, inner in schema.items():
            if key not in ("allOf", "if", "then", "else", "failed", "examples"):
                yield from schemas_within(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from schemas_within(inner)


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_key_is_described_and_required(name: str) -> None:
    for schema in schemas_within(SCHEMAS[name]):
        for key, value in schema["properties"].items():
            assert value.get("description"), f"{key} of {schema.get('title')}"
        assert [key for key in schema["properties"] if key not in optional(name)] == schema["required"]


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_the_examples_are_what_the_schemas_say(name: str, example: dict) -> None:
    assert wrong(example, name) == []


def with_every_part() -> list[tuple[str, dict]]:
    """The examples, with something in what is empty there, and with the keys that are there in some cases only."""
    infer, rewrite, verify, diff = (
        copy.deepcopy(SCHEMAS[f"{name}.schema.json"]["examples"][0]) for name in DOCUMENTS[:4]
    )
    nested = {"kind": "optional", "dtype": None, "shape": None, "element": {**VALUE, "kind": "sequence"}}
    infer |= {"operators": {"Split": 1}, "values": {"x": VALUE}, "graphs": {"main": {"x": nested}}, "why": [STEP]}
    infer["diagnostics"] = [FOUND]
    rewrite |= {"unchanged": True, "kept": True, "dry_run": True, "diagnostics": [FOUND]}
    rewrite["diff"] = {name: [] for name in DIFFERENCES}
    verify["diagnostics"] = [FOUND]
    value = {"location": "main", "name": "x", "old_name": "", "kind": "changed", "before": VALUE, "after": nested}
    diff |= {"values": [value], "new_findings": [FOUND], "gone_findings": [FOUND]}
    return [("infer", infer), ("rewrite", rewrite), ("verify", verify), ("diff", diff)]


def objects_within(value: Any) -> Iterator[dict]:
    """Every object of a document whose keys are of the contract."""
    if isinstance(value, dict):
        yield value
        for key, inner in value.items():
            if key not in OF_THE_MODEL:
                yield from objects_within(inner)
            elif isinstance(inner, dict):
                for named in inner.values():
                    yield from objects_within(named) if key != "graphs" else objects_within(list(named.values()))
            else:
                yield from objects_within(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from objects_within(inner)


@pytest.mark.parametrize(("name", "document"), with_every_part())
def test_a_key_more_or_less_is_another_document(name: str, document: dict) -> None:
    assert wrong(document, name) == []
    tried = 0
    for inner in objects_within(document):
        inner["surprise"] = 1
        assert wrong(document, name), f"surprise in {json.dumps(inner)}"
        del inner["surprise"]
        for key in set(inner) - optional(name):
            held = inner.pop(key)
            assert wrong(document, name), f"no {key} in {json.dumps(inner)}"
            inner[key] = held
            tried += 1
    assert tried > 10
    assert wrong(document, name) == []


CONTRADICTIONS = [
    ("infer", {"ok": False}),
    ("infer", {"completeness": None}),
    ("infer", {"values": {}}),
    ("infer", {"splitgraph": 1}),
    ("infer", {"opset": {"": "13"}}),
    ("infer", {"symbols": {"N": {"min": -1, "max": None}}}),
    ("infer", {"diagnostics": [{**FOUND, "severity": "error"}]}),
    ("infer", {"diagnostics": [{**FOUND, "severity": "fatal"}]}),
    ("infer", {"diagnostics": [{**FOUND, "code": "E302"}]}),
    ("rewrite", {"ok": False}),
    ("rewrite", {"output": None}),
    ("rewrite", {"unchanged": False}),
    ("rewrite", {"verified": None}),
    ("rewrite", {"verified": False}),
    ("rewrite", {"verification": None}),
    ("verify", {"verdict": "same"}),
    ("verify", {"verdict": "equal"}),
    ("verify", {"first_difference": None}),
    ("verify", {"max_abs_diff": "large"}),
    ("verify", {"cases": -1}),
    ("diff", {"same": True}),
    ("diff", {"same": None}),
    ("diff", {"before": None}),
    ("diff", {"diagnostics": [FOUND]}),
    ("diff", {"parts": [], "nodes": []}),
    (
        "diff",
        {"values": [{"location": "", "name": "", "old_name": "", "kind": "added", "before": VALUE, "after": None}]},
    ),
    ("failure", {"ok": True}),
    ("failure", {"diagnostics": []}),
    ("failure", {"verified": True}),
    ("target", {"measured": "2026-11"}),
    ("target", {"sources": []}),
    ("target", {"how": "its Python package"}),
    ("target", {"version": "latest"}),
    ("target", {"newest_opset": 0}),
    ("target", {"unnamed_dimensions": "dies"}),
    ("target", {"untrue_shapes": "dies"}),
    ("target", {"shared_constants": "dies"}),
    ("target", {"forms": {"split-13-equal": "reads"}}),
]


@pytest.mark.parametrize(("name", "changed"), CONTRADICTIONS)
def test_a_document_that_contradicts_itself(name: str, changed: dict) -> None:
    (example,) = SCHEMAS[f"{name}.schema.json"]["examples"]
    assert wrong({**example, **changed}, name)


PAGES = [path.name for path in sorted((DOCS / "reference").glob("*.md"))]


@pytest.fixture
def make_reference(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The generator, docs/make_reference.py, which imports what lies beside it."""
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("make_reference")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_up_to_date(page: str, make_reference: Any) -> None:
    assert sorted(make_reference.PAGES) == sorted(path.name for path in (DOCS / "reference").glob("*.md"))
    written = (DOCS / "reference" / page).read_text(encoding="utf-8")
    assert written == make_reference.PAGES[page](), "run: python docs/make_reference.py"


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = (DOCS / "reference" / page).read_text(encoding="utf-8")
    for file, anchor in re.findall(r"\]\((?!http)([^)#]*)#?([^)]*)\)", text):
        target = DOCS / "reference" / (file or page)
        assert target.exists(), file
        if anchor:
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]


def test_the_page_of_the_api_has_every_public_name(make_reference: Any) -> None:
    page = importlib.import_module("reference_api")
    names = {*page.functions(), *(known.__name__ for known in (*page.classes(), *page.errors()))}
    assert names == set(splitgraph.__all__)


def test_docstrings_explain_every_parameter(make_reference: Any) -> None:
    page, docstrings = (importlib.import_module(name) for name in ("reference_api", "reference_docstrings"))
    functions = page.functions()
    for name, function in functions.items():
        parameters = set(inspect.signature(function).parameters)
        told = docstrings.explained(function, parameters)
        # "Other arguments and errors as `upgrade`."
        for other in re.findall(r"(?:arguments|errors) as `(\w+)`", " ".join(function.__doc__.split())):
            told |= docstrings.explained(functions[other], parameters)
        assert parameters == told, name


def test_docstrings_explain_every_field_property_and_method(make_reference: Any) -> None:
    page, docstrings = (importlib.import_module(name) for name in ("reference_api", "reference_docstrings"))
    for known in (*page.classes(), *page.errors()):
        assert set(page.fields(known)) == docstrings.explained(known, page.fields(known)), known
        for name, member in page.members(known).items():
            assert (member.fget if isinstance(member, property) else member).__doc__, f"{known}.{name}"


def test_the_pages_of_the_command_line_have_every_command_and_option() -> None:
    pages = [DOCS / "reference" / f"command-line-{part}.md" for part in ("rewriting", "reading")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    for name, command in program.commands.items():
        section = text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        for param in command.params:
            for spelled in (*param.opts, *param.secondary_opts):
                assert spelled in section or spelled.upper() in section
            assert getattr(param, "help", None) or isinstance(param, click.Argument)
