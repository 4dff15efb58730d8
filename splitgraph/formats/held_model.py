"""A model that is given back as one in memory, and put together only when somebody asks for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from splitgraph.formats.onnx_file import whole_model
from splitgraph.onnx_proto import ModelProto
from splitgraph.options import ExternalData

M = TypeVar("M")
Save = Callable[[ModelProto, "str | os.PathLike[str]", "ExternalData | None"], None]


class HeldModel(Generic[M]):
    """A model without the weights that stayed in the file that it was read from.

    content: the model as it is. save: writes it to a path, its weights copied from file to file.
    """

    def __init__(self, content: ModelProto, path: Path, save: Save) -> None:
        self.content = content
        self._save = save
        self._path = path
        self._whole: Any = None

    @property
    def whole(self) -> M:
        """The model with everything in it, made when it is first asked for. Raises ModelError where the file was
        changed since it was read.
        """
        if self._whole is None:
            self._whole = whole_model(self.content, self._path)
        found: M = self._whole
        return found

    def save(self, path: str | os.PathLike[str], external_data: ExternalData | None = None) -> None:
        """Write the model to a file; its weights are never loaded. One that was asked for is written as it is now:
        its owner may have changed it.
        """
        self._save(self.content if self._whole is None else self._whole, path, external_data)

    def __eq__(self, other: object) -> bool:
        return bool(self.whole == (other.whole if isinstance(other, HeldModel) else other))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process has no way to the file: it gets a plain model.
        return _itself, (self.whole,)


def _itself(model: Any) -> Any:
    return model


def in_memory(held: Any) -> Any:
    """The model that a result holds, with everything in it."""
    return held.whole if isinstance(held, HeldModel) else held
