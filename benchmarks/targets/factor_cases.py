"""Cases of one factor for each operator, as exporters write its node, and a control for each case.

    python benchmarks/targets/factor_cases.py FOLDER [OPERATOR ...]

A case is called OPERATOR-VERSION.NUMBER.CHANGE.FAMILY; number 0 is the base of its family. Every version has its base;
one version of each meaning has all changes (`chains.py`). What differs between a case and its base is read from the
models: a change without a difference is told and left out. `FOLDER/controls` has the same models without the node: a
case that fails says something of the node only if its control runs.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from case_graph import DOMAIN_VERSION, CaseGraph
from cases import write_case
from chains import OLDEST, fully_measured, known_versions
from factor_recipes import SHAPES, Recipe
from factor_recipes_of_elements import ELEMENTS
from factor_recipes_of_exports import EXPORTS
from factor_recipes_of_graphs import GRAPHS
from factor_recipes_of_indices import INDICES
from factor_recipes_of_layers import LAYERS
from factor_recipes_of_ml import ML
from onnx import ModelProto, TensorProto, helper, numpy_helper

sys.path[:0] = [str(Path(__file__).parents[2])]

import splitgraph  # noqa: E402, the folder above is on the path only now
from splitgraph.options import STRICT  # noqa: E402
from splitgraph.runtimes.check import examine  # noqa: E402
from splitgraph.runtimes.node_traits import Kind  # noqa: E402

Array = np.ndarray[Any, Any]
RECIPES = [*SHAPES, *ELEMENTS, *LAYERS, *GRAPHS, *EXPORTS, *INDICES, *ML]
SUBJECT = "subject"
# The changes of data that is a constant, or computed from constants; in these families of cases.
CONSTANT: Sequence[Mapping[str, Any]] = ({"data": "folded"}, {"data": "init"})
_WITH_DATA = frozenset({"", "data", "linear"})
# The reference evaluator gives versions of these before an opset the meaning that they have from it on, or takes a
# node that is to use its statistics for one that is to learn them.
_RIGHT_SINCE = {"Softmax": 13, "LogSoftmax": 13, "Hardmax": 13, "BatchNormalization": 14}


def write(folder: Path, operators: Sequence[str] = ()) -> dict[str, int]:
    """Write the cases and controls of these operators, or of all; returns how many there are of each version."""
    controls = folder / "controls"
    controls.mkdir(parents=True, exist_ok=True)
    counts: dict[str, int] = {}
    for recipe in RECIPES:
        if operators and f"{recipe.domain}.{recipe.operator}".lstrip(".") not in operators:
            continue
        for label, opset, changes in _versions(recipe):
            seen: set[Kind] = set()
            more = CONSTANT if changes and recipe.family in _WITH_DATA else []
            for number, change in enumerate(({}, *changes, *more)):
                said = _said(change)
                made = _case(recipe, opset, change)
                if isinstance(made, str):
                    print(f"{label} {recipe.family} {said}: {made}", flush=True)
                    if not number:
                        break
                    continue
                model, graph, expected, kind = made
                if kind in seen:
                    print(f"{label} {recipe.family} {said}: no factor differs", flush=True)
                    continue
                seen.add(kind)
                name = f"{label}.{counts.get(label, 0):03}.{said}.{recipe.family or 'plain'}"
                write_case(folder, name, model.SerializeToString(), graph.feeds(), expected)
                control, feeds, values = _control(graph, expected)
                write_case(controls, name, control.SerializeToString(), feeds, values)
                counts[label] = counts.get(label, 0) + 1
    return counts


def _versions(recipe: Recipe) -> Iterator[tuple[str, int, Sequence[Mapping[str, Any]]]]:
    """The versions of an operator that a recipe builds: its label, its opset, and the changes that it is measured
    with.
    """
    if recipe.domain:
        yield f"{recipe.domain}.{recipe.operator}-{DOMAIN_VERSION}", recipe.at, recipe.changes
        return
    full = fully_measured(recipe.operator)
    newer = 99
    for version in reversed(known_versions(recipe.operator)):
        opset = max(version.since_version, OLDEST, recipe.at if recipe.at < newer else 0)
        newer = version.since_version
        if recipe.since <= opset <= recipe.until:
            changes = recipe.changes if version.since_version in full else ()
            yield f"{recipe.operator}-{version.since_version}", opset, changes


def _said(change: Mapping[str, Any]) -> str:
    """The name of a change as a part of a file's name."""
    text = " ".join(f"{name}={value}" for name, value in change.items()) or "base"
    return "".join(each if each.isalnum() or each in "=-_ " else "" for each in text.replace(", ", "x")).replace(
        " ", "_"
    )


Case = tuple[ModelProto, CaseGraph, dict[str, Array], Kind]


def _case(recipe: Recipe, opset: int, change: Mapping[str, Any]) -> Case | str:
    """A case with what it computes, and its factors; or why there is none."""
    graph = CaseGraph(opset, recipe.domain)
    is_constant = any(change is each for each in CONSTANT)
    graph.constant_data = change["data"] if is_constant else ""
    try:
        recipe.build(graph, **({} if is_constant else change))
        model = _declared(graph.model())
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:
        # The change is not valid at this opset: that is told, and it is no case.
        return f"invalid: {' '.join(str(error).split())[:160]}"
    kind = factors_of(model)
    asks = opset >= _RIGHT_SINCE.get(recipe.operator, 0)
    results = computed(model, graph.feeds(), [*graph.outputs, *_results(graph)], asks_reference=asks)
    if results is None:
        return "engines contradict each other, or none runs it"
    graph_values = dict(zip([*graph.outputs, *_results(graph)], results, strict=True))
    graph.values = graph_values
    # Numbers that were rounded to half precision are compared as such.
    is_half = any("float16" in value for _, value in kind)
    expected = {name: graph_values[name] for name in graph.outputs}
    return (
        model,
        graph,
        {name: array.astype(np.float16) if is_half else array for name, array in expected.items()},
        kind,
    )


def factors_of(model: ModelProto) -> Kind:
    """The factors of the node that a case is about."""
    return next(node.factors for node in examine(model, STRICT).nodes if node.node.name == SUBJECT)


def _declared(model: ModelProto) -> ModelProto:
    """The model with the shapes of its outputs declared, as exporters do."""
    found = {value.name: value for value in splitgraph.infer(model).model.graph.output}
    for value in model.graph.output:
        value.CopyFrom(found[value.name])
    return model


def _results(graph: CaseGraph) -> list[str]:
    """The outputs of the node that something reads."""
    assert graph.subject is not None
    read = {name for node in graph.nodes for name in node.input}
    return [name for name in graph.subject.output if name in read]


def _control(graph: CaseGraph, expected: Mapping[str, Array]) -> tuple[ModelProto, dict[str, Array], dict[str, Array]]:
    """The model without the node: its numbers are inputs; its sizes, and what it makes of constants, are constants."""
    assert graph.subject is not None
    made = graph.model()
    nodes = [node for node in made.graph.node if node.name != SUBJECT]
    feeds, values = dict(graph.feeds()), dict(expected)
    constants = {*graph.constants, *(node.output[0] for node in nodes if node.op_type == "Constant"), ""}
    is_constant = constants.issuperset(graph.subject.input)
    for name in {*graph.outputs} & {*graph.subject.output}:
        # A result that the graph returns is given through an Add: of some runtimes, no input is an output.
        feeds[f"{name}_given"] = array = graph.values[name]
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        made.graph.input.append(helper.make_tensor_value_info(f"{name}_given", kind, array.shape))
        made.graph.initializer.append(numpy_helper.from_array(np.zeros((), array.dtype), f"{name}_zero"))
        nodes.append(helper.make_node("Add", [f"{name}_given", f"{name}_zero"], [name], name=f"n_{name}"))
    for name in _results(graph):
        array = graph.values[name]
        if isinstance(array, list):
            nodes.insert(0, _put_together(made, name, array, feeds))
        elif not is_constant and (array.dtype.kind == "f" or array.ndim > 1 or array.dtype == bool):
            feeds[name] = array
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            made.graph.input.append(helper.make_tensor_value_info(name, kind, array.shape))
        else:
            made.graph.initializer.append(numpy_helper.from_array(array, name))
    # What only the node reads is an output, so that it has to be computed.
    read = {name for node in nodes for name in node.input}
    for node in nodes:
        name = node.output[0]
        if name not in read and name not in values and node.op_type == "Add" and name in graph.subject.input:
            array = _value(graph, name)
            if array is not None and array.dtype == np.float32:
                values[name] = array
                made.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, array.shape))
    nodes = _needed(nodes, values)
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    used = {name for node in nodes for name in node.input}
    for held in (made.graph.input, made.graph.initializer):
        for each in [each for each in held if each.name not in used]:
            held.remove(each)
    return _declared(made), {value.name: feeds[value.name] for value in made.graph.input}, values


def _put_together(made: ModelProto, name: str, parts: Sequence[Array], feeds: dict[str, Array]) -> onnx.NodeProto:
    """The sequence of these tensors, each an input of the model."""
    names = [f"{name}_{number}" for number in range(len(parts))]
    for each, part in zip(names, parts, strict=True):
        feeds[each] = part
        kind = helper.np_dtype_to_tensor_dtype(part.dtype)
        made.graph.input.append(helper.make_tensor_value_info(each, kind, part.shape))
    return helper.make_node("SequenceConstruct", names, [name], name=f"n_{name}")


def _needed(nodes: Sequence[onnx.NodeProto], outputs: Mapping[str, Array]) -> list[onnx.NodeProto]:
    """The nodes that the outputs depend on."""
    wanted, kept = set(outputs), []
    for node in reversed(nodes):
        if wanted & set(node.output):
            kept.append(node)
            wanted.update(node.input)
    return kept[::-1]


def _value(graph: CaseGraph, name: str) -> Array | None:
    """What an Add in front of the node gives."""
    node = next(node for node in graph.nodes if name in node.output)
    arrays = [graph.feeds().get(each, graph.constants.get(each)) for each in node.input]
    return None if any(array is None for array in arrays) else np.asarray(arrays[0] + arrays[1])  # type: ignore[operator]


# What counts ----------------------------------------------------------------------------------------------------------


def computed(
    model: ModelProto, feeds: Mapping[str, Array], wanted: Sequence[str], *, asks_reference: bool = True
) -> list[Any] | None:
    """What engines compute of these values, a list for a sequence; None where they contradict each other or none runs
    the model.
    """
    import onnxruntime
    from onnx.reference import ReferenceEvaluator

    made = ModelProto()
    made.CopyFrom(model)
    known = {value.name for value in made.graph.output}
    more = [name for name in wanted if name not in known]
    made.graph.output.extend(onnx.ValueInfoProto(name=name) for name in more)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    found: list[list[Array]] = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        # Whatever an engine raises, the other one is asked.
        with contextlib.suppress(Exception):
            session = onnxruntime.InferenceSession(made.SerializeToString(), options)
            found.append(session.run(list(wanted), dict(feeds)))
        with contextlib.suppress(Exception):
            if asks_reference:
                found.append(ReferenceEvaluator(made).run(list(wanted), dict(feeds)))
    if not found or not all(_agree(found[0], each) for each in found):
        return None
    return [each if isinstance(each, list) else np.asarray(each) for each in found[0]]


def _agree(found: Sequence[Any], wanted: Sequence[Any]) -> bool:
    return all(map(_is_close, found, wanted))


def _is_close(found: Any, wanted: Any) -> bool:
    if isinstance(found, list) or isinstance(wanted, list):
        return len(found) == len(wanted) and _agree(found, wanted)
    if np.shape(found) != np.shape(wanted):
        return False
    allowed = 3e-2 if "float16" in (str(np.asarray(found).dtype), str(np.asarray(wanted).dtype)) else 2e-3
    return bool(np.allclose(np.asarray(found, float), np.asarray(wanted, float), allowed, allowed, equal_nan=True))


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    written = write(Path(sys.argv[1]), sys.argv[2:])
    print(f"{sum(written.values())} cases of {len(written)} operator versions in {sys.argv[1]}")
