"""Models as engines read them: their nodes, edits of a private copy that do not change its meaning, and their files.

External weights stay where they are: the files refer to them.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import onnx
from onnx.external_data_helper import ExternalDataInfo, load_external_data_for_tensor

from splitgraph.dim import marks_unknown
from splitgraph.formats.external_data import all_tensors, refer_to
from splitgraph.model.deferred import import_whole
from splitgraph.model.names import declared_values, used_names
from splitgraph.model.schemas import version_at
from splitgraph.model.scopes import scopes
from splitgraph.model.tensor_data import Place, byte_size, fill, is_external, place_of, with_elements
from splitgraph.model.values import tensor_types

if TYPE_CHECKING:
    from splitgraph.formats import Model

_DEFAULT_DOMAINS = ("", "ai.onnx")

OpsetImports = dict[str, int]
Array = npt.NDArray[np.generic]

# protobuf writes no message of 2 GiB or more. Above this size the weights go to a file beside the model.
_LARGEST_MESSAGE = 1_500_000_000


def scoped_nodes(model: onnx.ModelProto) -> Iterator[tuple[onnx.NodeProto, OpsetImports]]:
    """Yield every node of all graphs, subgraphs and functions of a model, with the opset imports that apply to it."""
    imports = _imports(model.opset_import)
    yield from ((node, imports) for node in nodes_within(model.graph.node))
    for function in model.functions:
        imports = _imports(function.opset_import)
        yield from ((node, imports) for node in nodes_within(function.node))


def nodes_within(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yield nodes and, after each, the nodes of its subgraphs."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from nodes_within(attribute.g.node)
            for graph in attribute.graphs:
                yield from nodes_within(graph.node)


def specialise(function: onnx.FunctionProto, call: onnx.NodeProto) -> onnx.FunctionProto:
    """Copy the body of a function and replace every reference to an attribute by the value in the call.

    The default of the function applies if the call has no value. An attribute without a value and a default is removed,
    so that the default of the operator applies. The call itself must not contain references.
    """
    given = {attribute.name: attribute for attribute in function.attribute_proto}
    given.update({attribute.name: attribute for attribute in call.attribute})
    body = onnx.FunctionProto()
    body.CopyFrom(function)
    del body.attribute[:]
    del body.attribute_proto[:]
    for node in list(nodes_within(body.node)):
        if any(attribute.ref_attr_name for attribute in node.attribute):
            _write_out_references(node, given)
    return body


def _write_out_references(node: onnx.NodeProto, given: Mapping[str, onnx.AttributeProto]) -> None:
    resolved = []
    for attribute in node.attribute:
        source = given.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
        if source is None:
            continue
        copied = onnx.AttributeProto()
        copied.CopyFrom(source)
        copied.name = attribute.name
        resolved.append(copied)
    del node.attribute[:]
    node.attribute.extend(resolved)


def is_default_domain(domain: str) -> bool:
    """Return True for ai.onnx, under either of its names."""
    return domain in _DEFAULT_DOMAINS


def since_version(node: onnx.NodeProto, imports: OpsetImports) -> int | None:
    """Return the version of an ai.onnx operator that the opset import selects; None if the installed onnx does not have
    it. For a newer version, onnx gives its newest one.
    """
    opset = imports.get("", 0)
    try:
        version = int(onnx.defs.get_schema(node.op_type, opset).since_version)
    except onnx.defs.SchemaError:
        return None
    meant = version_at("", node.op_type, opset)
    return None if meant is not None and meant.since_version > version else version


def name_omitted_outputs(model: onnx.ModelProto, *, of_splits_only: bool = True) -> None:
    """Name the omitted outputs of every Split, or of every node.

    onnxruntime 1.31 crashes on Split(x) -> "a", "". The evaluator of onnx stores an omitted output under the name ""
    and passes it to every later node as an omitted input.
    """
    taken = set(used_names(model))
    fresh = (name for number in itertools.count() if (name := f"omitted_{number}") not in taken)
    for node, _ in scoped_nodes(model):
        if "" not in node.output:
            continue
        if not of_splits_only or (node.op_type == "Split" and is_default_domain(node.domain)):
            node.output[:] = [name or next(fresh) for name in node.output]


def add_outputs(model: onnx.ModelProto, names: Iterable[str]) -> None:
    """Let a model return inner values, too. Their types are not declared: engines infer them."""
    known = {value.name for value in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in known)


def clear_unknown_marks(model: onnx.ModelProto) -> None:
    """Remove the texts that mark dimensions as unknown. onnxruntime takes such a text for the name of one dimension and
    lets values of different sizes share memory ("Shape mismatch attempting to re-use buffer").
    """
    for scope in scopes(model):
        for value in declared_values(scope):
            for tensor in tensor_types(value.type):
                for dim in tensor.shape.dim:
                    if dim.HasField("dim_param") and marks_unknown(dim.dim_param):
                        dim.ClearField("dim_param")


def newer_operators(model: onnx.ModelProto, opset: int) -> list[str]:
    """Return the operators of a model in versions that came after an opset, such as "Reshape-25"."""
    found: dict[str, None] = {}
    for node, imports in scoped_nodes(model):
        version = version_at("", node.op_type, imports.get("", 1)) if is_default_domain(node.domain) else None
        if version is not None and version.since_version > opset:
            found[f"{node.op_type}-{version.since_version}"] = None
    return list(found)


def oldest_equal_opset(model: onnx.ModelProto) -> int:
    """Return the oldest opset at which every ai.onnx operator of a model is the same, except for element types."""
    versions = [1]
    for node, imports in scoped_nodes(model):
        if is_default_domain(node.domain):
            version = since_version(node, imports)
            versions.append(imports.get("", 1) if version is None else oldest_same_version(node.op_type, version))
    return max(versions)


@cache
def oldest_same_version(op_type: str, version: int) -> int:
    """Return the oldest version of an operator since which each version only added element types. A version that the
    installed onnx does not have is only the same as itself.
    """
    try:
        newer = onnx.defs.get_schema(op_type, version)
    except onnx.defs.SchemaError:
        return version
    if newer.since_version != version:
        return version
    if version == 1:
        return version
    try:
        older = onnx.defs.get_schema(op_type, version - 1)
    except onnx.defs.SchemaError:
        return version
    return oldest_same_version(op_type, older.since_version) if _only_adds_types(older, newer) else version


def _only_adds_types(older: onnx.defs.OpSchema, newer: onnx.defs.OpSchema) -> bool:
    """Return True if the newer schema differs only in element types, and allows all types of the older one."""
    if older.doc != newer.doc or _signature(older) != _signature(newer):
        return False
    types = [
        {constraint.type_param_str: set(constraint.allowed_type_strs) for constraint in schema.type_constraints}
        for schema in (older, newer)
    ]
    return types[0].keys() == types[1].keys() and all(types[0][name] <= types[1][name] for name in types[0])


def _signature(schema: onnx.defs.OpSchema) -> tuple[object, ...]:
    attributes = {
        item.name: (item.type, item.required, item.default_value.SerializeToString(), item.description)
        for item in schema.attributes.values()
    }
    parameters = [
        [(item.name, item.option, item.is_homogeneous, item.type_str) for item in items]
        for items in (schema.inputs, schema.outputs)
    ]
    return attributes, parameters, schema.min_input, schema.max_input, schema.min_output, schema.max_output


def relabel(model: onnx.ModelProto, opset: int, ir_version: int) -> bool:
    """Lower the opset and the IR version of a model to the given ones, if that changes no operator.

    Returns True if the model was changed.
    """
    changed = False
    if model.ir_version > ir_version:
        model.ir_version = ir_version
        changed = True
    if oldest_equal_opset(model) > opset:
        return changed
    for imported in itertools.chain(model.opset_import, *(function.opset_import for function in model.functions)):
        if is_default_domain(imported.domain) and imported.version > opset:
            imported.version = opset
            changed = True
    return changed


def _imports(opset_import: Iterable[onnx.OperatorSetIdProto]) -> OpsetImports:
    return {"" if is_default_domain(item.domain) else item.domain: item.version for item in opset_import}


class ModelFile(NamedTuple):
    """A model in a file. folder: of the external data, None for the folder of the file. weights: in bytes."""

    path: Path
    folder: Path | None
    weights: int


def write_model(model: Model, stem: Path, folder: Path | None) -> ModelFile:
    """Write a model for an engine. The model is not changed, and external weights are not copied.

    folder: of the external data of an ONNX model. Raises OSError, and ModelError if the file of the model was changed
    after it was read.
    """
    if not isinstance(model, onnx.ModelProto):
        import_whole("splitgraph.formats.openvino_ir")
        from splitgraph.formats.openvino_ir import save_ir

        path = stem.with_suffix(".xml")
        save_ir(model, path)
        data = path.with_suffix(".bin")
        # A model without constants has none.
        return ModelFile(path, None, data.stat().st_size if data.exists() else 0)
    path = stem.with_suffix(".onnx")
    weights = weights_of([model])
    if not any(map(is_external, all_tensors(model))):
        return ModelFile(save_model(model, path), None, weights)
    slim = onnx.ModelProto()
    slim.CopyFrom(model)
    data_folder = _refer_to_places(slim, folder)
    return ModelFile(save_model(slim, path), data_folder, weights)


def _refer_to_places(model: onnx.ModelProto, folder: Path | None) -> Path | None:
    """Turn tensors whose elements stayed in the model file into external tensors of that file; return the folder of all
    external data. Elements that an engine cannot read from that folder are read into the model.
    """
    placed = [(tensor, place) for tensor in all_tensors(model) if (place := place_of(tensor)) is not None]
    real = None if folder is None else Path(os.path.realpath(folder))
    if real is None or not any(is_external(tensor) and place_of(tensor) is None for tensor in all_tensors(model)):
        # The model file may be a link, which engines would not follow.
        real = next((_real_path(place).parent for _, place in placed), real)
    for tensor, place in placed:
        path = _real_path(place)
        if place.is_raw and path.parent == real and place.source.is_at(path):
            refer_to(tensor, path.name, place.start, place.length)
        else:
            fill(tensor)
    return real


def _real_path(place: Place) -> Path:
    return Path(os.path.realpath(place.source.path))


def save_model(model: onnx.ModelProto, path: Path) -> Path:
    """Write a model, with its weights beside it if they do not fit in a protobuf message. The model is not changed."""
    if sum(len(tensor.raw_data) for tensor in model.graph.initializer) < _LARGEST_MESSAGE:
        path.write_bytes(model.SerializeToString())
        return path
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    onnx.save(copied, str(path), save_as_external_data=True, location=f"{path.name}.data")
    return path


def weights_of(models: Iterable[Model]) -> int:
    """Return how many bytes of weights ONNX models have in total, inside and outside of their files."""
    tensors = (tensor for model in models if isinstance(model, onnx.ModelProto) for tensor in all_tensors(model))
    return sum(max(byte_size(tensor) or 0, 0) for tensor in tensors)


def read_model(path: Path, folder: Path | None, *, leave_initializers: bool = False) -> onnx.ModelProto:
    """Read a model with its external data; `leave_initializers` leaves external initializers in their files."""
    model = onnx.load(str(path), load_external_data=False)
    left = {id(tensor) for tensor in model.graph.initializer} if leave_initializers else frozenset()
    for tensor in all_tensors(model):
        if is_external(tensor) and id(tensor) not in left:
            load_external_data_for_tensor(tensor, str(folder or path.parent))
            tensor.ClearField("data_location")
            tensor.ClearField("external_data")
    return model


def elements_of(tensor: onnx.TensorProto, folder: Path | None) -> Array:
    """Return the elements of a tensor, wherever they are. folder: of external data."""
    whole = with_elements(tensor)
    if is_external(whole):
        return read_elements(whole, folder or Path())
    elements: Array = onnx.numpy_helper.to_array(whole)
    return elements


def read_elements(tensor: onnx.TensorProto, folder: Path) -> Array:
    """Return the elements of an external tensor. Types of whole bytes are mapped into memory instead of read."""
    info = ExternalDataInfo(tensor)
    dtype, count = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type), math.prod(tensor.dims[:])
    if count and byte_size(tensor) == dtype.itemsize * count:
        return np.memmap(folder / info.location, dtype, "r", info.offset or 0, tuple(tensor.dims))
    whole = onnx.TensorProto()
    whole.CopyFrom(tensor)
    load_external_data_for_tensor(whole, str(folder))
    elements: Array = onnx.numpy_helper.to_array(whole)
    return elements
