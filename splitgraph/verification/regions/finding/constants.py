"""List the constants of a model of a region, wherever they are: initializers, Constant nodes and lists of attributes
of its graph, of its bodies and of its functions.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx

from splitgraph.model.schemas.kinds import COMPARED
from splitgraph.verification.models.model_files import elements_of, scoped_nodes
from splitgraph.verification.values import Array

_Kind = onnx.AttributeProto
# Of operators of onnx, other lists are axes, sizes and the like, which belong to what a node is.
_ML = "ai.onnx.ml"
_OF_CONSTANT = frozenset(
    {"value", "value_float", "value_floats", "value_int", "value_ints", "value_string", "value_strings"}
)
# How often the nodes of trees are reached, which changes no result.
_WITHOUT_EFFECT = frozenset({"nodes_hitrates", "nodes_hitrates_as_tensor"})
# Lists of zeros mean the same as no list.
_ZEROS_BY_DEFAULT = frozenset({"nodes_missing_value_tracks_true"})
# What trees have for each node, and read of branches alone.
_OF_BRANCHES = frozenset(
    {
        "nodes_featureids",
        "nodes_values",
        "nodes_values_as_tensor",
        "nodes_truenodeids",
        "nodes_falsenodeids",
        "nodes_missing_value_tracks_true",
    }
)
# The attributes of a Constant that are no tensors, each with the type of its elements.
_FORMS: Mapping[str, int] = {
    **dict.fromkeys(("value_float", "value_floats"), onnx.TensorProto.FLOAT),
    **dict.fromkeys(("value_int", "value_ints"), onnx.TensorProto.INT64),
    **dict.fromkeys(("value_string", "value_strings"), onnx.TensorProto.STRING),
}
_N_GRAMS = "TfIdfVectorizer"
# Texts and numbers that data is compared with, or that are a result.
_READ = frozenset({"pattern", "delimiter", "stopwords", "default_string", "default_int64", "replaced_value_int64"})
_READ |= {"imputed_value_int64", "max_skip_count"}
_NUMBERS = (_Kind.FLOAT, _Kind.FLOATS, _Kind.INT, _Kind.INTS)
_COMPARED = (_Kind.FLOATS, _Kind.INTS, _Kind.STRINGS, _Kind.FLOAT)
# Attributes that name an element type.
_TYPES = frozenset({"to", "dtype", "output_dtype", "stash_type"})
# They compare numbers with others, which may be constants.
_COMPARING = COMPARED | {"NonMaxSuppression"}
# The input at which a node reads a constant that is its own attribute.
ATTRIBUTE = -1


class HeldConstant(NamedTuple):
    """A constant. name: of a value or an attribute. readers: the operators that read it, each with its input.
    is_setting: of an operator of onnx, an attribute with numbers. unread: the places of elements without a meaning.
    """

    name: str
    held: onnx.TensorProto | onnx.AttributeProto
    readers: Sequence[tuple[str, int]]
    is_setting: bool = False
    unread: Sequence[int] = ()

    @property
    def size(self) -> int:
        """Return the number of elements."""
        if isinstance(self.held, onnx.TensorProto):
            return math.prod(self.held.dims)
        return max(len(self.held.floats), len(self.held.ints), len(self.held.strings), 1)

    def elements(self, folder: Path | None) -> Array:
        """Return the elements. folder: of external data."""
        if isinstance(self.held, onnx.TensorProto):
            return elements_of(self.held, folder)
        attribute = self.held
        if attribute.type in (_Kind.FLOAT, _Kind.FLOATS):
            return np.array(attribute.f if attribute.type == _Kind.FLOAT else attribute.floats, np.float32)
        if attribute.type in (_Kind.INT, _Kind.INTS):
            return np.array(attribute.i if attribute.type == _Kind.INT else attribute.ints, np.int64)
        texts = [attribute.s] if attribute.type == _Kind.STRING else attribute.strings
        told = np.array([text.decode("utf-8", "replace") for text in texts], dtype=object)
        return told.reshape(()) if attribute.type == _Kind.STRING else told


def held_constants(model: onnx.ModelProto, *, has_all_attributes: bool = False) -> list[HeldConstant]:
    """Return the constants of a model in their order, those of the main graph first. has_all_attributes: with all that
    are numbers, such as the ends of an old Slice.
    """
    readers: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for node, _ in scoped_nodes(model):
        for position, name in enumerate(node.input):
            readers[name].append((node.op_type, position))
    found = [*_initializers(model.graph, readers)]
    for node, _ in scoped_nodes(model):
        found += _attributes(node, readers, has_all_attributes=has_all_attributes)
        for attribute in node.attribute:
            bodies = (attribute.g, *attribute.graphs) if attribute.HasField("g") else attribute.graphs
            found += (constant for body in bodies for constant in _initializers(body, readers))
    return found


def thresholds_of(model: onnx.ModelProto, folder: Path | None) -> list[float]:
    """Return the single numbers that a model compares values with, in its order."""
    found = (
        constant.elements(folder)
        for constant in held_constants(model)
        if constant.size == 1 and any(operator in _COMPARING for operator, _ in constant.readers)
    )
    return [float(array.item()) for array in found if array.dtype.kind in "iuf"]


def _initializers(graph: onnx.GraphProto, readers: Mapping[str, Sequence[tuple[str, int]]]) -> Iterator[HeldConstant]:
    yield from (HeldConstant(tensor.name, tensor, readers[tensor.name]) for tensor in graph.initializer)
    # The stored elements; the others are 0.
    yield from (HeldConstant(s.values.name, s.values, readers[s.values.name]) for s in graph.sparse_initializer)


def _attributes(
    node: onnx.NodeProto, readers: Mapping[str, Sequence[tuple[str, int]]], *, has_all_attributes: bool
) -> Iterator[HeldConstant]:
    is_constant = node.op_type == "Constant"
    modes = [attribute.strings for attribute in node.attribute if attribute.name == "nodes_modes"]
    leaves = [place for place, mode in enumerate(modes[0] if modes else ()) if mode == b"LEAF"]
    for attribute in node.attribute:
        if attribute.ref_attr_name or (node.domain == _ML and _has_no_effect(attribute)):
            continue
        if is_constant and attribute.type == _Kind.SPARSE_TENSOR:
            yield HeldConstant(node.output[0], attribute.sparse_tensor.values, readers[node.output[0]])
        elif is_constant and attribute.name in _OF_CONSTANT:
            held = attribute.t if attribute.type == _Kind.TENSOR else attribute
            yield HeldConstant(node.output[0], held, readers[node.output[0]])
        elif attribute.type == _Kind.TENSOR:
            unread = leaves if attribute.name in _OF_BRANCHES else ()
            yield HeldConstant(attribute.name, attribute.t, [(node.op_type, ATTRIBUTE)], unread=unread)
        elif attribute.name in _READ or (
            (node.domain == _ML or node.op_type == _N_GRAMS) and attribute.type in _COMPARED
        ):
            unread = leaves if attribute.name in _OF_BRANCHES else ()
            yield HeldConstant(attribute.name, attribute, [(node.op_type, ATTRIBUTE)], unread=unread)
        elif has_all_attributes and attribute.type in _NUMBERS and attribute.name not in _TYPES:
            yield HeldConstant(attribute.name, attribute, [(node.op_type, ATTRIBUTE)], is_setting=True)


def _has_no_effect(attribute: onnx.AttributeProto) -> bool:
    """Return True for an attribute of ai.onnx.ml without which its node means the same."""
    is_default = attribute.name in _ZEROS_BY_DEFAULT and not any(attribute.ints)
    return is_default or attribute.name in _WITHOUT_EFFECT


def dense_tensor(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """Return the tensor that a Constant writes, in whatever form; None for a sparse one, and for an attribute of the
    function around it.
    """
    held = next((each for each in node.attribute if each.name in _FORMS or each.name == "value"), None)
    if held is None or held.ref_attr_name:
        return None
    if held.name == "value":
        return held.t
    elements = onnx.helper.get_attribute_value(held)
    dims = [] if held.name in ("value_float", "value_int", "value_string") else [len(elements)]
    return onnx.helper.make_tensor("", _FORMS[held.name], dims, elements if dims else [elements])
