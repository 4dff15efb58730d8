"""The table of operators, splitgraph/runtimes/table/operators/: its files, and what follows from them for a node."""

from __future__ import annotations

import json
import re
import zlib
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from json_schemas import SCHEMAS, wrong
from runtimes import models

import splitgraph
from splitgraph.model.schemas import OperatorVersion, history, table
from splitgraph.model.value_type import DTYPE_NAMES
from splitgraph.runtimes.measured import cases_of
from splitgraph.runtimes.node_traits import FUNCTION
from splitgraph.runtimes.operators import OperatorTable, operator_table, read_entry
from splitgraph.runtimes.target import find_target, targets
from splitgraph.runtimes.verdicts import Judged

FOLDER = Path(__file__).parents[2] / "splitgraph" / "runtimes" / "table" / "operators"
HELD: dict[str, dict[str, Any]] = {
    path.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))
}
# The factors of all cases. They are about no runtime.
CASES = HELD.pop("cases.json")
# Their keys, by operator.
KEYS: dict[str, set[str]] = defaultdict(lambda: {"rank", "empty"})
for each in CASES:
    KEYS[each.rpartition("-")[0]] |= {key for case in cases_of(each) for key, _ in case.factors}
MEASURED = {name: held for name, held in HELD.items() if held["measured"]}
FILES = {name: held for name, held in HELD.items() if not held["measured"]}
DOCUMENTED = {"tensorrt@10.15.json", "directml@1.15.2.json", "migraphx.json", "coreml.json", "snpe@2.25.0.json"}
EVERY_FILE = pytest.mark.parametrize("file", FILES)
EXAMPLES = {example["name"]: example for example in SCHEMAS["operators.schema.json"]["examples"]}


def version_named(key: str) -> OperatorVersion | None:
    """The operator version that a key names; the newest one if it names none, None if splitgraph has no schema."""
    label, _, number = key.rpartition("-")
    name = label if number.isdigit() else key
    domain, _, op = name.rpartition(".")
    versions = table.versions_of(domain, op) or ((history.ITS_OWN[op],) if op in history.ITS_OWN else ())
    if not number.isdigit():
        return versions[-1] if versions else None
    return next((version for version in versions if version.since_version == int(number)), None)


def is_operator(key: str) -> bool:
    """Whether a key names an operator that exists, one of a domain without schemas, the import of a domain, or calls of
    local functions.
    """
    domain = key.rpartition(".")[0]
    has_schemas = not domain or table.newest_in_table(domain) > 0
    return key.startswith("imports.") or key == FUNCTION or not has_schemas or version_named(key) is not None


def has_trait(version: OperatorVersion, trait: str) -> bool:
    """Whether a node of an operator version can have a trait, or a factor with a key that a case has."""
    if "=" in trait and trait.partition("=")[0] in KEYS.get(version.op, ()):
        return True
    if trait.startswith("rank ") or trait in ("dim 0 open", "dim 1 open", "dim 2 open", "empty", "broadcast", "scalar"):
        return True
    values = {formal.name for formal in (*version.inputs, *version.outputs)}
    if trait.endswith((" computed", " from shapes", " empty")):
        return any(trait == f"{value}{end}" for value in values for end in (" computed", " from shapes", " empty"))
    if trait.startswith(("with ", "without ")):
        return trait.partition(" ")[2] in values | version.attributes.keys()
    variables = {formal.type_variable for formal in (*version.inputs, *version.outputs)}
    name = re.match(r"\w+", trait)
    return name is not None and name[0] in {*version.attributes, *variables}


@EVERY_FILE
def test_a_file_is_what_the_schema_says(file: str) -> None:
    assert wrong(FILES[file], "operators") == []


def test_the_schema_has_the_element_types() -> None:
    assert set(SCHEMAS["operators.schema.json"]["$defs"]["type"]["enum"]) == set(DTYPE_NAMES.values())


@pytest.mark.parametrize("file", HELD)
def test_a_file_is_named_after_its_target(file: str) -> None:
    held = HELD[file]
    (target,) = (target for target in targets().values() if f"{target.key}.json" == file)
    assert (held["name"], held["version"]) == (target.name, target.version)
    assert (held["measured"] is None) == (target.measured is None)


def test_what_was_not_run_has_its_documents() -> None:
    assert FILES.keys() == DOCUMENTED
    assert all(FILES[file]["sources"] for file in DOCUMENTED)


@EVERY_FILE
def test_every_key_is_an_operator(file: str) -> None:
    assert [key for key in FILES[file]["operators"] if not is_operator(key)] == []


@pytest.mark.parametrize("key", ["Rellu-14", "Relu-15", "Relu-", "ai.onnx.ml.Scaler-2", "Rellu"])
def test_a_key_that_is_no_operator(key: str) -> None:
    assert not is_operator(key)


@EVERY_FILE
def test_operators_traits_and_types_are_sorted(file: str) -> None:
    operators = FILES[file]["operators"]
    assert list(operators) == sorted(operators)
    for entry in operators.values():
        lists = [entry.get("unread", []), entry.get("types", []), *(traits for traits, *_ in entry.get("rules", ()))]
        assert all(each == sorted(each) for each in lists)


@EVERY_FILE
def test_a_rule_has_traits_that_its_operator_can_have(file: str) -> None:
    for key, entry in FILES[file]["operators"].items():
        version = version_named(key)
        traits = {trait for traits, *_ in entry.get("rules", ()) for trait in traits} | set(entry.get("open", ()))
        assert version is None or [trait for trait in traits if not has_trait(version, trait)] == [], key


@EVERY_FILE
def test_documented_types_are_of_the_first_input(file: str) -> None:
    for key, entry in FILES[file]["operators"].items():
        version = version_named(key)
        if version is not None and "types" in entry:
            spelled = {"float32": "float", "float64": "double"}
            named = {f"tensor({spelled.get(kind, kind)})" for kind in entry["types"]}
            assert version.inputs[0].types & named, key


MEASURED_FILE = pytest.mark.parametrize("file", MEASURED)


@MEASURED_FILE
def test_measured_answers_are_what_their_schema_says(file: str) -> None:
    assert wrong(MEASURED[file], "answers") == []


@pytest.mark.parametrize(
    "changed",
    [
        {"measured": None},
        {"cases": 0},
        {"answers": {}},
        {"answers": {"Relu-14": "??"}},
        {"answers": {"Relu-14": ""}},
        {"answers": {"Relu-14": ".z"}},
        {"answers": {"Relu 14": "."}},
        {"said": {"Relu-14": ""}},
        {"operators": {}},
    ],
)
def test_answers_that_contradict_themselves(changed: dict[str, Any]) -> None:
    (example,) = SCHEMAS["answers.schema.json"]["examples"]
    assert wrong(example, "answers") == []
    assert wrong({**example, **changed}, "answers")


@MEASURED_FILE
def test_there_is_one_answer_to_each_case(file: str) -> None:
    for label, letters in MEASURED[file]["answers"].items():
        assert len(letters) == len(cases_of(label)), label
    assert MEASURED[file]["said"].keys() <= MEASURED[file]["answers"].keys()


def test_cases_are_of_operators_and_told_once() -> None:
    assert [label for label in CASES if not is_operator(label)] == []
    for label in CASES:
        factors = [case.factors for case in cases_of(label)]
        assert len(set(factors)) == len(factors), label


def test_a_base_is_its_own_base_and_a_case_differs_from_it() -> None:
    for label in CASES:
        cases = cases_of(label)
        for place, case in enumerate(cases):
            assert case.base < 0 or cases[case.base].base == case.base, label
            assert case.base in (-1, place) or case.factors != cases[case.base].factors, label


def test_the_table_is_small_enough_for_a_wheel() -> None:
    files = [path.read_bytes() for path in sorted(FOLDER.glob("*.json"))]
    assert sum(len(zlib.compress(held, 6)) for held in files) < 400_000


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("mnn", {"measured": None}),
        ("mnn", {"measured": "2026-11"}),
        ("mnn", {"version": None}),
        ("mnn", {"cases": 0}),
        ("mnn", {"sources": ["https://example.com/"]}),
        ("mnn", {"operators": {}}),
        ("mnn", {"operators": {"Relu 14": {"reads": 1}}}),
        ("mnn", {"operators": {"Relu-14": {}}}),
        ("mnn", {"operators": {"Relu-14": {"reads": 0}}}),
        ("mnn", {"operators": {"Relu-14": {"refuses": 1, "unread": ["T=int8"]}}}),
        ("mnn", {"operators": {"Relu-14": {"reads": 1, "rules": [[["T=int8"], "reads", 1]]}}}),
        ("mnn", {"operators": {"Relu-14": {"reads": 1, "rules": [[["T=int8"], "refuses", 0]]}}}),
        ("mnn", {"operators": {"Relu-14": {"reads": 1, "rules": [[["T=int8"], "refuses"]]}}}),
        ("mnn", {"operators": {"Relu": {"documented": "reads"}}}),
        ("migraphx", {"measured": "2026-11-28"}),
        ("migraphx", {"cases": 1}),
        ("migraphx", {"sources": []}),
        ("migraphx", {"operators": {"Relu-14": {"reads": 1}}}),
        ("migraphx", {"operators": {"Relu": {"documented": "wrong"}}}),
        ("migraphx", {"operators": {"Relu": {"documented": "refuses"}}}),
        ("migraphx", {"operators": {"Relu": {"documented": "reads", "said": "..."}}}),
        ("migraphx", {"operators": {"Relu": {"documented": "reads", "types": []}}}),
        ("migraphx", {"operators": {"Relu": {"documented": "reads", "open": []}}}),
        ("migraphx", {"operators": {"Relu": {"documented": "refuses", "said": "...", "open": ["rank=1"]}}}),
        ("migraphx", {"notes": {"Split": "..."}}),
        ("migraphx", {"operators": {"Relu": {"documented": "reads", "types": ["float"]}}}),
        ("migraphx", {"operators": {"Relu": {"documented": "reads", "other_types": "unmeasured"}}}),
        ("migraphx", {"operators": {"Relu": {"documented": "refuses", "said": "...", "types": ["int8"]}}}),
        ("migraphx", {"operators": {"Relu": {"documented": "reads", "rules": [[["dim 0 open"], "wrong", 0]]}}}),
        ("migraphx", {"operators": {"Relu": {"documented": "reads", "rules": [[["dim 0 open"], "refuses", 1]]}}}),
    ],
)
def test_a_file_that_contradicts_itself(name: str, changed: dict[str, Any]) -> None:
    assert wrong({**EXAMPLES[name], **changed}, "operators")


RULES = {"reads": 6, "refuses": 3, "rules": [[["T=int8"], "refuses", 2], [["axis<0", "keepdims=0"], "wrong", 2]]}
KNOWN = frozenset(
    {"K computed", "L from shapes", "T=float32", "T=int8", "T=int64", "axis<0", "keepdims=0", "dim 0 open", "rank 3"}
)
TYPES = {"documented": "reads", "types": ["float16", "float32"]}


@pytest.mark.parametrize(
    ("held", "traits", "expected"),
    [
        ({"reads": 3}, {"T=float32"}, Judged("reads", "3 of 3 cases of Op-1 run")),
        ({"reads": 1}, {"T=float32"}, Judged("reads", "1 of 1 case of Op-1 run")),
        ({"refuses": 2, "said": "no"}, {"T=float32"}, Judged("refuses", "0 of 2 cases of Op-1 run: no")),
        ({"wrong": 1}, set(), Judged("wrong", "0 of 1 case of Op-1 run")),
        ({"rank": 1}, set(), Judged("wrong", "0 of 1 case of Op-1 run")),
        ({"dies": 1}, set(), Judged("refuses", "0 of 1 case of Op-1 run", dies=True)),
        ({"hangs": 1, "refuses": 4}, set(), Judged("refuses", "0 of 5 cases of Op-1 run", dies=True)),
        # The worst answer counts.
        ({"refuses": 9, "wrong": 1}, set(), Judged("wrong", "0 of 10 cases of Op-1 run")),
        (RULES, {"T=float32"}, Judged("reads", "6 of 9 cases of Op-1 run")),
        (RULES, {"T=int8", "rank 3"}, Judged("refuses", "0 of 2 cases of Op-1 with T=int8 run")),
        (
            RULES,
            {"T=float32", "axis<0", "keepdims=0"},
            Judged("wrong", "0 of 2 cases of Op-1 with axis<0 and keepdims=0 run"),
        ),
        (RULES, {"T=float32", "keepdims=0"}, Judged("reads", "6 of 9 cases of Op-1 run")),
        # No case has the trait, or none that has it is read.
        ({"reads": 3}, {"T=uint8"}, Judged("unmeasured", "Op-1 was not measured with T=uint8")),
        (
            {"reads": 3, "refuses": 1, "unread": ["T=int64"]},
            {"T=int64", "axis>1"},
            Judged("unmeasured", "Op-1 was not measured with T=int64 and axis>1"),
        ),
        # What is read with any value at run time is read with one that follows from sizes, but not the other way round.
        ({"reads": 3}, {"T=float32", "K from shapes"}, Judged("reads", "3 of 3 cases of Op-1 run")),
        ({"reads": 3}, {"L computed"}, Judged("unmeasured", "Op-1 was not measured with L computed at run time")),
        (
            {"reads": 3, "refuses": 1, "unread": ["K computed"]},
            {"K from shapes"},
            Judged("unmeasured", "Op-1 was not measured with K computed from dynamic sizes"),
        ),
        # One case of an open dimension, or sizes from another input, are too little for a refusal.
        (
            {"reads": 3, "refuses": 1, "rules": [[["dim 0 open"], "refuses", 1]], "unread": ["dim 0 open"]},
            {"dim 0 open"},
            Judged("some", "0 of 1 case of Op-1 with a dynamic first dimension run"),
        ),
        (
            {"reads": 3, "refuses": 2, "rules": [[["dim 0 open"], "refuses", 2]], "unread": ["dim 0 open"]},
            {"dim 0 open"},
            Judged("refuses", "0 of 2 cases of Op-1 with a dynamic first dimension run"),
        ),
        # Numbers of one case may be bad ones; a mode is not.
        (
            {"reads": 3, "refuses": 1, "rules": [[["pads"], "refuses", 1]], "unread": ["pads"]},
            {"pads"},
            Judged("some", "0 of 1 case of Op-1 with pads run"),
        ),
        (
            {"reads": 3, "refuses": 1, "rules": [[["mode=cubic"], "refuses", 1]], "unread": ["mode=cubic"]},
            {"mode=cubic"},
            Judged("refuses", "0 of 1 case of Op-1 with mode=cubic run"),
        ),
        # How a node stands in its model is to blame only if the node is like the cases that have that.
        (
            {"reads": 3, "refuses": 2, "rules": [[["rank 3"], "refuses", 2, ["T=bool"]]]},
            {"T=float32", "rank 3"},
            Judged("some", "0 of 2 cases of Op-1 with data of rank 3 run"),
        ),
        # A node is like cases that nothing explains only with all that they share.
        (
            {"reads": 3, "wrong": 1, "unexplained": 1, "like": ["axis<0"]},
            set(),
            Judged("reads", "3 of 4 cases of Op-1 run"),
        ),
        # What a node leaves out needs no case of its own; it can tell cases apart.
        ({"reads": 3}, {"T=float32", "without K"}, Judged("reads", "3 of 3 cases of Op-1 run")),
        (
            {"reads": 3, "refuses": 2, "rules": [[["dim 0 open", "without axes"], "refuses", 2]]},
            {"T=float32", "dim 0 open", "without axes"},
            Judged("refuses", "0 of 2 cases of Op-1 with a dynamic first dimension and without axes run"),
        ),
        # Ranks need no case of their own.
        ({"reads": 3}, {"T=float32", "rank 7", "broadcast"}, Judged("reads", "3 of 3 cases of Op-1 run")),
        (
            {"reads": 3, "refuses": 2, "unexplained": 2, "said": "too large"},
            {"T=float32"},
            Judged("some", "3 of 5 cases of Op-1 run: too large"),
        ),
        ({"documented": "reads"}, {"T=uint8", "axis<0"}, Judged("reads", "from its documents")),
        (
            {"documented": "refuses", "said": "not in its list"},
            {"T=float32"},
            Judged("refuses", "from its documents: not in its list"),
        ),
    ],
)
def test_what_follows_for_a_node(held: dict[str, Any], traits: set[str], expected: Judged) -> None:
    assert read_entry(held).judge("Op-1", frozenset(traits), KNOWN) == expected


SPLITS = {"documented": "reads", "rules": [[["split=computed"], "refuses", 0]], "open": ["along=open"]}
TAKES = Judged("refuses", "from its documents: takes float16 and float32")
READS = Judged("reads", "from its documents")


@pytest.mark.parametrize(
    ("operator", "held", "traits", "expected"),
    [
        ("Abs-13", TYPES, {"T=float16", "rank 2"}, READS),
        ("Abs-13", TYPES, {"T=int8"}, TAKES),
        # A type that is not known excludes nothing.
        ("Abs-13", TYPES, {"rank 2"}, READS),
        (
            "Abs-13",
            {"documented": "reads", "types": ["float32"]},
            {"T=int8"},
            Judged("refuses", "from its documents: takes float32"),
        ),
        # The first input of Gather is T, of Cast T1 and of Where B.
        ("Gather-13", TYPES, {"T=float32", "Tind=int64"}, READS),
        ("Cast-13", TYPES, {"T1=float32", "T2=int64"}, READS),
        ("Cast-13", TYPES, {"T1=int64", "T2=float32"}, TAKES),
        ("Where-16", {"documented": "reads", "types": ["bool"]}, {"B=bool", "T=string"}, READS),
        # All elements of a sequence are of a type, and a sequence is none of the types.
        ("Identity-16", TYPES, {"V=sequence of float32"}, TAKES),
        # NonMaxSuppression has one type, RandomNormal no input.
        ("NonMaxSuppression-11", TYPES, set(), READS),
        ("RandomNormal-1", TYPES, {"T=float64"}, READS),
        # Operators without a schema have T for their first input, and no version.
        ("com.microsoft.FastGelu", TYPES, {"T=float64"}, TAKES),
        ("com.microsoft.FastGelu", TYPES, {"T=float16"}, READS),
        ("ai.onnx.ml.Scaler-1", TYPES, {"T=int64"}, TAKES),
        (
            "Abs-13",
            {**TYPES, "other_types": "unmeasured"},
            {"T=int8"},
            Judged("unmeasured", "its documents do not name int8 for Abs-13", factors=(("T", "int8"),)),
        ),
        ("Abs-13", {**TYPES, "other_types": "unmeasured"}, {"T=float16"}, READS),
        # Factors: those that are refused, and those of which the documents say nothing.
        ("Split-13", SPLITS, {"split=init", "along=fixed"}, READS),
        (
            "Split-13",
            SPLITS,
            {"split=computed", "along=open"},
            Judged("refuses", "from its documents: not with lengths computed at run time"),
        ),
        (
            "Split-13",
            SPLITS,
            {"split=init", "along=open"},
            Judged(
                "unmeasured",
                "its documents do not tell of Split-13 with a dynamic dimension along what it reads",
                factors=(("along", "open"),),
            ),
        ),
        (
            "TopK-11",
            {"documented": "reads", "rules": [[["K computed", "sorted=0"], "refuses", 0]]},
            {"K computed", "T=int8", "sorted=0"},
            Judged("refuses", "from its documents: not with K computed and sorted=0"),
        ),
        (
            "TopK-11",
            {"documented": "reads", "rules": [[["K computed", "sorted=0"], "refuses", 0]]},
            {"sorted=0"},
            READS,
        ),
    ],
)
def test_what_documents_say_of_a_node(operator: str, held: dict, traits: set[str], expected: Judged) -> None:
    assert read_entry(held).judge(operator, frozenset(traits), frozenset()) == expected


def test_an_operator_without_an_entry() -> None:
    assert OperatorTable(None, {}).judge("Abs-6", frozenset(), ()).why == "no case of Abs-6 was measured"
    documented = OperatorTable(None, {"Abs-13": read_entry(TYPES), "Det": read_entry({"documented": "refuses"})})
    assert documented.judge("Abs-6", frozenset(), ()) == Judged("unmeasured", "its documents say nothing of Abs-6")
    # Documents that tell no versions are about all of them.
    assert documented.judge("Det-22", frozenset(), ()) == Judged("refuses", "from its documents")
    assert documented.judge("Det", frozenset(), ()).verdict == "refuses"
    assert [documented.reads(each) for each in ("Abs-13", "Abs-6", "Det-22")] == [True, False, False]
    assert [documented.types_read(each) for each in ("Abs-13", "Abs-6")] == [{"float16", "float32"}, set()]


@pytest.mark.parametrize(
    ("target", "operator", "traits", "verdict"),
    [
        ("tensorrt", "Relu-14", {"T=float16"}, "reads"),
        ("tensorrt", "Relu-14", {"T=int8"}, "refuses"),
        # It casts float64 to float32.
        ("tensorrt", "Relu-14", {"T=float64"}, "reads"),
        ("tensorrt", "DequantizeLinear-21", {"T1=int8", "T2=float16"}, "reads"),
        ("tensorrt", "DequantizeLinear-21", {"T1=uint8"}, "refuses"),
        ("tensorrt", "ScatterND-18", {"T=float32", "reduction=add"}, "refuses"),
        ("tensorrt", "Det-11", {"T=float32"}, "refuses"),
        ("tensorrt", "Where-16", {"B=bool", "T=float32"}, "reads"),
        # Its documents begin with opset 9 and end with 24.
        ("tensorrt", "Add-6", {"T=float32"}, "unmeasured"),
        ("tensorrt", "Cast-25", {"T1=float32"}, "unmeasured"),
        ("migraphx", "Relu-14", {"T=float32"}, "reads"),
        # Its documents say that their types are not all types.
        ("migraphx", "Relu-14", {"T=bfloat16"}, "unmeasured"),
        ("migraphx", "Relu-14", {"T=uint8"}, "unmeasured"),
        ("migraphx", "BitwiseAnd-18", {"T=int32"}, "reads"),
        ("migraphx", "BitwiseOr-18", {"T=int32"}, "refuses"),
        ("migraphx", "TopK-11", {"T=float32", "K computed"}, "refuses"),
        ("migraphx", "Cast-21", {"T1=float32"}, "unmeasured"),
        ("migraphx", "com.microsoft.FastGelu", {"T=float32"}, "reads"),
        ("directml", "Abs-13", {"T=int8"}, "reads"),
        ("directml", "Abs-13", {"T=uint8"}, "refuses"),
        ("directml", "Acos-7", {"T=float32"}, "reads"),
        ("directml", "Acos-22", {"T=float32"}, "refuses"),
        ("directml", "Constant-13", set(), "reads"),
        ("directml", "Loop-16", {"I=int64"}, "refuses"),
        ("directml", "ai.onnx.ml.Scaler-1", {"T=float32"}, "refuses"),
        ("directml", "com.microsoft.QLinearAdd", {"T=uint8"}, "reads"),
        ("coreml", "Add-14", {"T=float16"}, "reads"),
        ("coreml", "Add-14", {"T=int32"}, "refuses"),
        ("coreml", "Add-6", {"T=float32"}, "refuses"),
        ("coreml", "Cast-13", {"T1=int32", "T2=float32"}, "reads"),
        ("coreml", "Conv-11", {"T=float32", "rank 5"}, "refuses"),
        ("coreml", "Pad-18", {"T=float32"}, "refuses"),
        ("coreml", "Det-11", {"T=float32"}, "refuses"),
        # ONNX Runtime has code for it that no list names yet.
        ("coreml", "Where-16", {"T=float32"}, "unmeasured"),
        ("snpe", "Clip-12", {"T=float32"}, "reads"),
        # Its converter takes the newest version that it knows, and warns.
        ("snpe", "Clip-13", {"T=float32"}, "unmeasured"),
        ("snpe", "Split-18", {"T=float32"}, "reads"),
        ("snpe", "LSTM-14", {"T=float32", "layout=1"}, "refuses"),
        ("snpe", "Det-11", {"T=float32"}, "refuses"),
    ],
)
def test_facts_of_the_documents(target: str, operator: str, traits: set[str], verdict: str) -> None:
    judged = find_target(target).operators.judge(operator, frozenset(traits), ())
    assert judged.verdict == verdict
    assert "documents" in judged.why


def test_a_runtime_that_was_not_run_is_not_known_to_run_a_model() -> None:
    found = splitgraph.check(models.model("y0 = Abs(x)", 13), "tensorrt")
    assert [(node.answer, node.why) for node in found.nodes] == [("reads", "from its documents")]
    assert found.runs is None


def test_what_documents_refuse_is_an_error() -> None:
    found = splitgraph.check(models.model("y0 = Det(x)", 11, data="float[2, 8, 8] x"), "tensorrt")
    (error,) = (each for each in found if each.severity == "error")
    assert (error.code, error.message) == ("SG701", "TensorRT 10.15 refuses Det-11: from its documents: not supported")
    assert found.runs is False


def test_a_target_without_a_file_has_an_empty_table() -> None:
    assert operator_table("nothing@1.0") == OperatorTable(None, {})
