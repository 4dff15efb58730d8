"""What a type checker makes of the API: results have the kind of model that was given, and wrong uses are errors.

A small program of a user goes through mypy, strictly; every line of the tables is a line of it.
"""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest

import splitgraph
from splitgraph import keywords, options
from splitgraph.dim import Dim

ROOT = Path(__file__).resolve().parent.parent

START = """
from __future__ import annotations
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
import onnx, onnx_graphsurgeon as gs, onnx_ir, splitgraph
from onnx import ModelProto
from splitgraph import Analysis, NodeForm, OpenVINOModel, Rewrite, ValueType
from typing_extensions import assert_type

def program(
    proto: ModelProto, openvino_ir: OpenVINOModel, graph: gs.Graph, model: onnx_ir.Model, path: Path,
    either: str | ModelProto, anything: Any, function: onnx_ir.Function, rewrite: Rewrite, analysis: Analysis,
) -> None:
"""
# onnx_graphsurgeon does not say that it has types. mypy takes a gs.Graph for Any unless it is told to read the library.
CONFIGURATION = """
[mypy]
strict = True
[mypy-splitgraph.*]
follow_imports = silent
[mypy-onnx_graphsurgeon.*]
follow_untyped_imports = True
implicit_reexport = True
"""
EITHER = "ModelProto | OpenVINOModel"
RESULTS = {
    "splitgraph.infer(proto).model": "ModelProto",
    "splitgraph.upgrade(proto, 18).model": "ModelProto",
    "splitgraph.downgrade(proto, 11).model": "ModelProto",
    "splitgraph.convert(proto, 'split').model": "ModelProto",
    "splitgraph.infer('m.onnx').model": EITHER,
    "splitgraph.upgrade('m.onnx', 18).model": EITHER,
    "splitgraph.downgrade(path, 11).model": EITHER,
    "splitgraph.convert(path, opset=18).model": EITHER,
    "splitgraph.infer(graph).model": "gs.Graph",
    "splitgraph.upgrade(graph, 18).model": "gs.Graph",
    "splitgraph.infer(openvino_ir).model": "OpenVINOModel",
    "splitgraph.convert(openvino_ir, 'variadic-split').model": "OpenVINOModel",
    "splitgraph.infer(model).model": "onnx_ir.Model",
    "splitgraph.downgrade(model, 11).model": "onnx_ir.Model",
    "splitgraph.upgrade(either, 18).model": EITHER,
    # By name, and with every option.
    "splitgraph.infer(model=proto, bind={'N': 4}, input_shapes={'x': [1, 'N', None]}).model": "ModelProto",
    "splitgraph.upgrade(model=model, opset=18).model": "onnx_ir.Model",
    "splitgraph.downgrade(opset=11, model='m.onnx', ir_version='keep').model": EITHER,
    "splitgraph.convert(model=graph, to=None, opset=18, explicit_lengths=True, rtol=1e-3).model": "gs.Graph",
    "splitgraph.upgrade(proto, 18, verify=True, samples=1, engine='reference')": "Rewrite[ModelProto]",
    "splitgraph.infer(path).splits[0].axis": "int | None",
    "splitgraph.load(path)": EITHER,
    "splitgraph.verify(proto, 'm.xml').verdict": "Literal['equal', 'different', 'not-run']",
    "splitgraph.diff(graph, 'm.onnx').nodes[0].before": "NodeForm | None",
    "splitgraph.diff(proto, path).values[0].after": "ValueType | None",
    "splitgraph.save(model, path)": "None",
    "splitgraph.save(splitgraph.upgrade(path, 18).model, path)": "None",
    # A path to ONNX needs no cast.
    "splitgraph.infer('m.onnx').onnx_model": "ModelProto",
    "splitgraph.upgrade(path, 18).onnx_model": "ModelProto",
    "splitgraph.infer(path).onnx_model.graph.node[0].op_type": "str",
    "splitgraph.infer(graph).onnx_model": "ModelProto",
    "splitgraph.blockers(path, 13).reachable": "int | Mapping[str, int] | None",
    "splitgraph.blockers(path, 13)[0].node": "str | None",
    "splitgraph.find_target('mnn')": "splitgraph.Target",
    "splitgraph.report(proto, before=path)": "str",
    "next(splitgraph.map_models('infer', 'models/'))": "splitgraph.Outcome",
    # An annotation need not say which kind.
    "rewrite.model": "Any",
    "analysis.model": "Any",
    "splitgraph.upgrade(anything, 18).model": "Any",
}
WRONG = {
    "a number": ("splitgraph.infer(42)", "call-overload"),
    "bytes": ("splitgraph.infer(b'onnx')", "call-overload"),
    "nothing": ("splitgraph.upgrade(None, 18)", "call-overload"),
    "a graph of a model": ("splitgraph.infer(proto.graph)", "call-overload"),
    "a function of onnx_ir": ("splitgraph.infer(function)", "call-overload"),
    "a graph of onnx_ir": ("splitgraph.convert(model.graph, 'split')", "call-overload"),
    "no opset": ("splitgraph.upgrade(proto)", "call-overload"),
    "an opset as text": ("splitgraph.upgrade(proto, '18')", "call-overload"),
    "a form that does not exist": ("splitgraph.convert(proto, 'slices')", "call-overload"),
    "an engine that does not exist": ("splitgraph.downgrade(proto, 11, engine='magic')", "call-overload"),
    "an option of another verb": ("splitgraph.upgrade(proto, 18, explicit_lengths=True)", "call-overload"),
    "an option by position": ("splitgraph.upgrade(proto, 18, 9)", "call-overload"),
    "a bound that is no number": ("splitgraph.infer(proto, bind={'N': 'four'})", "dict-item"),
    "a verb that map_models has not": ("splitgraph.map_models('report', 'models/')", "arg-type"),
    "a verb that does not exist": ("splitgraph.upgrad(proto, 18)", "attr-defined"),
    "a path to save": ("splitgraph.save('m.onnx', path)", "arg-type"),
    "a number to verify": ("splitgraph.verify(proto, 42)", "arg-type"),
    "a number to compare": ("splitgraph.diff(proto, 42)", "arg-type"),
    "the graph of what may be an IR": ("splitgraph.infer(path).model.graph.node", "union-attr"),
    "what an onnx_ir.Model has not": ("splitgraph.upgrade(model, 18).model.opset_import", "attr-defined"),
    "the result of one kind for another": ("wrong: Rewrite[ModelProto] = splitgraph.upgrade(model, 18)", "arg-type"),
}
# Each line, and the error that mypy must find in it.
LINES = {
    **{text: (f"assert_type({text}, {kind})", "") for text, kind in RESULTS.items()},
    **WRONG,
}
FIRST = START.lstrip().count("\n") + 1


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[int, set[str]]:
    """The codes of the errors that mypy finds in each line of the program."""
    folder = tmp_path_factory.mktemp("typed")
    (folder / "mypy.ini").write_text(CONFIGURATION)
    (folder / "program.py").write_text(START.lstrip() + "".join(f"    {line}\n" for line, _ in LINES.values()))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir=cache", "--python-version=3.10", "--no-pretty", "program.py"],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    codes: dict[int, set[str]] = defaultdict(set)
    for line, code in re.findall(r"^program\.py:(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.MULTILINE):
        codes[int(line)].add(code)
    return codes


# mypy reads the whole package first.
@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), list(enumerate(code for _, code in LINES.values())), ids=LINES)
def test_line(number: int, code: str, found: dict[int, set[str]]) -> None:
    assert found.get(FIRST + number, set()) == {code} - {""}


@pytest.mark.slow
def test_nothing_else_is_wrong(found: dict[int, set[str]]) -> None:
    """The imports, and annotations that do not say which kind."""
    assert [line for line in found if line < FIRST] == []


OPTIONS = {
    "infer": keywords.InferOptions,
    "upgrade": keywords.RewriteOptions,
    "downgrade": keywords.RewriteOptions,
    "convert": keywords.ConvertOptions,
    "reshape": keywords.ReshapeOptions,
}


@pytest.fixture
def in_python(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """Returns the parameters of a verb with their types, the models apart."""
    # For type checkers only, like the options themselves.
    monkeypatch.setattr(options, "Dim", Dim, raising=False)

    def typed_parameters(verb: str) -> dict[str, Any]:
        parameters = inspect.signature(getattr(splitgraph, verb)).parameters.values()
        models = ("model", "before", "after")
        texts = {known.name: known.annotation for known in parameters if known.name not in models}
        return get_type_hints(SimpleNamespace(__annotations__=texts), vars(options))

    return typed_parameters


Typed = Callable[[str], dict[str, Any]]


@pytest.mark.parametrize(("verb", "typed"), OPTIONS.items(), ids=OPTIONS)
def test_type_checkers_know_every_option(verb: str, typed: type, in_python: Typed) -> None:
    """They stand in the signature for Python, and once more for type checkers: with the same types."""
    of = inspect.signature(getattr(splitgraph, verb)).parameters
    expected = {name: kind for name, kind in in_python(verb).items() if of[name].kind == of[name].KEYWORD_ONLY}
    assert get_type_hints(typed) == expected


def alternatives(kind: Any) -> set[Any]:
    return set(get_args(kind)) if get_origin(kind) in (Union, UnionType) else {kind}


def test_type_checkers_know_every_option_of_many_models(in_python: Typed) -> None:
    """Those of each verb with every type that a verb takes, but what `map_models` says itself; and how results are
    written.
    """
    own = set(inspect.signature(splitgraph.map_models).parameters)
    expected: dict[str, set[Any]] = defaultdict(set)
    for verb in (*OPTIONS, "check", "verify"):
        for name, kind in in_python(verb).items():
            expected[name] |= alternatives(kind)
    found = {name: alternatives(kind) for name, kind in get_type_hints(keywords.MapOptions).items()}
    writing = {"force", "external_data", "skip_newer"}
    assert {name: kinds for name, kinds in found.items() if name not in writing} == {
        name: kinds for name, kinds in expected.items() if name not in own
    }
    assert writing <= set(found)


# What a function is asked to do, and not how.
ASKED = {"run", "between"}
RECORDS = (options.Sizes, options.NewSizes, options.Leeway, options.Converting, options.Running, options.Output)


def test_every_keyword_is_a_field_of_a_record() -> None:
    """The command line makes its options from these records."""
    typed = (*OPTIONS.values(), keywords.MapOptions)
    names = {name for each in typed for name in each.__annotations__}
    assert names - ASKED == names & {name for record in RECORDS for name in record._fields}


def test_the_model_can_be_given_by_name() -> None:
    for verb in OPTIONS:
        first = next(iter(inspect.signature(getattr(splitgraph, verb)).parameters.values()))
        assert (first.name, first.kind) == ("model", first.POSITIONAL_OR_KEYWORD)


def test_the_package_says_that_it_has_types() -> None:
    assert (ROOT / "splitgraph" / "py.typed").exists()
