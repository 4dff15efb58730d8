"""The forms of split as cases of operators (benchmarks/targets/form_cases.py), and what the table says of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "targets"))

from form_cases import Case, Form, answers_of_cases, read_forms
from forms import FORMS, write

from splitgraph.runtimes.check import judge_node
from splitgraph.runtimes.node_traits import FUNCTION
from splitgraph.runtimes.target import targets

RESULTS = Path(__file__).parents[2] / "benchmarks" / "targets" / "results"
A: Case = ("Split-13", (("split", "init"),))
B: Case = ("Split-13", (("split", "shape"),))
C: Case = ("SequenceAt-11", ())
D: Case = ("Constant-13", (("form", "value_ints"),))
CALL: Case = (FUNCTION, (("function", "other"),))


def said(forms: Mapping[str, set[Case]], answers: Mapping[str, str]) -> dict[Case, set[str]]:
    made = {name: Form(13, (), frozenset(cases)) for name, cases in forms.items()}
    given = {name: (answer, "harness" if answer == "harness" else "") for name, answer in answers.items()}
    return answers_of_cases(made, given, lambda node: False)


@pytest.mark.parametrize(
    ("forms", "answers", "expected"),
    [
        # Nothing was measured, or the adapter could not give it.
        ({"a": {A}}, {}, {}),
        ({"a": {A}}, {"a": "harness"}, {}),
        # A model of many nodes says only what runs.
        ({"model_a": {A}}, {"model_a": "wrong"}, {}),
        ({"model_a": {A, B}}, {"model_a": "reads"}, {A: {"reads"}, B: {"reads"}}),
        # The only case that no form that runs has.
        ({"a": {A}, "b": {A, B}}, {"a": "reads", "b": "dies"}, {A: {"reads"}, B: {"dies"}}),
        # Where several may be to blame, it is the split; without a split it is all of them.
        ({"a": {A, C}}, {"a": "refuses"}, {A: {"refuses"}}),
        ({"a": {C, D}}, {"a": "refuses"}, {C: {"refuses"}, D: {"refuses"}}),
        # What runs in one form and not in another hangs on something that no factor tells.
        ({"a": {A}, "b": {A}}, {"a": "reads", "b": "wrong"}, {A: {"wrong"}}),
        # Of calls, it hangs on the nodes of the functions.
        ({"a": {CALL}, "b": {CALL}}, {"a": "reads", "b": "wrong"}, {CALL: {"reads"}}),
        ({"a": {CALL}, "b": {CALL}}, {"a": "refuses", "b": "refuses"}, {CALL: {"refuses"}}),
        # Each runs in another form: the two together are none of the cases.
        ({"a": {A}, "b": {B}, "c": {A, B}}, {"a": "reads", "b": "reads", "c": "wrong"}, {A: {"reads"}, B: {"reads"}}),
    ],
)  # fmt: skip
def test_what_an_answer_says_of_the_nodes(
    forms: Mapping[str, set[Case]], answers: Mapping[str, str], expected: dict[Case, set[str]]
) -> None:
    assert said(forms, answers) == expected


def test_a_form_with_another_node_in_the_way_says_nothing_of_the_split(tmp_path: Path) -> None:
    write(tmp_path, ["d_s13_wrapped"])
    forms = read_forms(tmp_path)
    answers = {"d_s13_wrapped": ("refuses", "")}
    (case,) = forms["d_s13_wrapped"].cases
    assert answers_of_cases(forms, answers, lambda node: False) == {case: {"refuses"}}
    assert answers_of_cases(forms, answers, lambda node: node.node.op_type == "Relu") == {}


def test_a_form_with_a_node_of_its_function_in_the_way_says_nothing_of_the_call(tmp_path: Path) -> None:
    write(tmp_path, ["s_fn_split_other_domain"])
    forms = read_forms(tmp_path)
    answers = {"s_fn_split_other_domain": ("refuses", "")}
    assert answers_of_cases(forms, answers, lambda node: False) == {CALL: {"refuses"}}
    assert answers_of_cases(forms, answers, lambda node: node.node.op_type == "Split") == {}


@pytest.mark.parametrize("name", ["j_s18_num_dyn_even", "y_s9_331_wrapped", "x_s18_neither", "zz_ir8_op13"])
def test_what_runs_by_chance_and_what_is_invalid_is_no_case(name: str, tmp_path: Path) -> None:
    write(tmp_path, [name])
    assert read_forms(tmp_path) == {}


# Every third: they multiply with the runtimes.
SAMPLE = [name for name in sorted(FORMS) if not name.startswith(("zz_", "x_", "z_"))][::3]


def test_the_table_says_of_each_form_what_was_measured(tmp_path: Path) -> None:
    write(tmp_path, SAMPLE)
    forms = read_forms(tmp_path)
    for target in (target for target in targets().values() if target.measured):
        held = json.loads((RESULTS / f"{target.key}.json").read_text(encoding="utf-8"))["answers"]
        for name, form in forms.items():
            answer, reason = held.get(name, ("", "harness"))
            if "harness" in reason or (target.newest_opset is not None and form.opset > target.newest_opset):
                continue
            verdicts = {judge_node(node, target).verdict for node in form.nodes}
            if answer == "reads":
                own = {judge_node(node, target).verdict for node in form.nodes if node.detail is not None}
                assert own <= {"reads"} or (target.name, name) in BETTER, (target.key, name, own)
            else:
                assert verdicts != {"reads"}, (target.key, name)


# Forms that run by chance, where others with the same factors do not: tinygrad cuts 8 into 3, 3, 2, and 7 into 3, 2, 2.
BETTER = {("tinygrad", "g_s18_num_8into3_332")}
