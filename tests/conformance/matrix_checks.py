"""What must hold of every conversion in the matrix; each check gives what is wrong, or nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import onnx

import splitgraph
from splitgraph.conversion.rewrite import Rewrite
from splitgraph.verification.reference.evaluator import load, run

from .matrix_models import COMPUTED_PARTS, RUN_TIME_PARTS, Case, Feeds

Outputs = list[dict[str, np.ndarray]]


def convert(model: onnx.ModelProto, source: int, target: int) -> Rewrite:
    """The model at another opset."""
    verb = splitgraph.upgrade if target >= source else splitgraph.downgrade
    return verb(model, target)


def execute(model: onnx.ModelProto, feeds: Sequence[Feeds]) -> Outputs:
    """The outputs by name for each set of inputs, from the reference evaluator with strict kernels."""
    loaded = load(model)
    names = [value.name for value in model.graph.output]
    return [dict(zip(names, run(loaded, given), strict=True)) for given in feeds]


def differences(expected: Outputs, found: Outputs) -> Iterator[str]:
    """Where two executions differ: name, type, shape or value."""
    for turn, (want, have) in enumerate(zip(expected, found, strict=True)):
        if list(want) != list(have):
            yield f"outputs {list(have)} instead of {list(want)}"
            continue
        for name, array in want.items():
            other = have[name]
            if array.dtype != other.dtype or array.shape != other.shape or not np.array_equal(array, other):
                yield f"run {turn}: {name} is {other.dtype}{other.shape} instead of {array.dtype}{array.shape}"


def may_be_refused(case: Case, target: int) -> bool:
    """Whether a refusal is right: upward only Split-1 sizes that run time gives; downward only below opset 11."""
    if target == case.opset:
        return False
    if target > case.opset:
        return case.version == 1 and has_run_time_lengths(case)
    if target >= 11:
        return False
    # Scan was another operator before opset 9; before 11 the branches of an If had to be of the same shape.
    if (case.scope == "scan" and target < 9) or (case.scope == "if" and case.opset >= 11):
        return True
    return not has_static_form(case)


def has_run_time_lengths(case: Case) -> bool:
    """Whether the lengths are, for the graph that the split is in, known only at run time."""
    if case.parts in RUN_TIME_PARTS:
        return True
    # An initializer reaches a function as an argument, which another call could give differently.
    return case.parts == "initializer" and case.scope == "function"


def has_static_form(case: Case) -> bool:
    """Whether the split can be written without lengths at run time, so that no opset may refuse it."""
    if case.parts in RUN_TIME_PARTS:
        return False
    if case.parts in COMPUTED_PARTS or case.parts == "num_outputs":
        return case.shape == "static"
    return not has_run_time_lengths(case)


def unsound(before: onnx.ModelProto, after: onnx.ModelProto, target: int) -> Iterator[str]:
    """What is wrong with a converted model in itself, or with what it kept of the original."""
    try:
        onnx.checker.check_model(after, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        yield f"checker: {str(error).splitlines()[0][:300]}"
    versions = {entry.domain: entry.version for entry in after.opset_import}
    if versions.get("", versions.get("ai.onnx")) != target:
        yield f"opset import is {versions}"
    yield from repeated_names(after)
    yield from unused_values(before, after)
    yield from lost_documentation(before, after)


def graphs(model: onnx.ModelProto) -> Iterator[onnx.GraphProto | onnx.FunctionProto]:
    """Every graph and function body of a model."""
    for root in (model.graph, *model.functions):
        yield from within(root)


def within(root: onnx.GraphProto | onnx.FunctionProto) -> Iterator[onnx.GraphProto | onnx.FunctionProto]:
    """A graph or function body and every graph in it."""
    waiting = [root]
    while waiting:
        graph = waiting.pop()
        yield graph
        waiting += [attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")]


def repeated_names(model: onnx.ModelProto) -> Iterator[str]:
    """Names that are defined, or that nodes have, more than once in the main graph or a function, bodies included."""
    for root in (model.graph, *model.functions):
        values: Counter[str] = Counter()
        nodes: Counter[str] = Counter()
        for graph in within(root):
            nodes.update(node.name for node in graph.node if node.name)
            if isinstance(graph, onnx.GraphProto):
                values.update({*(value.name for value in graph.input), *(held.name for held in graph.initializer)})
            values.update(name for node in graph.node for name in node.output if name)
        for kind, counted in (("value", values), ("node", nodes)):
            yield from (f"{count} {kind}s are named {name!r}" for name, count in counted.items() if count > 1)


def unused_of(model: onnx.ModelProto) -> set[str]:
    """Initializers and outputs of nodes that nothing reads."""
    read, made = set(), set()
    for graph in graphs(model):
        for node in graph.node:
            read.update(node.input)
            if all(name not in node.output for name in graph.output):
                made.update(name for name in node.output if name)
        if isinstance(graph, onnx.GraphProto):
            made.update(tensor.name for tensor in graph.initializer)
            read.update(value.name for value in (*graph.output, *graph.input))
        else:
            read.update(graph.output)
    return made - read


def unused_values(before: onnx.ModelProto, after: onnx.ModelProto) -> Iterator[str]:
    """What the conversion left without a reader."""
    for name in sorted(unused_of(after) - unused_of(before)):
        # A part that the original leaves out is named, and read by nobody.
        if not re.fullmatch(r".*_part\d+", name):
            yield f"nothing reads {name!r} any more"


def lost_documentation(before: onnx.ModelProto, after: onnx.ModelProto) -> Iterator[str]:
    """Names, documentation and metadata of the original that are gone."""
    for field in ("doc_string", "producer_name", "domain", "model_version"):
        if getattr(before, field) != getattr(after, field):
            yield f"the model's {field} changed"
    if list(before.metadata_props) != list(after.metadata_props) or before.graph.doc_string != after.graph.doc_string:
        yield "the metadata of the model or the documentation of its graph changed"
    inputs, held = list(after.graph.input), {tensor.name for tensor in after.graph.initializer}
    count = len(before.graph.input)
    added = {value.name for value in inputs[count:]}
    if list(before.graph.input) != inputs[:count] or list(before.graph.output) != list(after.graph.output):
        yield "the inputs or outputs of the model changed"
    # Below IR version 4 every initializer is listed as an input.
    if added and (after.ir_version >= 4 or not added <= held):
        yield f"there are new inputs: {sorted(added)}"
    opsets = [entry.version for model in (before, after) for entry in model.opset_import if entry.domain == ""]
    if len(opsets) == 2 and opsets[1] > opsets[0] and after.ir_version < before.ir_version:
        yield "the IR version went down"
    if len(opsets) == 2 and opsets[1] < opsets[0] and after.ir_version > before.ir_version:
        yield "the IR version of a downgrade went up"
    if before.functions and not after.functions:
        # Functions that IR version 8 has first, or that stand in the way, are inlined: their nodes get new names.
        return
    kept = {node.name: node for graph in graphs(after) for node in graph.node if node.name}
    for graph in graphs(before):
        for node in graph.node:
            if not node.metadata_props:
                continue
            now = kept.get(node.name)
            if now is None:
                yield f"the node {node.name!r} is gone"
            elif now.doc_string != node.doc_string or author_metadata(now) != author_metadata(node):
                yield f"the documentation or metadata of {node.name!r} changed"
            elif next(filter(None, node.output), "") not in now.output:
                yield f"the outputs of {node.name!r} changed"


def author_metadata(node: onnx.NodeProto) -> list[tuple[str, str]]:
    """A node's metadata without splitgraph's own note of the form that a VariadicSplit came from."""
    return [(entry.key, entry.value) for entry in node.metadata_props if entry.key != "splitgraph.form"]


def bad_refusal(error: splitgraph.ConversionError) -> Iterator[str]:
    """What a refusal lacks: it names each blocker with a code, a place and what was found."""
    if not error.diagnostics:
        yield "refused without a diagnostic"
    for found in error.diagnostics:
        if not (found.code.startswith("SG4") and found.location and found.message):
            yield f"refused with {found}"


def check_conversion(
    case: Case, model: onnx.ModelProto, feeds: Sequence[Feeds], expected: Outputs, target: int
) -> list[str]:
    """Everything that is wrong with the conversion of a case's model to an opset."""
    original = model.SerializeToString(deterministic=True)
    try:
        rewrite = convert(model, case.opset, target)
    except splitgraph.ConversionError as error:
        wrong = list(bad_refusal(error))
        if not may_be_refused(case, target):
            wrong.append(f"refused: {error}")
        return wrong
    wrong = []
    if model.SerializeToString(deterministic=True) != original:
        wrong.append("the caller's model was changed")
    if target == case.opset:
        if rewrite.model.SerializeToString(deterministic=True) != original or rewrite.changes:
            wrong.append("a model at its own opset was changed")
        return wrong
    wrong += unsound(model, rewrite.model, target)
    if wrong:
        return wrong
    if target >= 9 or case.scope != "scan":
        wrong += differences(expected, execute(rewrite.model, feeds))
    return wrong


def check_return(
    case: Case, model: onnx.ModelProto, feeds: Sequence[Feeds], expected: Outputs, target: int
) -> list[str]:
    """What is wrong with a model that was converted to a newer opset, again to the same, and back."""
    up = convert(model, case.opset, target).model
    again = convert(up, target, target)
    wrong = []
    if again.changes or again.model != up:
        wrong.append("converting twice is not converting once")
    try:
        down = convert(up, target, case.opset).model
    except splitgraph.ConversionError as error:
        # Split-18 accepts more than equal parts, so its way down takes lengths at run time.
        way_back = replace(
            case, opset=target, parts="num_outputs" if target >= 18 and case.parts == "none" else case.parts
        )
        return wrong if may_be_refused(way_back, case.opset) else [*wrong, f"the way back is refused: {error}"]
    wrong += unsound(model, down, case.opset)
    return wrong or list(differences(expected, execute(down, feeds)))
