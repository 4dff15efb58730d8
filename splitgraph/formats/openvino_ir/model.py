"""OpenVINO IR in memory: the XML tree as it was read, the graph that it describes, and the bytes of its weights.

Source: OpenVINO's own writer and reader (openvino/pass/serialize, the IR frontend), by what they write and accept.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from splitgraph.formats.openvino_ir.graph import BinRange, Graph, Layer, Port, check_constants, locate, read_graph
from splitgraph.formats.openvino_ir.xml_tree import Style, copied, refusal
from splitgraph.formats.recognition import shown, system_reason

__all__ = ["Graph", "Layer", "OpenVINOModel", "Port"]

# OpenVINO writes constants one behind the other, so that any alignment is read; this one suits every processor.
_ALIGNMENT = 64

_READ_AT_ONCE = 1 << 20
_BINARY: int = getattr(os, "O_BINARY", 0)


class Weights:
    """A .bin that stays open: replaced by another file it still gives its own bytes, written over in place it refuses.

    Read rather than mapped into memory, as a mapped file that somebody shortens ends the process.
    """

    def __init__(self, file: Path, path: Path) -> None:
        """file: the .bin. path: the .xml, for messages. Raises OSError."""
        self.file = file
        self._path = path
        self._descriptor = os.open(file, os.O_RDONLY | _BINARY)
        weakref.finalize(self, os.close, self._descriptor)
        self._state = self._look()

    def __len__(self) -> int:
        return self._state[0]

    def read(self, offset: int, size: int) -> bytes:
        """`size` bytes from `offset`. Raises ModelError (SG107) when the file is not any more what was opened."""
        try:
            os.lseek(self._descriptor, offset, os.SEEK_SET)
            parts: list[bytes] = []
            while size > 0 and (part := os.read(self._descriptor, size)):
                parts.append(part)
                size -= len(part)
            is_same = self._look() == self._state
        except OSError as error:
            reason = system_reason(error)
            raise refusal("SG107", f"its weights {shown(self.file)} cannot be read: {reason}", self._path) from error
        if size > 0 or not is_same:
            raise refusal("SG107", f"its weights {shown(self.file)} were written to after it was read", self._path)
        return b"".join(parts)

    def blocks(self) -> Iterator[bytes]:
        """Yield all of the bytes, in order. Raises as `read`."""
        for offset in range(0, len(self), _READ_AT_ONCE):
            yield self.read(offset, min(_READ_AT_ONCE, len(self) - offset))

    def _look(self) -> tuple[int, int]:
        status = os.fstat(self._descriptor)
        return status.st_size, status.st_mtime_ns


class OpenVINOModel:
    """An OpenVINO IR: the tree of its .xml, and the bytes of its .bin.

    root: the `<net>` element; after it was edited, `refresh` reads the graph again. weights: the .bin, read only where
    it is asked for; None for a model without one. path: the .xml it was read from. style: how the .xml was written,
    which is kept. appended: what is to be written behind the .bin. graph: what the tree describes.
    """

    root: Element
    weights: Weights | None
    path: Path | None
    style: Style
    appended: bytearray
    graph: Graph

    def __init__(
        self,
        root: Element,
        weights: Weights | None = None,
        path: Path | None = None,
        *,
        style: Style | None = None,
        appended: bytes = b"",
    ) -> None:
        self.root = root
        self.weights = weights
        self.path = path
        self.style = Style() if style is None else style
        self.appended = bytearray(appended)
        self.graph = self._read()

    @property
    def name(self) -> str:
        """The name of the net, empty when it has none."""
        return self.root.get("name", "")

    @property
    def version(self) -> int:
        """The version of the IR: 10 or 11."""
        return int(self.root.get("version", ""))

    @property
    def weights_size(self) -> int:
        """Bytes of the .bin that `save_ir` writes."""
        return self._stored + len(self.appended)

    @property
    def has_weights(self) -> bool:
        """Whether the model has a .bin, or needs one by now."""
        return self.weights is not None or bool(self.appended)

    def refresh(self) -> Graph:
        """Read the graph again from the edited tree. Raises ModelError (SG107, SG111)."""
        self.graph = self._read()
        return self.graph

    def copy(self) -> OpenVINOModel:
        """Return a copy that can be edited; the weights, which nothing edits, are shared."""
        return OpenVINOModel(
            copied(self.root), self.weights, self.path, style=self.style, appended=bytes(self.appended)
        )

    def constant(self, layer: Layer) -> memoryview:
        """Return the bytes of a Const. Raises ModelError (SG107, SG111), also for any other layer."""
        place = self.place_of(layer)
        return memoryview(self.read(place.offset, place.size))

    def place_of(self, layer: Layer) -> BinRange:
        """Return where the bytes of a Const are. Raises ModelError (SG107, SG111), also for any other layer."""
        return locate(layer, self.weights_size if self.has_weights else None, self.path)

    def read(self, offset: int, size: int) -> bytes:
        """Return some bytes of the weights, appended ones included. Raises ModelError (SG107)."""
        in_file = max(0, min(size, self._stored - offset))
        content = b"" if self.weights is None else self.weights.read(offset, in_file)
        start = max(0, offset - self._stored)
        return content + bytes(self.appended[start : start + size - in_file])

    def append_constant(self, data: bytes) -> int:
        """Add bytes to the weights, and give the offset that a Const reads them from."""
        self.appended += bytes(-self.weights_size % _ALIGNMENT)
        offset = self.weights_size
        self.appended += data
        return offset

    @property
    def _stored(self) -> int:
        return 0 if self.weights is None else len(self.weights)

    def _read(self) -> Graph:
        graph = read_graph(self.root, self.path)
        check_constants(graph, self.weights_size if self.has_weights else None, self.path)
        return graph
