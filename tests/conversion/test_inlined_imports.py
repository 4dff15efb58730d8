"""Opset imports of functions that are inlined: they come along, and two versions of one domain are refused."""

from __future__ import annotations

from collections.abc import Callable

import onnx
import onnx.parser
import pytest

import splitgraph
from splitgraph.conversion.inlining import inline_functions

HALVES = "a, b = Split<axis = 1, num_outputs = 2>(x)"
LABELS = 'y = ai.onnx.ml.Normalizer<norm = "MAX">(a)'
LABELS_OF_C = LABELS.replace("(a)", "(c)")
BRANCHES = """c = Constant<value = bool {1}>()
    y = If(c) <then_branch = t () => (p) { p = com.microsoft.Gelu(a) }, else_branch = e () => (q) { q = Neg(a) }>"""


def model(imports: str, functions: str) -> onnx.ModelProto:
    head = f'<ir_version: 9, opset_import: ["" : 18, "my" : 1{imports}]>'
    return onnx.parser.parse_model(
        f"{head} g (float[2,8] x) => (float[2,4] y, float[2,4] b) {{ y, b = my.f(x) }} {functions}"
    )


def f(imports: str, nodes: str) -> str:
    return f'<domain: "my", opset_import: ["" : 18{imports}]> f (x) => (y, b) {{ {HALVES} {nodes} }}'


def h(imports: str, nodes: str, domain: str = "o") -> str:
    return f'<domain: "{domain}", opset_import: ["" : 18{imports}]> h (a) => (y) {{ {nodes} }}'


# What the model imports besides ai.onnx and my afterwards.
BROUGHT = {
    "ai.onnx.ml": (model("", f(', "ai.onnx.ml" : 3', LABELS)), {"ai.onnx.ml": 3}),
    "com.microsoft": (model("", f(', "com.microsoft" : 1', "y = com.microsoft.Gelu(a)")), {"com.microsoft": 1}),
    "custom operators": (model("", f(', "my.ops" : 7', "y = my.ops.Foo(a)")), {"my.ops": 7}),
    "the function's own domain": (model("", f(', "my" : 1', "y = my.Foo(a)")), {}),
    "two domains": (
        model("", f(', "ai.onnx.ml" : 3, "com.microsoft" : 1', f"c = com.microsoft.Gelu(a) {LABELS_OF_C}")),
        {"ai.onnx.ml": 3, "com.microsoft": 1},
    ),
    "in a branch": (model("", f(', "com.microsoft" : 1', BRANCHES)), {"com.microsoft": 1}),
    "of a function in a function": (
        model("", f(', "o" : 1', "y = o.h(a)") + h(', "ai.onnx.ml" : 3', LABELS)), {"ai.onnx.ml": 3},
    ),
    "in both functions": (
        model("", f(', "o" : 1, "ai.onnx.ml" : 3', f"c = o.h(a) {LABELS_OF_C}") + h(', "ai.onnx.ml" : 3', LABELS)),
        {"ai.onnx.ml": 3},
    ),
    "nothing that no node needs": (model("", f(', "ai.onnx.ml" : 3', "y = Neg(a)")), {}),
    "nothing of a function that nothing calls": (
        model("", f("", "y = Neg(a)") + h(', "ai.onnx.ml" : 3', LABELS)), {},
    ),
    "what the model imports, too": (
        model(', "ai.onnx.ml" : 3', f(', "ai.onnx.ml" : 3', LABELS)), {"ai.onnx.ml": 3},
    ),
    "another version of a domain that is gone": (
        model(', "o" : 2', f(', "o" : 1', "y = o.h(a)") + h("", "y = Neg(a)")), {"o": 2},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROUGHT)
def test_imports_come_along(name: str) -> None:
    given, brought = BROUGHT[name]
    before = given.SerializeToString()
    inlined = inline_functions(given)
    assert given.SerializeToString() == before
    assert not inlined.functions
    assert {entry.domain: entry.version for entry in inlined.opset_import} == {"": 18, "my": 1, **brought}
    onnx.checker.check_model(inlined)


VERBS: dict[str, Callable[[onnx.ModelProto], splitgraph.Rewrite]] = {
    "downgrade": lambda given: splitgraph.downgrade(given, 13),
    "explicit lengths": lambda given: splitgraph.convert(given, "split", explicit_lengths=True),
    "target": lambda given: splitgraph.convert(given, target="tract"),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", ["ai.onnx.ml", "custom operators", "in a branch", "of a function in a function"])
def test_results_import_what_their_nodes_need(name: str, verb: str) -> None:
    given, brought = BROUGHT[name]
    result = VERBS[verb](given)
    assert not result.model.functions
    onnx.checker.check_model(result.model)
    assert brought.items() <= {entry.domain: entry.version for entry in result.model.opset_import}.items()
    assert brought.items() <= result.to_opset.items()
    assert not [found for found in splitgraph.infer(result.model).diagnostics if found.code == "SG110"]


REFUSED = {
    "the model imports another": (
        model(', "ai.onnx.ml" : 2', f(', "ai.onnx.ml" : 3', LABELS)),
        "the function my::f imports version 3 of ai.onnx.ml, and the model imports version 2",
    ),
    "two functions differ": (
        model("", f(', "o" : 1, "ai.onnx.ml" : 2', f"c = o.h(a) {LABELS_OF_C}") + h(', "ai.onnx.ml" : 3', LABELS)),
        "the function o::h imports version 3 of ai.onnx.ml, and the function my::f imports version 2",
    ),
    "custom operators": (
        model(', "my.ops" : 1', f(', "my.ops" : 7', "y = my.ops.Foo(a)")),
        "the function my::f imports version 7 of my.ops, and the model imports version 1",
    ),
    "in a branch": (
        model(', "com.microsoft" : 2', f(', "com.microsoft" : 1', BRANCHES)),
        "the function my::f imports version 1 of com.microsoft, and the model imports version 2",
    ),
    "ai.onnx": (
        model("", f("", "y = Neg(a)").replace('"" : 18', '"" : 17').replace(", num_outputs = 2", "")),
        "the function my::f imports version 17 of ai.onnx, and the model imports version 18",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_two_versions_of_one_domain(name: str) -> None:
    given, reason = REFUSED[name]
    with pytest.raises(ValueError, match=reason):
        inline_functions(given)
    kept = splitgraph.convert(given, "split", explicit_lengths=True)
    assert [function.name for function in kept.model.functions] == [function.name for function in given.functions]
    assert reason in next(found.message for found in kept.diagnostics if found.code == "SG413")


def test_a_target_without_functions_says_why_they_stay() -> None:
    given, reason = REFUSED["custom operators"]
    with pytest.raises(splitgraph.ConversionError) as refused:
        splitgraph.convert(given, target="mnn")
    assert any(reason in found.message for found in refused.value.diagnostics)
