"""The forms of split as cases of operators: which nodes of a form are cases, and what its answer says of each.

A form that runs says that each of its nodes runs. One that does not run says something of the only node that no form
that runs has, unless another node is known to be in the way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
from cases import case_of
from whole_models import PREFIX

from splitgraph.options import STRICT
from splitgraph.runtimes.check import examine
from splitgraph.runtimes.node_traits import FUNCTION, Kind, NodeTraits

# Forms that only probe opsets and IR versions; that the specification forbids; and of other operators.
_NO_CASES = ("zz_", "x_", "z_concat", "z_reduce")
# This one it leaves open.
_LEFT_OPEN = "x_s18_num_5into4"
_SUBJECTS = frozenset({"Split", "SplitToSequence", "StringSplit", "Slice", "Gather", "SequenceAt", "Constant"})
# These are about splits where they read what stands for an empty part, or lengths that are constant.
_OF_CONSTANTS = {"Identity": ("data", "const"), "Concat": ("inputs.empty", "yes")}
# The plainest forms: what others differ in from the one that is most like them is to blame where they do not run.
BASES = frozenset(
    {
        "a_s2_attr",
        "b_s2_equal",
        "d_s13_init",
        "e_s13_equal",
        "h_s18_const",
        "f_s18_num_even",
    }
    | {
        "l_seq11_lens",
        "m_seq_nosplit_keep1",
        "m_seq_scalar2",
        "l_seq24_lens",
        "s_fn_split_other_domain",
        "u_stringsplit20",
    }
)
Answers = Mapping[str, tuple[str, str]]
Case = tuple[str, Kind]
IsInTheWay = Callable[[NodeTraits], bool]


class Form(NamedTuple):
    """A form: its opset, its nodes with those of its functions, and what is a case of the main graph: operator version
    and factors.
    """

    opset: int
    nodes: Sequence[NodeTraits]
    cases: frozenset[Case]


def read_forms(folder: Path) -> dict[str, Form]:
    """The forms and the models of `models/` that have cases, by name."""
    found = {}
    for path in sorted(folder.glob("*.onnx")):
        if path.stem.startswith(_NO_CASES) and path.stem != _LEFT_OPEN:
            continue
        model = onnx.load(path)
        examined = examine(model, STRICT)
        nodes = [node for node in examined.nodes if not node.scope.in_function]
        cases = frozenset((node.operator, node.factors) for node in nodes if _is_subject(node))
        if cases and not examined.errors and not any(runs_by_chance(path, node) for node in nodes):
            found[path.stem] = Form(examined.opset, examined.nodes, cases)
    return found


def _is_subject(node: NodeTraits) -> bool:
    if node.node.op_type in _OF_CONSTANTS:
        return _OF_CONSTANTS[node.node.op_type] in node.factors
    return node.is_call or (node.node.op_type in _SUBJECTS and ("data", "sizes") not in node.factors)


def runs_by_chance(path: Path, node: NodeTraits) -> bool:
    """True for a split that a runtime runs that computes other parts: an open dimension that the number of parts
    divides in the run, and lengths as an attribute that are those of chunks.
    """
    factors = dict(node.factors)
    if factors.get("parts") == "open":
        with np.load(case_of(path.parent, path.stem).expected) as results:
            return len({results[name].shape for name in results.files}) == 1
    if factors.get("split") != "unequal" or node.detail is None:
        return False
    *whole, last = node.detail.lengths
    return set(whole) == {-(-(sum(whole) + last) // (len(whole) + 1))}


def is_model(name: str) -> bool:
    """True for a model of `models/`: it has many nodes, so that it says only what runs."""
    return name.startswith(PREFIX)


def answers_of_cases(forms: Mapping[str, Form], answers: Answers, is_in_the_way: IsInTheWay) -> dict[Case, set[str]]:
    """What a runtime did with each case: the answers of the forms that say something of it. answers: by form."""
    told = {name: answers[name][0] for name in forms if name in answers and "harness" not in answers[name][1]}
    running = {case for name, answer in told.items() if answer == "reads" for case in forms[name].cases}
    found: dict[Case, set[str]] = defaultdict(set)
    for name, answer in told.items():
        form = forms[name]
        if answer == "reads":
            blamed: Iterable[Case] = form.cases
        elif is_model(name) or any(
            is_in_the_way(node) for node in form.nodes if (node.operator, node.factors) not in form.cases
        ):
            continue
        else:
            left = form.cases - running
            blamed = form.cases if len(form.cases) == 1 else _splits(left) or left
        for case in blamed:
            found[case].add(answer)
    return {case: _settled(case, told) for case, told in found.items()}


def _settled(case: Case, told: set[str]) -> set[str]:
    """What counts of several answers. What runs in one form and not in another one hangs on something that no factor
    tells; of calls of local functions, on the nodes of the functions, which are judged by themselves.
    """
    if case[0] == FUNCTION and "reads" in told:
        return {"reads"}
    return told - {"reads"} or told


def _splits(cases: Iterable[Case]) -> list[Case]:
    """Those of several cases that are about a split itself: what gives its lengths, and what reads its parts, is a case
    of other forms.
    """
    return [case for case in cases if "Split" in case[0]]
