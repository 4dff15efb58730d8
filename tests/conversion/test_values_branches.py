"""Branches that call different values by one name, as ONNX allows: what is known of one says nothing of the other."""

from __future__ import annotations

from collections.abc import Callable

import onnx
import onnx.parser
import pytest

import splitgraph
from splitgraph.splits.variadic_split_1 import variadic_function

Rewrite = Callable[[onnx.ModelProto], splitgraph.Rewrite]


def model(
    opset: int, then: str, other: str, inputs: str = "float[2,6] x", output: str = "float[2,p]"
) -> onnx.ModelProto:
    """If c then { `then` } else { `other` }; what each gives is called t and e."""
    then = f"then_branch = b () => ({output} t) {{ {then} }}"
    other = f"else_branch = b () => ({output} e) {{ {other} }}"
    imports = f'<ir_version: 8, opset_import: ["" : {opset}, "org.splitgraph" : 1]>'
    made = onnx.parser.parse_model(f"{imports} g ({inputs}, bool c) => ({output} y) {{ y = If (c) <{then}, {other}> }}")
    if "VariadicSplit_2" in then + other:
        made.functions.append(variadic_function(2, opset))
    onnx.checker.check_model(made)
    return made


def plain(made: onnx.ModelProto) -> splitgraph.Rewrite:
    return splitgraph.convert(made, "split", verify=True)


def to(opset: int) -> Rewrite:
    def rewrite(made: onnx.ModelProto) -> splitgraph.Rewrite:
        newer = opset > made.opset_import[0].version
        return (splitgraph.upgrade if newer else splitgraph.downgrade)(made, opset, verify=True)

    return rewrite


PART = """
    n = Constant<value = int64 {3}>() i = Constant<value = int64 {%d}>() s = SplitToSequence<axis = 1>(x, n)
    %s = SequenceAt(s, i)
"""
SEQUENCES = (13, PART % (0, "t"), PART % (1, "e"))
DROPPED = "d, m = Dropout<ratio = 0.5>(x) t = Relu(d)"
MASKED = "m = Greater(x, x) e = Cast<to = 1>(m)"
# By name: the model, how it is rewritten, an operator that is gone from both branches.
CASES: dict[str, tuple[onnx.ModelProto, Rewrite, str]] = {
    "sequences": (model(*SEQUENCES), plain, "SequenceAt"),
    "sequences to where there are none": (model(*SEQUENCES), to(10), "SequenceAt"),
    "a mask that only the other branch reads": (model(11, DROPPED, MASKED), to(12), ""),
}


@pytest.mark.parametrize(("made", "rewrite", "gone"), CASES.values(), ids=CASES)
def test_what_one_branch_has_is_not_in_the_other(made: onnx.ModelProto, rewrite: Rewrite, gone: str) -> None:
    done = rewrite(made)
    assert done.verification is not None
    assert done.verification.verdict == "equal"
    onnx.checker.check_model(done.model)
    (choice,) = done.model.graph.node
    assert gone not in {node.op_type for branch in choice.attribute for node in branch.g.node}


# The lengths with the rest in place of a -1, as splitgraph writes them.
RESOLVED = """
    one = Constant<value = int64[1] {1}>() minus = Constant<value = int64[1] {-1}>()
    axis = Constant<value = int64 {1}>()
    along = Cast<to = 7>(axis) axes = Reshape(along, one) shape = Shape(x) dim = Gather<axis = 0>(shape, axes)
    given = Cast<to = 7>(l) sum = ReduceSum<keepdims = 0>(given) difference = Sub(dim, sum) rest = Sub(difference, one)
    is_rest = Equal(given, minus) n = Where(is_rest, rest, given) %s, u = org.splitgraph.VariadicSplit_2(x, axis, n)
"""
UNRESOLVED = """
    axis = Constant<value = int64 {1}>() n = Identity(l) %s, u = org.splitgraph.VariadicSplit_2(x, axis, n)
"""


@pytest.mark.parametrize(("then", "other"), [(RESOLVED, UNRESOLVED), (UNRESOLVED, RESOLVED)])
def test_lengths_of_which_one_branch_alone_rules_out_a_rest(then: str, other: str) -> None:
    done = plain(model(18, then % "t", other % "e", "float[2,6] x, int64[2] l"))
    assert done.verification is not None
    assert done.verification.verdict == "equal"
    written = [
        sum(node.op_type == "Where" for node in branch.g.node)
        for name in ("then_branch", "else_branch")
        for branch in done.model.graph.node[0].attribute
        if branch.name == name
    ]
    assert written == [1, 1], "one keeps its own, the other needs one"


@pytest.mark.parametrize("name", ["K", "rows-1"])
def test_a_name_that_branches_declare_alike_does_not_make_them_alike(name: str) -> None:
    then, other = "r = Relu(x) t = NonZero(r)", "r = Neg(x) e = NonZero(r)"
    made = model(13, then, other, output="int64[2, p]")
    for branch in made.graph.node[0].attribute:
        branch.g.output[0].type.tensor_type.shape.dim[1].dim_param = name
    with pytest.raises(splitgraph.ConversionError, match="both branches must give the same shapes"):
        splitgraph.downgrade(made, 10)
