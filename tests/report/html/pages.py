"""What the tests of HTML pages share: models, the data inside a page, and its parts."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import onnx
from onnx import TensorProto, helper

# A name that would be markup, end a script, or turn the text around, if a page did not take it as text.
HOSTILE = "</script><img src=x onerror=alert(1)>&amp;<b>\"'\u202e\x1b[31m"


def split_model(
    name: str = "s", parts: tuple[str, ...] = ("a", "b"), shape: tuple[int | str, ...] = ("N", 6), **attributes: Any
) -> onnx.ModelProto:
    """x -> Relu -> Split-18 -> a Relu for each part."""
    nodes = [
        helper.make_node("Relu", ["x"], ["y"], name="first"),
        helper.make_node(
            "Split", ["y"], list(parts), name=name, **{"axis": 1, "num_outputs": len(parts), **attributes}
        ),
        *(helper.make_node("Relu", [part], [f"{part} out"], name=f"after {part}") for part in parts),
    ]
    outputs = [helper.make_tensor_value_info(f"{part} out", TensorProto.FLOAT, None) for part in parts]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)], outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = f"{tag}#{dict(attrs).get('id', '')}"

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self._open, []).append(data)

    def handle_endtag(self, tag: str) -> None:
        self._open = ""


def read_page(text: str) -> _Reader:
    """The elements of a page as a browser reads them, and the text in each by tag and id."""
    reader = _Reader()
    reader.feed(text)
    return reader


def page_data(text: str) -> Any:
    """The data in a page."""
    return json.loads("".join(read_page(text).texts["script#data"]))


def policy(text: str) -> dict[str, str]:
    """The Content-Security-Policy of a page, by directive."""
    [content] = [
        attributes["content"] or ""
        for tag, attributes in read_page(text).elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    return {name: value for name, _, value in (part.strip().partition(" ") for part in re.split(";", content))}
