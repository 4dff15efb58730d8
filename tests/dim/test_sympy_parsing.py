"""dim_params in SymPy's spelling are read as the expressions they are, exactly or not at all; SymPy is the oracle."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import onnx
import pytest
import sympy
from onnx import TensorProto, helper

import splitgraph
from splitgraph.cli import main
from splitgraph.dim import evaluate, parse_dim, parse_expression, parse_given_dim, symbol

READ = [
    ("floor(h/2 - 1/2)", "(h - 1)//2"),
    ("floor(h/2 - 1/2) + 1", "(h + 1)//2"),
    ("floor(height/2)", "height//2"),
    ("2*floor(a/2)", "2*(a//2)"),
    ("floor(floor(height/2 - 1/2)/2) + 1", "(height + 3)//4"),
    ("floor(floor(floor(h/2)/2)/2)", "h//8"),
    ("ceiling(h/2)", "(h + 1)//2"),
    ("ceiling(h/2 - 3/2) + 1", "h//2"),
    ("ceiling(-h/2)", "-(h//2)"),
    ("Max(1, x)", "max(x, 1)"),
    ("Max(0, h - 4, w)", "max(0, h - 4, w)"),
    ("Min(1000000, floor(h/4))", "min(1000000, h//4)"),
    ("floor(Max(1, h/2))", "max(2, h)//2"),
    ("Mod(a, 2)", "a % 2"),
    ("a - 4*floor(a/4)", "a % 4"),
    ("a**2", "a*a"),
    ("(a + 1)**2", "a*a + 2*a + 1"),
    ("-a**2 + b**2", "b*b - a*a"),
    ("2*a**2*b", "2*a*a*b"),
    ("(h + 1)*(w + 2)", "(h + 1)*(w + 2)"),
    ("batch*(seq + 1)", "batch*seq + batch"),
    ("(floor(h/2 - 1/2) + 1)*(floor(w/2 - 1/2) + 1)", "((h + 1)//2)*((w + 1)//2)"),
    ("4*h/2", "2*h"),
    ("(4*h + 2)/2", "2*h + 1"),
    ("h/2 + h/2", "h"),
    ("floor(a*b/4)", "(a*b)//4"),
    ("floor(a/b)", "a//b"),
    ("floor(8*b*floor(h/2)/floor(h/4))", "(8*b*(h//2))//(h//4)"),
    ("floor(a/b + 1/2)", "(2*a + b)//(2*b)"),
    ("floor(2.0*h)", "2*h"),
    ("floor(1.5*h + 1.5)", "(3*h + 3)//2"),
    ("floor(0.25*height)", "height//4"),
    ("floor(0.500000000000000*height)", "height//2"),
    ("h - floor(h/3)", "h - h//3"),
    ("1 - floor(-h/2)", "(h + 1)//2 + 1"),
    ("floor(batch_size*seq_len/8)", "(batch_size*seq_len)//8"),
    ("floor(floor/2)", "floor//2"),
    ("Max(Max, 2)", "max(Max, 2)"),
    # PyTorch's.
    ("((s0//2))", "s0//2"),
    ("((s0 - 1)//2) + 1", "(s0 + 1)//2"),
    ("(((s0 + 1)//2))*s1", "s1*((s0 + 1)//2)"),
    ("FloorDiv(s0, 2)", "s0//2"),
    ("CeilDiv(s0, 2)", "(s0 + 1)//2"),
    ("PythonMod(s0, 4)", "s0 % 4"),
    ("Max(1, s0 - 2)", "max(1, s0 - 2)"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "meaning"), READ)
def test_what_sympy_writes_is_read(text: str, meaning: str) -> None:
    value = parse_dim(text)
    assert value == parse_expression(meaning)
    assert str(value) != text
    assert parse_given_dim(text, ()) == value


OPAQUE = [
    # Names.
    "floor", "ceiling", "Max", "Mod", "a-b", "2N", "floor(x", "floor)", "floorx)", "floor(2N)", "a/b", "N/A",
    "batch/seq",
    "floor(batch-size/2)", "floor(seq:0/2)", "floor(a b)", "floor(unk__1.0/2)", "Max(lambda, 1)", "Max(None, 1)",
    # Not always integers.
    "h/2", "h/2 - 1/2", "a*(a + 1)/2", "Max(h/2, 1)", "Mod(h/2, 3)", "(h/2)**2", "sqrt(h)", "log(h)", "h**0.5",
    "2**h", "h**(-1)", "a**b", "1.5*h", "h + 0.5",
    # Rounded, and no one knows from what.
    "floor(1.33333337306976*h)", "floor(0.1*h)", "floor(0.5000000000000000001*h)",
    # No functions of SymPy's, or not as they are called.
    "f(N)", "Floor(h/2)", "floor()", "floor(a, b)", "Max(a)", "Max()", "Mod(a)", "Mod(a, b, c)", "max(a, a)",
    "round(h/2)", "Max(*a)", "Max(a=1)", "floor(h/2)(w)", "Piecewise((a, b > 1), (b, True))", "floor(a if b else c)",
    "floor(h/0)", "Mod(a, 0)", "floor(a)[0]", "Max(a, [b])", "floor(a.b/2)", "floor(1_0*h)", "floor(0x10*h)",
    "floor(010*h)",
    # Not as SymPy puts spaces.
    "floor(h / 2)", "floor( h/2)", "floor(h/2 -1/2)", "Max(1,x)", "a ** 2", " floor(h/2)", "floor(h/2) ",
    "floor(h/2)\n",
    "floor(h/2-1/2)", "(a + 1) * (b + 1)",
    # Numbers, and what has no end.
    "4/2", "1/2", "2**3", "Max(1, 2)", "floor(5/2)", "a**9", "(a + b + c + d + e + f + g + h)**8",
    "((((((((a**8)**8)**8)**8)**8)**8)**8)**8)**8", "((((((((9**8)**8)**8)**8)**8)**8)**8)**8)**8*a",
    "(" * 300 + "a**2" + ")" * 300, "-" * 5000 + "a/2", "*".join(f"(x{i} + 1)" for i in range(40)),
]  # fmt: skip


@pytest.mark.parametrize("name", OPAQUE, ids=lambda name: name[:40])
def test_what_is_not_exactly_an_expression_of_sympy_s_stays_a_name(name: str) -> None:
    assert parse_dim(name) is symbol(name)


@pytest.mark.parametrize(
    "text", ["floor(H / 2)", "floor(H/2)", "Max(1,H-2)", "H**2", "(H + 1)*(W + 1)", "ceiling( H/2 )"]
)
def test_a_person_puts_spaces_as_they_like(text: str) -> None:
    exact = {"H": 7, "W": 4}
    meant = {"floor": sympy.floor, "ceiling": sympy.ceiling, "Max": sympy.Max}
    assert evaluate(parse_given_dim(text, ()), exact) == eval(
        text, {}, {**meant, **{n: sympy.Integer(v) for n, v in exact.items()}}
    )


def test_long_sums_are_read() -> None:
    text = " + ".join(f"floor(x{index}/2)" for index in range(300))
    assert parse_dim(text) == sum((symbol(f"x{index}") // 2 for index in range(300)), start=symbol("x") - symbol("x"))


DEEP = ["-" * 40 + "floor(a/2)", "Max(1, " * 40 + "a" + ")" * 40, "a" + "**1" * 40, "floor(a/2)" + " + b" * 2000]


@pytest.mark.parametrize("text", [*DEEP, "floor(a/2)" + " + b" * 500], ids=lambda text: text[:20])
@pytest.mark.parametrize("calls", [0, 200, 400])
def test_what_is_read_does_not_depend_on_how_many_calls_are_open(text: str, calls: int) -> None:
    def read(depth: int) -> object:
        return read(depth - 1) if depth else parse_dim.__wrapped__(text)

    assert (read(calls) is symbol(text)) == (text in DEEP)


SYMBOLS = {name: sympy.Symbol(name, integer=True, nonnegative=True) for name in ("a", "b", "height")}


def random_expression(random: Random, depth: int) -> Any:
    """An expression as onnxruntime's tool builds them."""
    if depth == 0:
        return random.choice([*SYMBOLS.values(), sympy.Integer(random.randint(1, 5))])
    one, other = (random_expression(random, depth - 1) for _ in range(2))
    number = random.randint(2, 4)
    return random.choice(
        [
            one + other,
            one - other,
            one * other,
            sympy.floor(one / number + sympy.Rational(random.randint(-3, 3), number)) + 1,
            sympy.ceiling(one / number),
            sympy.Max(one, other),
            sympy.Min(one, other),
            sympy.Mod(one, number),
            sympy.floor(one * sympy.Rational(3, 2)),
        ]
    )


@pytest.mark.parametrize("seed", range(60))
def test_what_is_read_is_what_sympy_means(seed: int) -> None:
    random = Random(seed)
    expression = random_expression(random, random.randint(1, 3))
    value = parse_dim(str(expression))
    assert value == symbol(str(expression)) or isinstance(value, splitgraph.dim.Dim)
    if not expression.free_symbols:
        return
    for sizes in ((0, 1, 2), (3, 5, 4), (7, 8, 16), (224, 31, 9)):
        given = dict(zip(SYMBOLS, sizes, strict=True))
        assert evaluate(value, given) == expression.subs({SYMBOLS[name]: size for name, size in given.items()})


def pyramid(*declared: str) -> onnx.ModelProto:
    """Three convolutions that halve an image; the heights and widths of what they give as they are declared."""
    values = [
        helper.make_tensor_value_info(f"c{index}", TensorProto.FLOAT, ["batch", 4, height, width])
        for index, (height, width) in enumerate(zip(declared[::2], declared[1::2], strict=True))
    ]
    nodes, tensors, before = [], [], "x"
    for index, value in enumerate(values):
        tensors.append(helper.make_tensor(f"w{index}", TensorProto.FLOAT, [4, 4, 3, 3], [0.0] * 144))
        options = {"strides": [2, 2], "pads": [1, 1, 1, 1]}
        nodes.append(helper.make_node("Conv", [before, f"w{index}"], [value.name], **options))
        before = value.name
    image = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4, "height", "width"])
    graph = helper.make_graph(nodes, "g", [image], values[-1:], tensors, value_info=values[:-1])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


HALVES = [
    "floor(height/2 - 1/2) + 1",
    "floor(width/2 - 1/2) + 1",
    "floor(floor(height/2 - 1/2)/2) + 1",
    "floor(floor(width/2 - 1/2)/2) + 1",
    "floor(floor(floor(height/2 - 1/2)/2)/2) + 1",
    "floor(floor(floor(width/2 - 1/2)/2)/2) + 1",
]


def test_what_onnxruntime_s_tool_wrote_demands_nothing_and_is_kept() -> None:
    model = pyramid(*HALVES)
    analysis = splitgraph.infer(model)
    assert analysis.diagnostics == ()
    assert [str(each) for each in analysis.obligations] == ["height >= 1", "width >= 1"]
    assert str(analysis.types["c2"]) == "float32[batch, 4, (height + 7)//8, (width + 7)//8]"
    assert analysis.model.graph.output == model.graph.output
    assert list(analysis.model.graph.value_info[:2]) == list(model.graph.value_info)


def test_what_onnxruntime_s_tool_has_wrong_is_said() -> None:
    wrong = ["floor(height/2 - 1/2) + 2", *HALVES[1:]]
    (found,) = splitgraph.infer(pyramid(*wrong)).diagnostics
    assert (found.code, found.severity) == ("SG301", "warning")


def test_sizes_of_the_symbols_in_such_a_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = pyramid(*HALVES)
    assert splitgraph.infer(model, bind={"height": 20}).types["c2"].shape == (
        symbol("batch"),
        4,
        3,
        (symbol("width") + 7) // 8,
    )
    onnx.save(model, tmp_path / "model.onnx")
    arguments = ["--input-shape", "x=2,4,20,floor(K/2)", "--all"]
    assert main(["infer", str(tmp_path / "model.onnx"), *arguments]) == 0
    assert "float32[2, 4, 3, (K + 14)//16]" in capsys.readouterr().out


def test_such_a_text_as_the_dimension_of_an_input() -> None:
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [dim])
        for name, dim in (("x", "a"), ("z", "2*floor(a/2)"))
    ]
    nodes = [helper.make_node("Split", ["z"], ["p", "q"], axis=0, num_outputs=2)]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "pq"]
    model = helper.make_model(
        helper.make_graph(nodes, "g", values, results), opset_imports=[helper.make_opsetid("", 18)]
    )
    analysis = splitgraph.infer(model)
    assert (analysis.diagnostics, analysis.obligations) == ((), ())
    assert str(analysis.types["p"]) == str(analysis.types["q"]) == "float32[a//2]"
    assert analysis.model.graph.input == model.graph.input
    assert splitgraph.verify(model, model, samples=2).verdict == "equal"


def test_symbols_that_no_input_has_are_symbols_all_the_same() -> None:
    model = pyramid("floor(rows/2)", "cols**2")
    analysis = splitgraph.infer(model)
    assert analysis.diagnostics == ()
    assert str(analysis.types["c0"]) == "float32[batch, 4, (height + 1)//2, (width + 1)//2]"
