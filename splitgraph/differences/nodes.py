"""Nodes of two graphs: what a node is in each model, and how matched nodes differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import zip_longest

from splitgraph.differences.difference import Aspect, NodeDifference, NodeForm
from splitgraph.differences.matching import ComparedGraph, Operator, ValueNames
from splitgraph.differences.parts import Side
from splitgraph.formats.constants import attribute_texts, different_attributes
from splitgraph.model.onnx_proto import NodeProto
from splitgraph.model.schemas import version_at
from splitgraph.model.scopes import node_label
from splitgraph.splits import VARIANTS, openvino_split_1
from splitgraph.splits.variadic_split_1 import DOMAIN, parts_of

# The attribute of a mirrored layer of an IR that says its version.
_OPERATOR_SET = "operator_set"
# OpenVINO's VariadicSplit has one variant for both formats, whose domain is that of its function in ONNX.
_SPLITS = frozenset(
    {*((variant.domain, variant.op_type) for variant in VARIANTS), (openvino_split_1.DOMAIN, "VariadicSplit")}
)


class NodeComparison:
    """Compares the nodes of two graphs. pairs: the matched ones. names: the values that are the same."""

    def __init__(
        self,
        sides: tuple[Side, Side],
        graphs: tuple[ComparedGraph, ComparedGraph],
        pairs: Sequence[tuple[int, int]],
        names: ValueNames,
    ) -> None:
        self._sides = sides
        self._graphs = graphs
        self._after_of = dict(pairs)
        self._before_of = {other: index for index, other in pairs}
        self._names = names

    def differences(self) -> list[NodeDifference]:
        """Return the nodes that differ, in the order of the second graph; each removed one stands behind what came
        before.
        """
        before, after = self._graphs
        differences: dict[tuple[int, int, int], NodeDifference] = {}
        place = -1
        for index in range(len(before.nodes)):
            if index in self._after_of:
                place = self._after_of[index]
                changed = self._changed(index, place)
                if changed is not None:
                    differences[place, 0, 0] = changed
            else:
                form = node_form(self._sides[0], before, index)
                differences[place, 1, index] = NodeDifference(
                    form.location, "removed", form, None, others=self._others(index, None)
                )
        for other in range(len(after.nodes)):
            if other not in self._before_of:
                form = node_form(self._sides[1], after, other)
                differences[other, 0, 0] = NodeDifference(
                    form.location, "added", None, form, others=self._others(None, other)
                )
        return [differences[key] for key in sorted(differences)]

    def moved(self) -> dict[str, str]:
        """Return the locations of matched nodes in the second model, by those in the first, if they differ and no other
        node has one of them.
        """
        before, after = self._graphs
        locations = [_location(before, index) for index in range(len(before.nodes))]
        others = [_location(after, other) for other in range(len(after.nodes))]
        times, other_times = Counter(locations), Counter(others)
        pairs = ((locations[index], others[other]) for index, other in self._after_of.items())
        return {one: other for one, other in pairs if one != other and times[one] == other_times[other] == 1}

    def _changed(self, index: int, other: int) -> NodeDifference | None:
        before, after = self._graphs
        aspects = list(self._operator_aspects(index, other))
        node, new = before.nodes[index], after.nodes[other]
        attributes: tuple[str, ...] = ()
        if node.attribute or new.attribute:
            names = different_attributes(node, new, (self._sides[0].folder, self._sides[1].folder))
            attributes = tuple(name for name in names if name != _OPERATOR_SET or not self._sides[0].is_ir)
        if attributes:
            aspects.append("attributes")
        pairs = zip_longest(before.inputs[index], after.inputs[other], fillvalue="")
        inputs = tuple(place for place, (one, two) in enumerate(pairs) if not self._names.is_same(one, two))
        if inputs:
            aspects.append("inputs")
        if before.outputs[index] != after.outputs[other]:
            aspects.append("outputs")
        if before.names[index] != after.names[other]:
            aspects.append("name")
        if _metadata(node) != _metadata(new):
            aspects.append("metadata")
        if not aspects:
            return None
        forms = node_form(self._sides[0], before, index), node_form(self._sides[1], after, other)
        others = self._others(index, other)
        return NodeDifference(forms[1].location, "changed", *forms, tuple(aspects), attributes, inputs, others)

    def _operator_aspects(self, index: int, other: int) -> Sequence[Aspect]:
        before, after = self._graphs
        (domain, *operator), (new_domain, *new_operator) = before.operators[index], after.operators[other]
        aspects: list[Aspect] = []
        if operator != new_operator:
            aspects.append("operator")
        if domain != new_domain:
            aspects.append("domain")
        versions = _version(self._sides[0], before, index), _version(self._sides[1], after, other)
        return aspects if aspects or versions[0] == versions[1] else ["version"]

    def _others(self, index: int | None, other: int | None) -> tuple[str, ...]:
        """Return further nodes of the other model that produce values of a node's names: of an added node in the first
        model, otherwise in the second.
        """
        before, after = self._graphs
        if index is None:
            assert other is not None
            graph, names, match = before, after.outputs[other], None
        else:
            graph, names, match = after, before.outputs[index], other
        producers = dict.fromkeys(graph.producers[name] for name in names if name in graph.producers)
        return tuple(_location(graph, producer) for producer in producers if producer != match)


def node_form(side: Side, graph: ComparedGraph, index: int) -> NodeForm:
    """Return a node as it is in one of the models."""
    node, operator = graph.nodes[index], graph.operators[index]
    attributes = attribute_texts(node, side.folder)
    if side.is_ir:
        attributes = {name: text for name, text in attributes.items() if name != _OPERATOR_SET}
    return NodeForm(
        _location(graph, index),
        node.name,
        _label(operator, _version(side, graph, index)),
        _is_split(operator),
        tuple(graph.inputs[index]),
        tuple(graph.outputs[index]),
        attributes,
    )


def _location(graph: ComparedGraph, index: int) -> str:
    return f"{graph.scope.location}/{node_label(graph.nodes[index], index)}"


def _is_split(operator: Operator) -> bool:
    domain, op_type, _ = operator
    return (domain, op_type) in _SPLITS or (domain == DOMAIN and parts_of(op_type) is not None)


def _label(operator: Operator, version: int | str | None) -> str:
    domain, op_type, overload = operator
    name = f"{domain}.{op_type}" if domain else op_type
    name = f"{name}:{overload}" if overload else name
    return name if version is None else f"{name}-{version}"


def _version(side: Side, graph: ComparedGraph, index: int) -> int | str | None:
    """Return the version of a node's operator; of a layer of an IR the number of its operator set, or a text without
    one.
    """
    domain, op_type, _ = graph.operators[index]
    if side.is_ir:
        text = side.operator_set(graph.scope.path, index)
        return text.removeprefix("opset") or None
    opset = graph.scope.imports.get(domain)
    return None if opset is None else _since(domain, op_type, opset)


@cache
def _since(domain: str, op_type: str, opset: int) -> int | None:
    """Return the version of an operator; of one that is not known the opset of its domain."""
    if domain and _is_split((domain, op_type, "")):
        return 1
    version = version_at(domain, op_type, opset)
    if version is not None:
        return version.since_version
    return opset if domain else None


def _metadata(node: NodeProto) -> tuple[Mapping[str, str], Sequence[bytes]]:
    """Return the metadata of a node, and on which devices it runs."""
    devices = [device.SerializeToString(deterministic=True) for device in node.device_configurations]
    return {entry.key: entry.value for entry in node.metadata_props}, devices
