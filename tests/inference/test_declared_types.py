"""What the author declared, what a model requires of its symbols, and operators that nobody knows."""

from __future__ import annotations

from math import prod

import onnx
import pytest
from obligation_texts import obligation_of

import splitgraph
from splitgraph.inference.analysis import Analysis
from splitgraph.reports.documents.analyses import analysis_json
from splitgraph.reports.pages import analysis_page
from splitgraph.reports.text import plain_text


def analysed(signature: str, body: str, imports: str = '"" : 18') -> Analysis:
    text = f"<ir_version: 8, opset_import: [{imports}]> g {signature} {{ {body} }}"
    return splitgraph.infer(onnx.parser.parse_model(text))


def shown(analysis: Analysis, *names: str) -> list[str]:
    return [str(analysis.types[name]) for name in names]


def severities(analysis: Analysis) -> list[tuple[str, str]]:
    return [(found.code, found.severity) for found in analysis.diagnostics]


HALVES = "a, b = Split <axis = 0, num_outputs = 2> (x)"


@pytest.mark.parametrize(
    ("signature", "body", "obligations"),
    [
        ("(float[N] x) => (float[N] y)", "y = Relu (x)", ()),
        ("(float[N] x) => (float[M] y)", "y = Relu (x)", ("M == N",)),
        ("(float[N] x) => (float[half] a, float[] b)", HALVES, ("half == (N + 1)//2",)),
        # A name of an input is no name for something else, and one name for two things explains neither.
        ("(float[N] x, float[half] z) => (float[half] a, float[] b)", HALVES, ()),
        ("(float[N] x) => (float[half] a, float[half] b)", HALVES, ()),
        ("(float[N, 2] x, float[M, 3] y) => (float[] z)", "z = Concat <axis = 1> (x, y)", ("M == N",)),
        ("(float[N, K] x, float[J, 3] y) => (float[] z)", "z = MatMul (x, y)", ("J == K",)),
        (
            "(float[N] x, float[K, 6] y) => (float[] z)",
            "shape = Shape (x) z = Reshape (y, shape)",
            ("6*K == N",),
        ),
    ],
)
def test_obligations_of_the_whole_model(signature: str, body: str, obligations: tuple[str, ...]) -> None:
    analysis = analysed(signature, body)
    assert analysis.ok
    assert tuple(str(each) for each in analysis.obligations if each.relation == "==") == obligations


def test_an_obligation_is_shown_once_with_all_that_require_it() -> None:
    analysis = analysed(
        "(float[N, 2] x, float[M, 3] y) => (float[] z)",
        "z1 = Concat <axis = 1> (x, y) z2 = Concat <axis = 1> (y, x) z = Concat <axis = 1> (z1, z2)",
    )
    assert [str(each) for each in analysis.obligations] == ["M == N"]
    assert "  requires M == N  Concat#0\n" in plain_text(analysis_page(analysis, "m.onnx"))
    assert analysis_json(analysis, "m.onnx")["obligations"] == ["M == N"]


def test_what_equals_a_known_dimension_is_shown_as_that() -> None:
    analysis = analysed(
        "(float[N, K] x, float[3, M] y) => (float[] z)",
        """rows = NonZero (x)
           flat = Cast <to = 1> (rows)
           turned = Transpose <perm = [1, 0]> (flat)
           z = MatMul (y, turned)""",
    )
    assert shown(analysis, "rows", "turned", "z") == ["int64[2, M]", "float32[M, 2]", "float32[3, 2]"]
    assert analysis.obligations == ()


def test_a_requirement_of_a_branch_stays_in_it() -> None:
    analysis = analysed(
        "(bool c, float[N, 2] x, float[M, 3] y) => (float[] z)",
        """z = If (c) <
            then_branch = t () => (float[] p) { p = Concat <axis = 1> (x, y) },
            else_branch = e () => (float[] q) { q = Relu (x) }
        >""",
    )
    assert shown(analysis, "x", "y") == ["float32[N, 2]", "float32[M, 3]"]
    assert analysis.required_by == {obligation_of("M == N"): ("main/If#0/then_branch/Concat#0",)}


@pytest.mark.parametrize(
    ("signature", "body", "found"),
    [
        ("(float[N, 4] x) => (float[N, 4] y)", "y = Relu (x)", []),
        ("(float[N, 4] x) => (float[N, 5] y)", "y = Relu (x)", [("SG301", "warning")]),
        ("(float[N, 4] x) => (int64[N, 4] y)", "y = Relu (x)", [("SG301", "error")]),
        ("(float[N, 4] x) => (float[N] y)", "y = Relu (x)", [("SG301", "warning")]),
        ("(float[N] x, float[1] o) => (float[N] y)", "y = Concat <axis = 0> (x, o)", [("SG301", "warning")]),
    ],
)
def test_a_contradiction_is_reported_with_both(signature: str, body: str, found: list[tuple[str, str]]) -> None:
    analysis = analysed(signature, body)
    assert severities(analysis) == found
    for diagnostic in analysis.diagnostics:
        assert "is declared as" in diagnostic.message and "but inferred as" in diagnostic.message


def test_an_unknown_operator_leaves_open_what_depends_on_it() -> None:
    body = """a = acme.Mystery (x)
              b = Relu (a)
              c = Relu (x)
              d = Shape (b)
              e = Add (b, c)"""
    analysis = analysed("(float[N, 4] x) => (float[N, 4] c, float[] e, int64[] d)", body, '"" : 18, "acme" : 1')
    assert shown(analysis, "c") == ["float32[N, 4]"]
    found = analysis.completeness
    assert found.unknown_operators == ("acme::Mystery",)
    assert found.left_open == 4
    assert "Unknown operators: acme::Mystery, which leave 4 values open." in plain_text(analysis_page(analysis, "m"))
    assert analysis_json(analysis, "m")["completeness"]["left_open"] == 4


def test_what_is_declared_of_an_unknown_operator_is_believed() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18, "acme" : 1]>
        g (float[N, 4] x) => (float[] y) <float[N, 8] a> { a = acme.Mystery (x) y = Concat <axis = 1> (a, x) }"""
    analysis = splitgraph.infer(onnx.parser.parse_model(text))
    assert shown(analysis, "a", "y") == ["float32[N, 8]", "float32[N, 12]"]
    assert analysis.completeness.left_open == 0


def test_graphs_come_by_location() -> None:
    analysis = analysed(
        "(bool c, float[N] x) => (float[] z)",
        """z = If (c) <
            then_branch = t () => (float[] p) { p = Relu (x) },
            else_branch = e () => (float[] q) { q = Neg (x) }
        >""",
    )
    assert list(analysis.graphs) == ["main", "main/If#0/then_branch", "main/If#0/else_branch"]
    assert analysis.graphs["main"] == analysis.types
    page = plain_text(analysis_page(analysis, "m.onnx", with_values=True))
    assert "value of main/If#0/else_branch  type\n  q                               float32[N]\n" in page


@pytest.mark.parametrize(("declared", "shown"), [("N", "?"), ("found", "found")])
def test_the_name_of_an_input_is_not_adopted_for_what_only_a_run_knows(declared: str, shown: str) -> None:
    """How many elements are not 0 is not N because somebody wrote so; a name of its own says nothing wrong."""
    text = f"""<ir_version: 8, opset_import: ["" : 18]>
        g (float[N] x) => (int64[1, {declared}] y) {{ y = NonZero (x) }}"""
    analysis = splitgraph.infer(onnx.parser.parse_model(text))
    assert analysis.ok
    assert str(analysis.types["y"]) == f"int64[1, {shown}]"
    # What the author declared stays in the model.
    assert analysis.model.graph.output[0].type.tensor_type.shape.dim[1].dim_param == declared


NUMBERS = [
    # What is declared is what is inferred, or what nothing else says.
    ("(float[N, 6] x) => (float[N, 6] y)", "y = Relu (x)", {"x": "float32[N, 6]"}, (), []),
    ("(float[1, 6] x) => (float[1, 6] y)", "y = Relu (x)", {"x": "float32[1, 6]"}, (), []),
    ("(float[6] x) => (int64[1, 5] y)", "y = NonZero (x)", {"y": "int64[1, 5]"}, (), []),
    # What an input leaves open stays open, as for runtimes, and there is a warning.
    (
        "(float[N, 6] x) => (float[1, 6] y)",
        "y = Relu (x)",
        {"x": "float32[N, 6]", "y": "float32[N, 6]"},
        (),
        ["N == 1"],
    ),
    (
        "(float[N, 6] x) => (float[1, 6] y, float[] z)",
        "z, w, v = Split <axis = 1> (x) y = Relu (x)",
        {"x": "float32[N, 6]", "z": "float32[N, 2]"},
        (),
        ["N == 1"],
    ),
    (
        "(float[N] x) => (float[6] y)",
        "y = Concat <axis = 0> (x, x)",
        {"x": "float32[N]", "y": "float32[2*N]"},
        (),
        ["N == 3"],
    ),
    (
        "(float[?, 4] x) => (int64[1] y)",
        "y = ArgMax <axis = 1, keepdims = 0> (x)",
        {"x": "float32[unk0, 4]"},
        (),
        ["x"],
    ),
    (
        "(float[?, 6] x) => (float[1, 6] y, float[] z)",
        "z, w, v = Split <axis = 1> (x) y = Relu (x)",
        {"x": "float32[unk0, 6]", "y": "float32[unk0, 6]", "z": "float32[unk0, 2]"},
        (),
        ["x"],
    ),
    ("(float[?] x, float[2] z) => (float[5] y)", "y = Concat <axis = 0> (x, z)", {"x": "float32[unk0]"}, (), ["x"]),
    # One warning, however many values declare it, and one more where another size follows.
    (
        "(float[?, 4] x) => (float[2, 4] y, float[8] z, float[3, 4] w)",
        "y = Relu (x) s = Constant <value_ints = [-1]> () z = Reshape (x, s) w = Neg (x)",
        {"x": "float32[unk0, 4]", "z": "float32[4*unk0]"},
        (),
        ["x", "x"],
    ),
    (
        "(float[?, 4] x) => (float[1, 4] y, float[1, 4] z, float[1, 4] w)",
        "y = Relu (x) z = Neg (y) w = Abs (x)",
        {"x": "float32[unk0, 4]", "z": "float32[unk0, 4]"},
        (),
        ["x"],
    ),
    # What an earlier node found is required to be so.
    (
        "(float[6] x) => (int64[1, 5] z)",
        "y = NonZero (x) z = Neg (y)",
        {"y": "int64[1, unk0]", "z": "int64[1, 5]"},
        ("unk0 == 5",),
        [],
    ),
]


@pytest.mark.parametrize(("signature", "body", "types", "obligations", "holders"), NUMBERS)
def test_a_number_that_is_declared_changes_nothing_before_it_and_is_never_silent(
    signature: str, body: str, types: dict[str, str], obligations: tuple[str, ...], holders: list[str]
) -> None:
    """A declaration once gave an input its batch, and nobody was told; runtimes run any batch."""
    analysis = analysed(signature, body, '"" : 13')
    assert {name: str(analysis.types[name]) for name in types} == types
    assert tuple(map(str, analysis.obligations)) == obligations
    assert all(analysis.required_by.values())
    assert severities(analysis) == [("SG301", "warning")] * len(holders)
    for found, holder in zip(analysis.diagnostics, holders, strict=True):
        said = f"only where {holder}" if "==" in holder else f"for one size only of dimension 0 of {holder!r}"
        assert f"holds {said}" in found.message


def test_a_number_declared_in_a_branch_is_told_there() -> None:
    analysis = analysed(
        "(bool c, float[N, 2] x, float[?, 2] z) => (float[] y)",
        """y = If (c) <
            then_branch = t () => (float[3, 2] p) { p = Relu (x) },
            else_branch = e () => (float[4, 2] q) { q = Relu (z) }
        >""",
    )
    assert shown(analysis, "x", "z") == ["float32[N, 2]", "float32[unk0, 2]"]
    assert not analysis.required_by
    assert [(found.severity, found.location) for found in analysis.diagnostics] == [
        ("warning", "main/If#0/then_branch/Relu#0"),
        ("warning", "main/If#0/else_branch/Relu#0"),
    ]


@pytest.mark.parametrize(
    ("signature", "body"),
    [
        ("(float[N, 4] x) => (float[1, 4] y, float[2, 4] z)", "y = Relu (x) z = Neg (x)"),
        ("(float[?] x) => (float[5] y)", "y = Concat <axis = 0> (x, x)"),
        ("(float[?] x, float[2] z) => (float[1] y)", "y = Concat <axis = 0> (x, z)"),
    ],
)
def test_a_number_that_nothing_can_be(signature: str, body: str) -> None:
    """Runtimes warn of it at each run, and go by the nodes."""
    analysis = analysed(signature, body)
    assert set(severities(analysis)) == {("SG301", "warning")}
    assert analysis.ok


def test_a_number_declared_of_what_a_body_is_given_is_believed_within_it() -> None:
    analysis = analysed(
        "(float[?, 2] x) => (seq(float[]) y)",
        """parts = SequenceConstruct (x)
           y = SequenceMap (parts, x) <body = b (float[] part, float[3, 2] whole) => (float[] sum) {
            sum = Neg (whole)
        }>""",
    )
    assert shown(analysis, "x", "y") == ["float32[unk0, 2]", "sequence(float32[3, 2])"]
    assert severities(analysis) == [("SG301", "warning")]


@pytest.mark.parametrize(
    ("signature", "body", "written"),
    [
        ("(float[?, 4] x) => (float[1, 4] y)", "y = Relu (x)", ["unk0", 4]),
        ("(float[N, 4] x) => (float[1, 4] y)", "y = Relu (x)", ["N", 4]),
        ("(float[N, 4] x) => (float[N, 5] y)", "y = Relu (x)", ["N", 4]),
        ("(float[N, 4] x) => (float[N] y)", "y = Relu (x)", ["N", 4]),
        ("(float[N] x) => (float[7] y)", "y = Concat <axis = 0> (x, x)", ["2*N"]),
        # Who runs the model decides how many elements there are: then a number is the author's knowledge.
        ("(float[N] x) => (int64[1, 3] y)", "y = NonZero (x)", [1, 3]),
        ("(float[N, 4] x) => (float[B, C] y)", "y = Relu (x)", ["B", 4]),
    ],
)
def test_what_is_written_is_true(signature: str, body: str, written: list[object]) -> None:
    """A declared number does not stay where another size is possible; a name does, which says nothing wrong."""
    analysis = analysed(signature, body)
    dims = analysis.model.graph.output[0].type.tensor_type.shape.dim
    assert [dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in dims] == written
    assert analysis.ok


HALVES_BY_INPUT = """<ir_version: 8, opset_import: ["" : 13, "my" : 1]>
g (float[N, 8] x, int64[2] l) => (float[LEFT] y, float[RIGHT] z) { y, z = my.f (x, l) }
<domain: "my", opset_import: ["" : 13]>
f (x, l) => (y, z) { y, z = Split <axis = 1> (x, l) }"""


@pytest.mark.parametrize(
    ("left", "right", "obligations"),
    [
        # That lengths are not negative goes without saying of numbers, but not of what is left of one.
        ("N, 4", "N, 4", ()),
        ("N, K", "N, M", ("8 >= K", "K + M == 8")),
    ],
)
def test_what_holds_for_all_sizes_is_no_obligation(left: str, right: str, obligations: tuple[str, ...]) -> None:
    """`4 >= 0` was one."""
    text = HALVES_BY_INPUT.replace("LEFT", left).replace("RIGHT", right)
    assert tuple(map(str, splitgraph.infer(onnx.parser.parse_model(text)).obligations)) == obligations


@pytest.mark.parametrize(
    ("signature", "body", "types"),
    [
        # PyTorch's exporter gives all parts of a split the name of the first one's length.
        (
            "(float[T] x, int64[3] l) => (float[S] a, float[S] b, float[S] c)",
            "a, b, c = Split <axis = 0> (x, l)",
            ["float32[S]", "float32[unk0]", "float32[T - S - unk0]"],
        ),
        (
            "(float[K] x, float[K] z) => (int64[1, D] a, int64[1, D] b)",
            "a = NonZero (x) b = NonZero (z)",
            ["int64[1, D]", "int64[1, ?]"],
        ),
        (
            "(float[?, 4] x, float[?, 4] z) => (float[batch, 4] a, float[batch, 4] b)",
            "a = Relu (x) b = Relu (z)",
            ["float32[batch, 4]", "float32[unk0, 4]"],
        ),
        # One value, whatever it is called where.
        (
            "(float[K] x) => (int64[1, D] a, int64[1, D] b)",
            "a = NonZero (x) b = Neg (a)",
            ["int64[1, D]", "int64[1, D]"],
        ),
    ],
)
def test_a_name_stands_for_one_unknown_dimension(signature: str, body: str, types: list[str]) -> None:
    analysis = analysed(signature, body)
    assert (severities(analysis), shown(analysis, *"abc"[: len(types)])) == ([], types)


@pytest.mark.parametrize(
    ("formula", "types"),
    [
        ("count(K, 4)", ["int64[1, count(K, 4)]"] * 2),
        # Where the formula can be read, it is believed as a number would be.
        ("Min(K, 4)", ["int64[1, min(K, 4)]"] * 2),
        ("K//2", ["int64[1, K//2]"] * 2),
    ],
)
def test_a_formula_of_the_exporter_stands_for_each_dimension_that_it_computes(formula: str, types: list[str]) -> None:
    analysis = analysed("(float[K] x, float[K] z) => (int64[1, D] a, int64[1, D] b)", "a = NonZero (x) b = NonZero (z)")
    model = analysis.model
    for value in model.graph.output:
        value.type.tensor_type.shape.dim[1].dim_param = formula
    assert shown(splitgraph.infer(model), "a", "b") == types


DEFAULTS = [
    # The default's type, the declared one, version of the IR, what is found, what is known of the input.
    ("float[8, 7]", "float[8, 7]", 8, [], "float32[8, 7]"),
    ("float[8, 7]", "float[N, 7]", 8, [], "float32[N, 7]"),
    ("float[8, 7]", "float[]", 8, [], "float32[...]"),
    ("float[8, 7]", "float[4, 7]", 8, ["SG301"], "float32[4, 7]"),
    ("float[8, 7]", "float[8, 7, 1]", 8, ["SG301"], "float32[8, 7, 1]"),
    ("double[8, 7]", "float[8, 7]", 8, ["SG301"], "float32[8, 7]"),
    # Before IR 4 nobody can give another one.
    ("float[8, 7]", "float[?, 7]", 3, [], "float32[8, 7]"),
    ("float[8, 7]", "float[]", 3, [], "float32[8, 7]"),
    ("float[8, 7]", "float[4, 7]", 3, ["SG301"], "float32[8, 7]"),
]


@pytest.mark.parametrize(("default", "declared", "version", "found", "known"), DEFAULTS)
def test_an_initializer_is_of_the_type_of_its_input(
    default: str, declared: str, version: int, found: list[str], known: str
) -> None:
    given, _, shape = default.partition("[")
    numbers = ", ".join(["0"] * prod(int(dim) for dim in shape[:-1].split(",")))
    text = f"<ir_version: {version}, opset_import: ['' : 18]> g () => ({declared} y) "
    model = onnx.parser.parse_model(
        text.replace("'", '"') + f"<{given}[{shape} x = {{{numbers}}}> {{ y = Identity (x) }}"
    )
    model.graph.input.add(name="x").type.CopyFrom(model.graph.output[0].type)
    model.graph.output[0].type.Clear()
    analysis = splitgraph.infer(model)
    assert ([each.code for each in analysis.diagnostics], str(analysis.types["x"])) == (found, known)
    assert all("the initializer 'x' is" in each.message for each in analysis.diagnostics)
