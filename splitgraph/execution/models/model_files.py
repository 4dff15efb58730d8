"""Write models to files for the engines. External weights stay where they are: the files refer to them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import onnx
from onnx.external_data_helper import ExternalDataInfo, load_external_data_for_tensor

from splitgraph.formats.external_data import all_tensors, refer_to
from splitgraph.formats.openvino_ir import OpenVINOModel, save_ir
from splitgraph.tensor_data import Place, byte_size, fill, is_external, place_of

Model = onnx.ModelProto | OpenVINOModel
Array = npt.NDArray[np.generic]

# protobuf writes no message of 2 GiB or more. Above this size the weights go to a file beside the model.
_LARGEST_MESSAGE = 1_500_000_000


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
