"""Declared shapes that a rewrite must not keep.

Runtimes and conversions go by what nodes compute, so a wrong declaration beside a node that stays does no harm, and it
stays. It does harm beside nodes that replace another one: inference may know less of them, and would believe it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from splitgraph.dim import Dim, DimLike, marks_unknown, symbols_of
from splitgraph.findings.diagnostics import Diagnostic, abridged, diagnostic
from splitgraph.inference import Walked, walk_model
from splitgraph.model.onnx_proto import GraphProto, ModelProto, TensorShapeProto, ValueInfoProto
from splitgraph.model.scopes import graph_at, scopes
from splitgraph.model.value_type import UNKNOWN, ValueType
from splitgraph.model.values import value_type, write_dim
from splitgraph.options import Leeway

# The end of a warning about a declared shape that does not stay.
CORRECTED = "the result declares only what is inferred"
_MOST_NAMED = 5


class Belief(NamedTuple):
    """What of a declared shape stays without a proof.

    inputs: the names of dimensions that the inputs of the model declare. names: declared names stay, which say nothing
    to runtimes. unknown: what is declared of an unknown dimension stays.
    """

    inputs: frozenset[str]
    names: bool = False
    unknown: bool = False

    def is_known(self, dim: DimLike | None) -> bool:
        """Return True for a number, and for a dimension in the names of the model's inputs."""
        return dim is not None and (not isinstance(dim, Dim) or symbols_of(dim) <= self.inputs)


def correct_shapes(
    graph: GraphProto, known: Mapping[str, ValueType], belief: Belief
) -> Iterator[tuple[ValueInfoProto, ValueType]]:
    """Take from the declared shapes of some values what inference does not give; yield each of them that changes, and
    its declared type before. known: the inferred types of these values.
    """
    for value in (*graph.value_info, *graph.output):
        inferred = known.get(value.name)
        # Shapes in sequences are rare, and nothing is made of them.
        if inferred is None or not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
            continue
        declared = value_type(value.type)
        if _correct(value.type.tensor_type, inferred.shape, belief):
            yield value, declared


def _correct(declared: Any, inferred: Sequence[DimLike | None] | None, belief: Belief) -> bool:
    if inferred is None:
        if not belief.unknown:
            declared.ClearField("shape")
        return not belief.unknown
    if len(inferred) != len(declared.shape.dim):
        declared.ClearField("shape")
        _declare(declared, inferred, belief)
        return True
    wrong = [pair for pair in zip(declared.shape.dim, inferred, strict=True) if not _holds(*pair, belief)]
    for entry, dim in wrong:
        entry.ClearField("value")
        write_dim(dim if belief.is_known(dim) else None, entry)
    return bool(wrong)


def _holds(entry: TensorShapeProto.Dimension, inferred: DimLike | None, belief: Belief) -> bool:
    """Return True if a declared dimension says nothing, or what is inferred."""
    if belief.unknown and not belief.is_known(inferred):
        return True
    if entry.HasField("dim_value"):
        return entry.dim_value < 0 or entry.dim_value == inferred
    return belief.names or marks_unknown(entry.dim_param) or entry.dim_param == str(inferred)


def declare_results_of_scans(model: ModelProto, walked: Walked, belief: Belief) -> None:
    """Declare the shapes of what bodies of Scan give, where the model declares none: onnxruntime runs no Scan without,
    and infers none of some older versions of operators, such as LessOrEqual-12. walked: the inference of the model.
    """
    # The walk knows bodies of called functions besides, at the place of each call.
    for path, detail in ((scope.path, walked.graphs.get(scope.path)) for scope in scopes(model)):
        if detail is None or path[-2:-1] != ("body",) or graph_at(model, path[:-3]).node[path[-3]].op_type != "Scan":
            continue
        for value in graph_at(model, path).output:
            shape, declared = detail.types.get(value.name, UNKNOWN).shape, value.type.tensor_type
            if shape is not None and value.type.HasField("tensor_type") and not declared.HasField("shape"):
                _declare(declared, shape, belief)


def _declare(declared: Any, shape: Sequence[DimLike | None], belief: Belief) -> None:
    # A scalar has a shape without dimensions.
    declared.shape.SetInParent()
    for dim in shape:
        write_dim(dim if belief.is_known(dim) else None, declared.shape.dim.add())


def dimensions_of_inputs(model: ModelProto) -> frozenset[str]:
    """Return the names of dimensions that the inputs of a model declare."""
    tensors = (value.type.tensor_type for value in model.graph.input)
    return frozenset(dim.dim_param for tensor in tensors for dim in tensor.shape.dim if dim.dim_param)


def correction_finding(name: str, declared: ValueType, inferred: ValueType, location: str) -> Diagnostic:
    """Return the warning about an output of a graph that the result declares in another way."""
    text = f"{name!r} is declared as {declared}, but inferred as {inferred}; {CORRECTED}"
    return diagnostic("SG301", text, location, severity="warning")


def corrected_result(
    model: ModelProto, source: ModelProto | None, leeway: Leeway
) -> tuple[ModelProto, Diagnostic] | None:
    """Return a copy of the result of a rewrite that declares only shapes that its nodes compute, and a warning; None if
    nothing is wrong with the declarations, or something else is wrong, too.

    The types of inputs stay. So does a declared shape that the nodes of the source compute: where the result
    contradicts it, a node of the result is wrong and not the declaration. source: None if it is not there any more.
    """
    computed = walk_model(model, leeway, believes_shapes=False)
    if _has_errors(computed):
        return None
    right = frozenset[str]() if source is None else _rightly_declared(source, leeway)
    copy = ModelProto()
    copy.CopyFrom(model)
    belief, corrected = Belief(dimensions_of_inputs(model)), list[str]()
    for scope in scopes(copy):
        detail = computed.graphs.get(scope.path)
        if scope.is_function or detail is None:
            continue
        names = [name for node in scope.nodes for name in node.output if name and name not in right]
        types = {name: detail.types.get(name, UNKNOWN) for name in names}
        corrected += [value.name for value, _ in correct_shapes(scope.proto, types, belief)]
    if not corrected or _has_errors(walk_model(copy, leeway)):
        return None
    return copy, _corrections_finding(list(dict.fromkeys(corrected)))


def _has_errors(walked: Walked) -> bool:
    return any(finding.severity == "error" for finding in (*walked.diagnostics, *walked.misdeclared))


def _rightly_declared(model: ModelProto, leeway: Leeway) -> frozenset[str]:
    """Return the values whose declared shapes inference gives without believing any."""
    bare, right = walk_model(model, leeway, believes_shapes=False), set[str]()
    for scope in bare.scopes:
        detail = bare.graphs.get(scope.path)
        if scope.is_function or detail is None:
            continue
        for value in (*scope.proto.value_info, *scope.proto.output):
            inferred = detail.types.get(value.name, UNKNOWN)
            if inferred.shape is not None and value_type(value.type).shape == inferred.shape:
                right.add(value.name)
    return frozenset(right)


def _corrections_finding(names: list[str]) -> Diagnostic:
    named = ", ".join(abridged(repr(name)) for name in names[:_MOST_NAMED])
    more = f" and of {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    text = f"the declared shapes of {named}{more} do not all hold together with what the nodes compute; {CORRECTED}"
    return diagnostic("SG301", text, "main", severity="warning")


def with_corrections(
    notes: Collection[Diagnostic], corrected: Mapping[str, Diagnostic | None], kept: str
) -> list[Diagnostic]:
    """Return notes in which a wrong declaration that does not stay is not said to stay. corrected: names of values,
    with a warning for each output of a graph. kept: the end of a note about a declaration that stays.
    """
    told = list[Diagnostic]()
    for note in notes:
        gone = [name for name in corrected if note.message.startswith(f"{name!r} is declared")]
        if gone and note.message.endswith(kept):
            note = replace(note, message=f"{note.message.removesuffix(kept)}; {CORRECTED}")
            corrected = {name: more for name, more in corrected.items() if name not in gone}
        told.append(note)
    return [*told, *(more for more in corrected.values() if more is not None)]
