"""Domains without an opset import: an error where nothing loads the model, a warning where runtimes take a version."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest

import splitgraph

LABELS = 'y = ai.onnx.ml.Normalizer<norm = "MAX">(x)'
GELU = "y = com.microsoft.Gelu(x)"
NEGATED = "y = Neg(x)"
IN_BRANCHES = """c = Constant<value = bool {1}>()
    y = If(c) <then_branch = t () => (float[2,3] p) { p = ai.onnx.ml.Normalizer<norm = "MAX">(x) },
               else_branch = e () => (float[2,3] q) { q = Neg(x) }>"""


CALL_IN_BRANCH = IN_BRANCHES.replace('ai.onnx.ml.Normalizer<norm = "MAX">', "my.f")


def model(imports: str, nodes: str, functions: str = "", ir_version: int = 9) -> onnx.ModelProto:
    head = f"<ir_version: {ir_version}, opset_import: [{imports}]>"
    return onnx.parser.parse_model(f"{head} g (float[2,3] x) => (float[2,3] y) {{ {nodes} }} {functions}")


def function(imports: str, nodes: str, name: str = "f", domain: str = "my") -> str:
    return f'<domain: "{domain}", opset_import: [{imports}]> {name} (x) => (y) {{ {nodes} }}'


CALL, PLAIN = "y = my.f(x)", '"" : 18, "my" : 1'

# Each is loaded by onnx's checker.
SOUND = {
    "every domain is imported": model('"" : 18, "ai.onnx.ml" : 3', LABELS),
    "only the domain that is used": model('"ai.onnx.ml" : 3', LABELS),
    "ai.onnx by its other name": model('"ai.onnx" : 18', NEGATED),
    "the function imports, the model does not": model(PLAIN, CALL, function('"" : 18, "ai.onnx.ml" : 3', LABELS)),
    "ai.onnx by the function alone": model('"my" : 1', CALL, function('"" : 18', NEGATED)),
    "a function without a call of its own domain": model(PLAIN, CALL, function('"" : 18', NEGATED)),
    "a function that nothing calls, unimported": model('"" : 18', NEGATED, function('"" : 18', NEGATED)),
}


@pytest.mark.parametrize("name", SOUND)
def test_no_finding(name: str) -> None:
    # The checker of onnx 1.20 does not know ai.onnx by its other name.
    if name != "ai.onnx by its other name" or onnx.defs.onnx_opset_version() >= 28:
        onnx.checker.check_model(SOUND[name])
    assert [found for found in splitgraph.infer(SOUND[name]).diagnostics if found.code != "SG303"] == []


# onnx's checker refuses each; onnxruntime loads those with operators that it knows.
WARNED = {
    "ai.onnx.ml": (model('"" : 18', LABELS), "ai.onnx.ml"),
    "com.microsoft": (model('"" : 18', GELU), "com.microsoft"),
    "a domain of custom operators": (model('"" : 18', "y = my.ops.Foo(x)"), "my.ops"),
    "ai.onnx.preview.training": (model('"" : 18', "y = ai.onnx.preview.training.Foo(x)"), "ai.onnx.preview.training"),
    "in a branch": (model('"" : 18', IN_BRANCHES), "ai.onnx.ml"),
    "twice": (model('"" : 18', f"{LABELS.replace('y =', 'z =')} {LABELS.replace('(x)', '(z)')}"), "ai.onnx.ml"),
}


@pytest.mark.parametrize("name", WARNED)
def test_one_warning_for_each_domain(name: str) -> None:
    given, domain = WARNED[name]
    with pytest.raises(onnx.checker.ValidationError):
        onnx.checker.check_model(given)
    (found,) = [found for found in splitgraph.infer(given).diagnostics if found.code != "SG303"]
    assert (found.code, found.severity, found.location) == ("SG110", "warning", "main")
    assert f"imports no version of {domain};" in found.message
    assert splitgraph.upgrade(given, 19).to_opset[""] == 19


# Neither onnx's checker, nor onnxruntime, nor the reference evaluator loads any of these.
REFUSED = {
    "a node of ai.onnx": (model('"ai.onnx.ml" : 3', NEGATED), "main/Neg#0", "model imports no opset of ai.onnx"),
    "no import at all": (model("", NEGATED), "main/Neg#0", "model imports no opset of ai.onnx"),
    "a call of a function": (
        model('"" : 18', CALL, function('"" : 18', NEGATED)), "main/f#0", "model imports no opset of my",
    ),
    "a call in a branch": (
        model('"" : 18', CALL_IN_BRANCH, function('"" : 18', NEGATED)),
        "main/If#1/then_branch/f#0", "model imports no opset of my",
    ),
    "ai.onnx.ml in a function": (
        model(PLAIN, CALL, function('"" : 18', LABELS)), "main/f#0/Normalizer#0", "imports no opset of ai.onnx.ml",
    ),
    "ai.onnx.ml in a function, imported by the model": (
        model(f'{PLAIN}, "ai.onnx.ml" : 3', CALL, function('"" : 18', LABELS)),
        "main/f#0/Normalizer#0", "function around the node imports no opset of ai.onnx.ml",
    ),
    "com.microsoft in a function": (
        model(f'{PLAIN}, "com.microsoft" : 1', CALL, function('"" : 18', GELU)),
        "main/f#0/Gelu#0", "imports no opset of com.microsoft",
    ),
    "custom operators in a function": (
        model(PLAIN, CALL, function('"" : 18', "y = my.ops.Foo(x)")), "main/f#0/Foo#0", "imports no opset of my.ops",
    ),
    "ai.onnx in a function": (
        model(PLAIN, CALL, function('"my" : 1', NEGATED)), "main/f#0/Neg#0", "imports no opset of ai.onnx",
    ),
    "a constant in a function": (
        model(PLAIN, CALL, function('"my" : 1', "y = Constant<value = float {1.0}>()")),
        "main/f#0/Constant#0", "imports no opset of ai.onnx",
    ),
    "a call of the function's own domain": (
        model(PLAIN, CALL, function('"" : 18', NEGATED, "h") + function('"" : 18', "y = my.h(x)")),
        "main/f#0/h#0", "imports no opset of my",
    ),
    "a call of another domain, imported by the model": (
        model(f'{PLAIN}, "o" : 1', CALL, function('"" : 18', NEGATED, "h", "o") + function('"" : 18', "y = o.h(x)")),
        "main/f#0/h#0", "imports no opset of o",
    ),
    "a branch in a function": (
        model(PLAIN, CALL, function('"" : 18', IN_BRANCHES)),
        "main/f#0/If#1/then_branch/Normalizer#0", "imports no opset of ai.onnx.ml",
    ),
    "a function that nothing calls": (
        model(PLAIN, NEGATED, function('"" : 18', LABELS)), "my::f/Normalizer#0", "imports no opset of ai.onnx.ml",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_an_error_where_nothing_loads_the_model(name: str) -> None:
    given, location, words = REFUSED[name]
    with pytest.raises(onnx.checker.ValidationError):
        onnx.checker.check_model(given)
    (found,) = [found for found in splitgraph.infer(given).diagnostics if found.code != "SG303"]
    assert (found.code, found.severity, found.location) == ("SG110", "error", location)
    assert words in found.message
    with pytest.raises(splitgraph.ConversionError, match="SG110"):
        splitgraph.upgrade(given, 19)


def of_old_ir(ir_version: int, nodes: str = "a, b = Split<axis = 1, split = [1, 2]>(x) y = Neg(x)") -> onnx.ModelProto:
    made = model('"" : 1', nodes, ir_version=3)
    made.ir_version = ir_version
    del made.opset_import[:]
    return made


@pytest.mark.parametrize("ir_version", [1, 2])
def test_a_model_older_than_imports_is_of_opset_1(ir_version: int) -> None:
    given = of_old_ir(ir_version)
    onnx.checker.check_model(given)
    found = splitgraph.infer(given)
    assert found.diagnostics == ()
    assert [split.since_version for split in found.splits] == [1]
    assert str(found.types["b"]) == "float32[2, 2]"
    assert found.model.ir_version == ir_version
    for opset in (1, 9, 18):
        upgraded = splitgraph.upgrade(given, opset)
        onnx.checker.check_model(upgraded.model, full_check=True)
        assert (upgraded.from_opset, upgraded.to_opset) == ({"": 1}, {"": opset})
        assert splitgraph.verify(given, upgraded.model, engine="reference", samples=1).verdict == "equal"


@pytest.mark.parametrize("ir_version", [0, 3, 4, 8])
def test_a_model_that_could_have_imports_needs_one(ir_version: int) -> None:
    found = splitgraph.infer(of_old_ir(ir_version)).diagnostics
    assert {each.code for each in found} == {"SG110"}
    assert {each.severity for each in found} == {"error"}


def test_what_opset_1_does_not_have_is_said() -> None:
    (found,) = splitgraph.infer(of_old_ir(2, "y = Erf(x)")).diagnostics
    assert (found.code, found.severity) == ("SG214", "error")
