"""Models of the package onnx-ir (`onnx_ir.Model`) in and out, by its own serialization (tested with 0.1.7 to 1.1.0).

What an `onnx_ir.Model` has no place for is lost when onnx_ir itself reads a file: sparse initializers and training
graphs. `meta`, the notes of passes that onnx_ir never writes to a file, does not come back from here either.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from splitgraph.findings.diagnostics import ModelError
from splitgraph.formats.external_data import (
    all_tensors,
    checked_references,
    leave_in_files,
    load_external_data,
    refer_to,
    small_references,
)
from splitgraph.formats.recognition import model_error, shown
from splitgraph.model.onnx_proto import AttributeProto, GraphProto, ModelProto, TensorProto
from splitgraph.model.tensor_data import fill, place_of

_LONGEST_REASON = 300
# The names that onnx_ir changes and its log level are put back afterwards; two threads must not do this at once.
# Reentrant, because a lazy tensor may call splitgraph again.
_AT_WORK = threading.RLock()
# A name, and the file without the folder; None for a tensor of any name.
_Place = tuple[str | None, str, int | None, int | None]


def is_onnx_ir(value: object) -> bool:
    """Return True for an onnx_ir.Model; does not import onnx_ir, since whoever has a model of it has imported it."""
    return isinstance(value, getattr(sys.modules.get("onnx_ir"), "Model", ()))


def to_model(model: Any) -> tuple[ModelProto, list[Path]]:
    """Return the ModelProto of an onnx_ir.Model, and the data files that it was read from; the model is not changed.

    External tensors stay in their files, as those of a path do: they are looked for in the folder that they name
    (`base_dir`), by the same rules as those of an ONNX file, and only those that shapes may depend on are read. One
    whose file is not there stays a reference, as in a ModelProto that was loaded without its data. Raises
    ModelError: SG107 external data that cannot be read, SG111 a model that onnx_ir cannot write.
    """
    import onnx_ir

    by_folder: dict[Path, list[TensorProto]] = defaultdict(list)
    with _guarded("written as an ONNX model"):
        with _names_kept(model):
            proto: ModelProto = onnx_ir.to_proto(model)
        for tensor, written in _external_pairs(model, proto):
            if not tensor.valid():
                text = f"tensor {written.name!r} is in {shown(tensor.path)}, which onnx_ir has overwritten since"
                raise model_error("SG107", text, help="Load the model again.")
            if os.path.exists(tensor.path):
                by_folder[Path(tensor.base_dir)].append(written)
    files: list[Path] = []
    for folder, tensors in by_folder.items():
        references = checked_references(tensors, folder, "")
        files += dict.fromkeys(folder / reference.location for reference in references)
        small = small_references(references)
        taken_in = {id(reference) for reference in small}
        load_external_data(small, folder, "")
        leave_in_files([reference for reference in references if id(reference) not in taken_in], folder, "")
    return proto, files


def from_model(model: ModelProto, original: Any, written: ModelProto) -> Any:
    """Return the onnx_ir.Model of a ModelProto, which is used up.

    original: the model that the ModelProto came from; written: what `to_model` made of it. A tensor that was external
    there and has the same contents is so again, and takes no memory; one tensor of several values is one again. Raises
    ModelError (SG111) for a model that onnx_ir cannot read.
    """
    import onnx_ir

    with _guarded("read into an onnx_ir model"):
        externals = list(_external_pairs(original, written))
        if not externals:
            result = onnx_ir.from_proto(model)
            _share(original, result, model)
            return result
        folders: dict[_Place, set[str]] = defaultdict(set)
        for tensor, proto in externals:
            for name in (proto.name, None):
                folders[_place(tensor, name)].add(os.fspath(tensor.base_dir))
        # A ModelProto has no place for the folder. Where two folders come into question, the contents go into memory.
        _make_external([pair for pair in externals if len(folders[_place(pair[0], pair[1].name)]) == 1], model)
        # The tensors of an onnx_ir.Model hold on to their ModelProto, whose memory is only freed as a whole.
        slim = ModelProto()
        slim.CopyFrom(model)
        result = onnx_ir.from_proto(slim)
        for tensor, proto in _external_pairs(result, slim):
            base_dirs = folders.get(_place(tensor, proto.name)) or folders.get(_place(tensor, None), set())
            if len(base_dirs) == 1:
                (tensor.base_dir,) = base_dirs
        _share(original, result, slim)
    return result


def _make_external(externals: list[tuple[Any, TensorProto]], model: ModelProto) -> None:
    """Make the tensors of a model external that stayed in a file, or have the name and the contents of one that was
    read.
    """
    left: dict[tuple[object, ...], Any] = {}
    read: dict[str, list[tuple[Any, TensorProto]]] = defaultdict(list)
    for tensor, written in externals:
        place = place_of(written)
        if place is None:
            read[written.name].append((tensor, written))
        else:
            left[place.source.identity, place.start, place.length] = tensor
    for proto in all_tensors(model):
        place = place_of(proto)
        if place is None:
            same = next((tensor for tensor, written in read.get(proto.name, ()) if written == proto), None)
        else:
            same = left.get((place.source.identity, place.start, place.length))
        if same is not None:
            refer_to(proto, os.fspath(same.location), same.offset, same.length)
        else:
            fill(proto)


def _share(original: Any, result: Any, model: ModelProto) -> None:
    """Give the values of the main graph that had one tensor one tensor again, where their contents are still equal.

    model: what the result was made of.
    """
    values: dict[int, list[str]] = defaultdict(list)
    for name, value in original.graph.initializers.items():
        if value.const_value is not None:
            values[id(value.const_value)].append(name)
    shared = [names for names in values.values() if len(names) > 1]
    protos = {tensor.name: tensor for tensor in model.graph.initializer} if shared else {}
    for names in shared:
        first, *others = [name for name in names if name in protos] or [""]
        for name in others:
            if _contents(protos[name]) == _contents(protos[first]):
                value = result.graph.initializers[name]
                value.const_value = result.graph.initializers[first].const_value


def _contents(tensor: TensorProto) -> list[tuple[str, Any]]:
    return [(field.name, value) for field, value in tensor.ListFields() if field.name not in ("name", "doc_string")]


@contextlib.contextmanager
def _guarded(purpose: str) -> Iterator[None]:
    """Keep onnx_ir's warnings off stderr, which are findings of `infer` too, and turn what it raises into a
    ModelError.
    """
    import logging

    logger = logging.getLogger("onnx_ir")
    _AT_WORK.acquire()
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    except ModelError:
        raise
    except Exception as error:
        # onnx_ir's error only says which of its functions failed. The cause may be any exception, also from a lazy
        # tensor's code.
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        reason = " ".join(str(cause).split())[:_LONGEST_REASON] or "no reason given"
        message = f"the onnx_ir model cannot be {purpose}: {type(cause).__name__}: {reason}"
        raise model_error("SG111", message) from error
    finally:
        logger.setLevel(level)
        _AT_WORK.release()


@contextlib.contextmanager
def _names_kept(model: Any) -> Iterator[None]:
    """Put back the names of tensors, which onnx_ir replaces by the names of their values when it writes them."""
    graphs = [*model.graphs(), *(graph for function in model.functions.values() for graph in function.subgraphs())]
    values = [value for graph in graphs for value in graph.initializers.values()]
    named = [(value.const_value, value.const_value.name) for value in values if value.const_value is not None]
    try:
        yield
    finally:
        for tensor, name in named:
            if tensor.name != name:
                tensor.name = name


def _place(tensor: Any, name: str | None) -> _Place:
    """Return what a ModelProto says of an external tensor: its name, and the file without the folder."""
    return name, os.fspath(tensor.location), tensor.offset, tensor.length


def _external_pairs(model: Any, proto: ModelProto) -> Iterator[tuple[Any, TensorProto]]:
    """Return every external tensor of an onnx_ir.Model beside the TensorProto that it became, or came from."""
    import onnx_ir

    pairs = [*_pairs(model.graph, proto.graph)]
    for function, function_proto in zip(model.functions.values(), proto.functions, strict=True):
        pairs += _pairs(function, function_proto)
    return ((tensor, written) for tensor, written in pairs if isinstance(tensor, onnx_ir.ExternalTensor))


def _pairs(body: Any, proto: Any) -> Iterator[tuple[Any, TensorProto]]:
    """Yield every tensor of a graph or function beside its TensorProto, subgraphs included."""
    if isinstance(proto, GraphProto):
        values = (value.const_value for value in body.initializers.values())
        yield from zip((value for value in values if value is not None), proto.initializer, strict=True)
    for node, node_proto in zip(body, proto.node, strict=True):
        for attribute, attribute_proto in zip(node.attributes.values(), node_proto.attribute, strict=True):
            if attribute_proto.ref_attr_name:
                continue
            value, kind = attribute.value, attribute_proto.type
            if kind == AttributeProto.TENSOR:
                yield value, attribute_proto.t
            elif kind == AttributeProto.TENSORS:
                yield from zip(value, attribute_proto.tensors, strict=True)
            elif kind == AttributeProto.GRAPH:
                yield from _pairs(value, attribute_proto.g)
            elif kind == AttributeProto.GRAPHS:
                for graph, graph_proto in zip(value, attribute_proto.graphs, strict=True):
                    yield from _pairs(graph, graph_proto)
