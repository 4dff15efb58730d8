"""Writing SplitToSequence as Split or slices, where all readers use known positions or join the whole sequence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace

from splitgraph.conversion.builders import Emission, axes_node, new_emission
from splitgraph.conversion.plan import Plan, opset_of, started_roots
from splitgraph.conversion.splits.lower import SplitNode, lower_split
from splitgraph.findings.diagnostics import diagnostic
from splitgraph.inference import Walked
from splitgraph.inference.walk_results import GraphDetail, SplitDetail
from splitgraph.model.attributes import attribute_value, make_attribute, make_node
from splitgraph.model.deferred import helper
from splitgraph.model.names import Definitions, FreshNames, used_names
from splitgraph.model.onnx_proto import ModelProto, NodeProto, TensorProto
from splitgraph.model.scopes import GraphPath, Scope, node_label
from splitgraph.model.value_type import MAX_ITEMS
from splitgraph.splits import Variant, variant_at
from splitgraph.splits.canonical import CanonicalSplit, SplitForm

# A node: the path of its graph, and its index there.
Place = tuple[GraphPath, int]
# What a split becomes at an opset; None where the operator does not exist there.
TargetAt = Callable[[int], "Variant | None"]

SEQUENCES_EXIST_FROM = 11


@dataclass(frozen=True, slots=True)
class Reader:
    """A node that reads the sequence, and the position that it reads (None: the whole sequence)."""

    scope: Scope
    index: int
    node: NodeProto
    position: int | None


def plain_split_at(opset: int) -> Variant | None:
    """Return the version of Split at an opset."""
    return variant_at("Split", opset)


def plan_plain_splits(model: ModelProto, walked: Walked) -> Plan | None:
    """Return the plan that replaces SplitToSequence by Split for an opset without sequences, where its readers allow
    that; None where nothing changes.
    """
    details = (split for graph in walked.graphs.values() for split in graph.splits.values())
    if not any(split.variant.op_type == "SplitToSequence" for split in details):
        return None
    why = f"below opset {SEQUENCES_EXIST_FROM} there are no sequences"
    plan, names = Plan(), FreshNames(used_names(model, walked.scopes))
    for root in started_roots(plan, model, walked):
        plan_sequences(plan, model, walked, root, names, why)
    return plan if plan.edits and not plan.blockers else None


def plan_sequences(
    plan: Plan,
    model: ModelProto,
    walked: Walked,
    root: Sequence[Scope],
    names: FreshNames,
    why: str,
    target_at: TargetAt = plain_split_at,
    *,
    explicit_lengths: bool = False,
    only: Container[Place] | None = None,
) -> None:
    """Plan the conversion of every SplitToSequence whose readers allow it; the others are kept, with a note that says
    why. why: the reason of the changes. target_at: what a sequence becomes at an opset. only: the nodes to convert, by
    path of the graph and index; None for all.
    """
    values: _SequenceUses | None = None
    for scope in root:
        details: GraphDetail = walked.graphs.get(scope.path) or GraphDetail()
        for index, detail in details.splits.items():
            if detail.variant.op_type != "SplitToSequence" or (only is not None and (scope.path, index) not in only):
                continue
            node = scope.nodes[index]
            location = f"{scope.location}/{node_label(node, index)}"
            values = values or _SequenceUses(root)
            readers = _readers(walked, values, scope, node, detail)
            if isinstance(readers, str):
                plan.notes.append(diagnostic("SG408", f"kept as a sequence: {readers}", location, severity="info"))
                continue
            variant = target_at(opset_of(scope.imports))
            if variant is not None:
                _plan_sequence(plan, model, scope, index, detail, readers, names, why, variant, explicit_lengths)


class _SequenceUses:
    """Where the values of a root are defined and read: looked up once for each of many sequences."""

    def __init__(self, root: Sequence[Scope]) -> None:
        self._definitions = Definitions(root)
        # By name, the graphs of the root that read a value, or return it, with the nodes that do.
        self._reading: defaultdict[str, dict[int, list[int]]] = defaultdict(dict)
        self._returning: defaultdict[str, set[int]] = defaultdict(set)
        self._root = root
        for place, scope in enumerate(root):
            outputs = scope.proto.output if scope.is_function else [value.name for value in scope.proto.output]
            for name in outputs:
                self._returning[name].add(place)
            for index, node in enumerate(scope.nodes):
                for name in dict.fromkeys(node.input):
                    self._reading[name].setdefault(place, []).append(index)

    def readers_of(self, name: str, scope: Scope) -> Iterator[tuple[Scope, bool, Sequence[int]]]:
        """Yield each graph that uses a value of a graph: whether it returns the value, and the nodes that read it."""
        reading, returning = self._reading.get(name, {}), self._returning.get(name, set())
        for place in sorted({*reading, *returning}):
            inner = self._root[place]
            if self._definitions.home(inner.path, name) == scope.path:
                yield inner, place in returning, reading.get(place, ())


def _drops_axis(node: NodeProto) -> bool:
    """Return True for a node with keepdims=0, or with a keepdims that the enclosing function gives."""
    return any(attribute.name == "keepdims" and attribute_value(attribute) != 1 for attribute in node.attribute)


def _readers(
    walked: Walked, values: _SequenceUses, scope: Scope, node: NodeProto, detail: SplitDetail
) -> list[Reader] | str:
    """Return the nodes that read the sequence, or the reason why it must stay a sequence."""
    split = detail.split
    if split is None:
        return "the split is invalid"
    # A node with more outputs would help nobody.
    if split.lengths is None or split.axis is None or len(split.lengths) > MAX_ITEMS:
        return "the number of its parts or its axis is known only at run time"
    if split.form == "size" and any(node.input[1:]) and _drops_axis(node):
        return "runtimes disagree on keepdims=0 with a chunk size (SG219)"
    count = len(split.lengths)
    if count == 0:
        return "it is empty, and a Split has at least one part"
    if _plain_form(split) is None:
        return "the lengths of its parts depend on a dimension in a way that Split has no form for"
    name = node.output[0]
    readers = []
    for inner, is_output, indices in values.readers_of(name, scope):
        if is_output:
            return "the sequence itself is an output"
        for index in indices:
            reader = inner.nodes[index]
            if reader.op_type not in ("SequenceAt", "SequenceLength", "ConcatFromSequence") or reader.domain not in (
                "",
                "ai.onnx",
            ):
                return f"{reader.op_type} reads the sequence itself"
            position = None
            if reader.op_type == "SequenceAt":
                position = walked.graphs[inner.path].positions.get(index)
                if position is None or not -count <= position < count:
                    return "a position that is read is known only at run time, or out of range"
                position %= count
            elif any(attribute.ref_attr_name for attribute in reader.attribute):
                return f"{reader.op_type} has an attribute of the enclosing function"
            elif reader.op_type == "ConcatFromSequence" and not any(
                option.name == "axis" for option in reader.attribute
            ):
                return "ConcatFromSequence has no axis"
            readers.append(Reader(inner, index, reader, position))
    return readers


def _plan_sequence(
    plan: Plan,
    model: ModelProto,
    scope: Scope,
    index: int,
    detail: SplitDetail,
    readers: Sequence[Reader],
    names: FreshNames,
    why: str,
    variant: Variant,
    explicit_lengths: bool,
) -> None:
    node, split = scope.nodes[index], detail.split
    if split is None or split.lengths is None:
        return
    emission = new_emission(plan, model, scope, node, index, names, opset_of(scope.imports))
    parts = [names.new(f"{node.output[0]}_{position}") for position in range(len(split.lengths))]
    if variant.op_type == "Slice":
        parts = _read_parts(parts, readers)
    form = _plain_form(split)
    stand_in = _documented(NodeProto(op_type="Split"), node)
    # The second input is the lengths, or the size of a chunk.
    stand_in.input.extend(node.input if form == "lengths" and split.form == "lengths" else node.input[:1])
    stand_in.output.extend(parts)
    stand_in.attribute.append(make_attribute("axis", split.axis))
    plain = replace(detail, split=replace(split, form=form or split.form, squeezed=False))
    replaced = SplitNode(scope, index, stand_in, plain)
    replacement, blockers = lower_split(replaced, variant, emission, why, explicit_lengths=explicit_lengths)
    plan.blockers.extend(blockers)
    if replacement is None:
        return
    if split.squeezed:
        parts = _squeeze(emission, parts, split.axis or 0)
    plan.replace(scope, index, emission.replacement(why, detail.variant.label, variant.label))
    for reader in readers:
        _plan_reader(plan, model, reader, parts, names)


def _read_parts(parts: Sequence[str], readers: Sequence[Reader]) -> list[str]:
    """Return the parts, "" for those that nobody reads: a Split has an output for each, but nobody needs such a Slice.
    All parts if nobody reads any.
    """
    read = {reader.position for reader in readers if reader.node.op_type != "SequenceLength"}
    if None in read or not read:
        return list(parts)
    return [part if position in read else "" for position, part in enumerate(parts)]


def _plain_form(split: CanonicalSplit) -> SplitForm | None:
    """Return the form in which Split gives the same parts; None if Split has none."""
    lengths = split.lengths or ()
    if split.static_lengths is None and split.form == "lengths":
        return "lengths"
    if len(set(lengths)) == 1:
        return "equal"
    return None if split.static_lengths is None else "lengths"


def _documented(node: NodeProto, original: NodeProto) -> NodeProto:
    """Return the node with the name, documentation and metadata of the node that it replaces."""
    node.name, node.doc_string = original.name, original.doc_string
    node.metadata_props.extend(original.metadata_props)
    return node


def _squeeze(emission: Emission, parts: Sequence[str], axis: int) -> list[str]:
    squeezed = []
    for part in parts:
        output = emission.names.new(f"{part}_squeezed") if part else ""
        if part:
            emission.main(axes_node(emission, "Squeeze", part, output, axis))
        squeezed.append(output)
    return squeezed


def _plan_reader(
    plan: Plan,
    model: ModelProto,
    reader: Reader,
    parts: Sequence[str],
    names: FreshNames,
) -> None:
    node = reader.node
    emission = new_emission(plan, model, reader.scope, node, reader.index, names, opset_of(reader.scope.imports))
    if node.op_type == "SequenceAt":
        read = make_node("Identity", [parts[reader.position or 0]], list(node.output))
    elif node.op_type == "SequenceLength":
        count = helper.make_tensor("", TensorProto.INT64, [], [len(parts)])
        read = make_node("Constant", [], list(node.output), value=count)
    else:
        read = _concat(emission, node, parts)
    emission.main(_documented(read, node))
    replacement = emission.replacement("reads the parts of a plain split", after=read.op_type)
    plan.replace(reader.scope, reader.index, replacement)


def _concat(emission: Emission, node: NodeProto, parts: Sequence[str]) -> NodeProto:
    attributes = {attribute.name: attribute.i for attribute in node.attribute}
    axis = attributes["axis"]
    if attributes.get("new_axis", 0):
        made = []
        for part in parts:
            output = emission.names.new(f"{part}_stacked")
            emission.helpers.append(axes_node(emission, "Unsqueeze", part, output, axis))
            made.append(output)
        parts = made
    return make_node("Concat", list(parts), list(node.output), axis=axis)
