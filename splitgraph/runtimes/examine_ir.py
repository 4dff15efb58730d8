"""Find the layers of an OpenVINO IR with their traits, from its inference.

The traits of a layer are those of an operator (`operator_traits`), as far as an IR has them: element types, attributes
that are words (`mode=cubic`), computed inputs (`input 1 computed`), ranks and dynamic dimensions. A
split has some of its own, such as a part of length 0, and so has attention.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from splitgraph.inference import Walked
from splitgraph.inference.analysis import IR
from splitgraph.inference.openvino_ir import Mirror, mirror
from splitgraph.inference.openvino_ir.infer import analyse_mirror, fault_of_layer
from splitgraph.inference.walk_results import GraphDetail, SplitDetail
from splitgraph.model.onnx_proto import NodeProto
from splitgraph.model.scopes import Scope
from splitgraph.model.value_type import UNKNOWN, Contents
from splitgraph.options import STRICT, Leeway
from splitgraph.runtimes.check import Examined
from splitgraph.runtimes.node_traits import NodeTraits
from splitgraph.runtimes.operator_traits import operator_traits

if TYPE_CHECKING:
    from splitgraph.formats.openvino_ir import Layer, OpenVINOModel

# Layers with any number of inputs of one kind, none of which says how the layer computes.
_VARIADIC = frozenset({"Concat", "Einsum"})
# Attributes that are names, or that have another text in every model.
_NAMES = frozenset({"variable_id", "equation"})
_WORD = re.compile(r"[A-Za-z]\w*")
# A layer of these types gives other results in every run, whatever it reads.
_NOT_BEFORE_THE_RUN = re.compile("Random|Multinomial|ReadValue")


def examine_ir(model: OpenVINOModel, leeway: Leeway = STRICT) -> Examined:
    """Infer an IR and find the traits of its layers; the IR is not changed. leeway: what the user permits."""
    mirrored = mirror(model)
    analysis = analyse_mirror(mirrored, leeway=leeway)
    walked = Walked(
        diagnostics=analysis.diagnostics,
        never_run=(),
        opset={IR: model.version},
        scopes=tuple(analysis.details.scopes),
        graphs=analysis.details.graphs,
        misdeclared=(),
        named={},
        facts={},
        accepted=analysis.accepted,
        stale=tuple(finding for finding in analysis.diagnostics if finding.code == "SG606"),
        leeway=leeway,
    )
    return Examined(mirrored.model, walked, list(_layers(mirrored, walked)), model)


def _layers(mirrored: Mirror, walked: Walked) -> Iterator[NodeTraits]:
    """Yield every layer that is a node: none of Parameter, Result and Const."""
    for scope in walked.scopes:
        detail = walked.graphs.get(scope.path) or GraphDetail()
        known = _known_before_the_run(mirrored, scope, detail)
        for index, (node, layer) in enumerate(zip(scope.nodes, mirrored.layers[scope.path], strict=True)):
            traits = set[str]()
            if index not in detail.unread:
                traits = _of_layer(node, layer, detail, known) | _of_split(node, detail.splits.get(index), known)
                traits |= _of_attention(node, detail)
            yield NodeTraits(
                scope,
                index,
                node,
                layer.label,
                frozenset(traits),
                is_layer=True,
                fault=fault_of_layer(layer.type, layer.version) or "",
            )


def _known_before_the_run(mirrored: Mirror, scope: Scope, detail: GraphDetail) -> Collection[str]:
    """Return the values of a graph that depend on constants only, such as weights that are stored compressed."""
    inputs = {value.name for value in scope.proto.input}
    known = {name for name in mirrored.given[scope.path] if name not in inputs}
    for name, contents in detail.constants.items():
        if not isinstance(contents, Contents) or contents.integers is not None:
            known.add(name)
    for index, node in enumerate(scope.nodes):
        is_alike = not _NOT_BEFORE_THE_RUN.search(node.op_type) and not mirrored.layers[scope.path][index].bodies
        if is_alike and node.input and known.issuperset(node.input):
            known.update(node.output)
    return known


def _of_layer(node: NodeProto, layer: Layer, detail: GraphDetail, known: Collection[str]) -> set[str]:
    plain = NodeProto(input=node.input)
    traits = set(operator_traits(plain, None, lambda name: detail.types.get(name, UNKNOWN), known.__contains__))
    if "auto_broadcast" not in layer.data:
        # Inputs of other layers have shapes of their own.
        traits.discard("broadcast")
    for key, text in layer.data.items():
        if key not in _NAMES and _WORD.fullmatch(text):
            traits.add(f"{key}={text}")
        if key == "equation" and any(len({*term}) < len(term) for term in text.partition("->")[0].split(",")):
            traits.add("a diagonal")
        if key.endswith("_mask") and "1" in text:
            traits.add(f"with {key}")
    if layer.bodies or layer.type in _VARIADIC:
        return traits
    first = detail.types.get(node.input[0], UNKNOWN).dtype if node.input else None
    for position, name in enumerate(node.input):
        dtype = detail.types.get(name, UNKNOWN).dtype
        if position and dtype not in (None, first):
            traits.add(f"input {position}={dtype}")
        if position and name and name not in known:
            traits.add(f"input {position} computed")
    return traits


def _of_split(node: NodeProto, detail: SplitDetail | None, known: Collection[str]) -> set[str]:
    if detail is None or detail.split is None:
        return set()
    lengths, traits = detail.split.lengths or (), set[str]()
    if len(lengths) == 1:
        traits.add("only one part")
    if 0 in lengths and detail.split.total != 0 and len(lengths) == len(node.output):
        traits.add("a part of length 0")
    if detail.rest_possible and len(node.input) > 2 and node.input[2] in known:
        traits.add("a length of -1")
    return traits


def _of_attention(node: NodeProto, detail: GraphDetail) -> set[str]:
    """Return what shapes the inputs of attention have that the plainest one has not."""
    if node.op_type != "ScaledDotProductAttention" or len(node.input) < 3:
        return set()
    shapes = [detail.types.get(name, UNKNOWN).shape or () for name in node.input[:4]]
    queries, keys, values, *masks = (shape[-2:] for shape in shapes)
    traits = {"values of another size"} if keys[1:] != values[1:] else set[str]()
    if masks and masks[0][:1] == (1,) != queries[:1]:
        traits.add("one mask for all queries")
    return traits
