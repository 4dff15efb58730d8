"""The XML of an IR: read into a tree that keeps comments and whitespace, written as OpenVINO writes it, or refused.

Only what no model needs is refused: document type declarations, and with them entities of every kind. Names with a
colon are plain names here, as they are to OpenVINO.
"""

from __future__ import annotations

import io
import os
import re
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Comment, Element, ProcessingInstruction, TreeBuilder
from xml.sax import SAXException, SAXParseException
from xml.sax.handler import ContentHandler, property_lexical_handler

from splitgraph.findings.diagnostics import ModelError
from splitgraph.formats.recognition import model_error

_MOST_SHOWN = 80
_HELP = {
    "SG101": "Check the path; an IR is a pair of an .xml and a .bin file, as OpenVINO's save_model writes them.",
    "SG106": "Convert the original model again with a current OpenVINO, which writes IR version 11.",
    "SG107": "Put the .bin that belongs to this .xml beside it, under the same name, or convert the model again.",
    "SG111": "Convert the original model to IR again.",
}
# Three levels of elements for each body in a body; OpenVINO's own files stay below twenty.
_MAX_DEPTH = 128
_SPACE = " \t\r\n"
_PROLOG = re.compile(r"(?:[ \t\r\n]+|<\?.*?\?>|<!--.*?-->)*", re.DOTALL)
_ENCODING = re.compile(r"<\?xml[^>]*?encoding\s*=\s*[\"']([^\"']*)")
_DECLARATION = '<?xml version="1.0"?>\n'


# Refusing a file -----------------------------------------------------------------------------------------------------


def refusal(code: str, message: str, path: str | os.PathLike[str] | None) -> ModelError:
    """Return a ModelError about an IR, with the help that fits IR files."""
    return model_error(code, message, "" if path is None else path, help=_HELP.get(code))


def quoted(text: str) -> str:
    """Return a part of the file as messages show it: on one line, and not longer than a line."""
    return repr(text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}...")


# The tree ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Style:
    """How a file is written where XML leaves a choice.

    prolog: what comes before the root. epilog: what comes after it. closing: how an empty element ends. newline: the
    line break.
    """

    prolog: str = _DECLARATION
    epilog: str = "\n"
    closing: str = " />"
    newline: str = "\n"


def parse_xml(data: bytes, path: str | os.PathLike[str] | None) -> tuple[Element, Style]:
    """Return the root of a document and the style that it is written in. Raises ModelError (SG101)."""
    from defusedxml import DefusedXmlException
    from defusedxml.sax import make_parser

    handler = _TreeHandler(path)
    parser: Any = make_parser()
    parser.forbid_dtd = True
    parser.setContentHandler(handler)
    parser.setProperty(property_lexical_handler, handler)
    try:
        parser.parse(io.BytesIO(data))
    except DefusedXmlException:
        raise refusal("SG101", "has a document type declaration, which no IR needs; it is not read", path) from None
    except SAXParseException as error:
        place = f"line {error.getLineNumber()}, column {(error.getColumnNumber() or 0) + 1}"
        raise refusal("SG101", f"is not well-formed XML: {error.getMessage()} ({place})", path) from None
    except (SAXException, ValueError, LookupError) as error:
        # What the parser says of an encoding that it does not know.
        raise refusal("SG101", f"is not readable XML: {quoted(str(error))}", path) from None
    return handler.builder.close(), _style_of(data, handler.after_root)


class _TreeHandler(ContentHandler):
    """Builds the tree from the parser's events; also its lexical handler, for comments."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        super().__init__()
        self.builder = TreeBuilder(insert_comments=True, insert_pis=True)
        self.after_root: list[str] = []
        self._path = path
        self._depth = 0
        self._is_done = False

    def startElement(self, name: str, attrs: Any) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise refusal("SG101", f"has elements nested deeper than {_MAX_DEPTH} levels", self._path)
        self.builder.start(name, dict(attrs.items()))

    def endElement(self, name: str) -> None:
        self._depth -= 1
        self._is_done = self._depth == 0
        self.builder.end(name)

    def characters(self, content: str) -> None:
        self.builder.data(content)

    def comment(self, content: str) -> None:
        if self._depth:
            self.builder.comment(content)
        elif self._is_done:
            self.after_root.append(f"<!--{content}-->")

    def processingInstruction(self, target: str, data: str) -> None:
        if self._depth:
            self.builder.pi(target, data or None)
        elif self._is_done:
            self.after_root.append(f"<?{target} {data}?>")

    def startCDATA(self) -> None:
        """The text of a CDATA section is text like other text."""

    def endCDATA(self) -> None:
        """See startCDATA."""

    def startDTD(self, name: str, public_id: str | None, system_id: str | None) -> None:
        """Never gets here: the parser refuses a DTD."""

    def endDTD(self) -> None:
        """See startDTD."""


def _style_of(data: bytes, after_root: list[str]) -> Style:
    text = data.decode("utf-8", errors="replace")
    declared = _ENCODING.match(text.lstrip("\ufeff"))
    if "\0" in text or (declared and declared.group(1).lower() not in ("utf-8", "us-ascii")):
        # Read in another encoding; written in OpenVINO's own.
        return Style()
    newline = "\r\n" if "\r\n" in text else "\n"
    text = text.replace("\r\n", "\n")
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    beginning = _PROLOG.match(text, len(mark))
    prolog = mark + (beginning.group() if beginning else "")
    slash = text.find("/>")
    closing = "/>" if slash > 0 and text[slash - 1] not in _SPACE else " />"
    ending = text[len(text.rstrip(_SPACE)) :]
    epilog = "".join(f"\n{item}" for item in after_root) + ending
    return Style(prolog, epilog, closing, newline)


def copied(element: Element) -> Element:
    """Return a copy of a tree; copy.deepcopy takes three times as long."""
    new = Element(element.tag, element.attrib)
    new.text, new.tail = element.text, element.tail
    new.extend([copied(child) for child in element])
    return new


def write_xml(root: Element, style: Style) -> bytes:
    """Return the bytes of a document, in UTF-8."""
    parts: list[str] = []
    _write(root, parts, style.closing)
    text = f"{style.prolog}{''.join(parts)}{style.epilog}"
    if style.newline != "\n":
        text = text.replace("\n", style.newline)
    return text.encode("utf-8")


def _write(element: Element, parts: list[str], closing: str) -> None:
    tag: Any = element.tag
    if tag is Comment:
        parts.append(f"<!--{element.text or ''}-->")
    elif tag is ProcessingInstruction:
        parts.append(f"<?{element.text or ''}?>")
    else:
        _write_element(element, parts, closing)
    if element.tail:
        parts.append(_escaped_text(element.tail))


def _write_element(element: Element, parts: list[str], closing: str) -> None:
    parts.append(f"<{element.tag}")
    parts.extend(f' {name}="{_escaped_attribute(value)}"' for name, value in element.items())
    if not element.text and not len(element):
        parts.append(closing)
        return
    parts.append(">")
    if element.text:
        parts.append(_escaped_text(element.text))
    for child in element:
        _write(child, parts, closing)
    parts.append(f"</{element.tag}>")


# OpenVINO writes `>` and `'` as they are in attributes, and characters below the space as two decimal digits.
_IN_ATTRIBUTE = re.compile(r'[&<"\x00-\x1f]')
_IN_TEXT = re.compile(r"[&<>\x00-\x08\x0b-\x1f]")
_NAMED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}


def _reference(match: re.Match[str]) -> str:
    character = match.group()
    return _NAMED.get(character) or f"&#{ord(character):02d};"


def _escaped_attribute(text: str) -> str:
    return _IN_ATTRIBUTE.sub(_reference, text)


def _escaped_text(text: str) -> str:
    return _IN_TEXT.sub(_reference, text)
