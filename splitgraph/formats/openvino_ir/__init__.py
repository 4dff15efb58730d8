"""OpenVINO IR (.xml and .bin, versions 10 and 11), read and written without the openvino package.

`files` reads the pair of files: `xml_tree` the .xml, `graph` the layers, ports and edges that it describes, and `model`
holds both with the bytes of the .bin. `notation` is how IR writes element types and shapes.
"""

from __future__ import annotations

from splitgraph.formats.openvino_ir.files import load_ir, save_ir, weights_path
from splitgraph.formats.openvino_ir.model import Graph, Layer, OpenVINOModel, Port

__all__ = ["Graph", "Layer", "OpenVINOModel", "Port", "load_ir", "save_ir", "weights_path"]
