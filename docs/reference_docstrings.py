"""What a docstring and a signature say, as Markdown.

Docstrings say what a parameter or a field means as `name: meaning.`, with several to a line, and as `a, b: meaning.`
for several names.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from types import EllipsisType, UnionType
from typing import Any, ForwardRef, Literal, NamedTuple, get_args, get_origin

_WORD = re.compile(r"[A-Za-z_]\w*")
_LONGEST_LINE = 100


class Paragraph(NamedTuple):
    """A paragraph of a docstring: what it says first, then what it says of each name or names."""

    text: str
    named: tuple[tuple[tuple[str, ...], str], ...]


def paragraphs(documented: Any, names: Collection[str]) -> Iterator[Paragraph]:
    """The paragraphs of a docstring; names: those that it may explain."""
    known = "|".join(map(re.escape, names)) or "(?!)"
    heading = re.compile(rf"(?:^|(?<=\. )|(?<=\) ))((?:{known})(?:, (?:{known}))*): ")
    for paragraph in inspect.cleandoc(documented.__doc__ or "").split("\n\n"):
        pieces = heading.split(" ".join(paragraph.split()))
        named = [(tuple(name.split(", ")), text.strip()) for name, text in zip(pieces[1::2], pieces[2::2], strict=True)]
        yield Paragraph(pieces[0].strip(), tuple(named))


def explained(documented: Any, names: Collection[str]) -> set[str]:
    """Those of the names that a docstring explains."""
    return {name for paragraph in paragraphs(documented, names) for group, _ in paragraph.named for name in group}


def as_markdown(documented: Any, names: Collection[str], spelled: Mapping[str, str] | None = None) -> Iterator[str]:
    """A docstring with a list of the names that it explains; spelled: how a name is written, with its type."""
    for text, named in paragraphs(documented, names):
        if text:
            yield f"{text}\n"
        for group, meaning in named:
            yield f"- {', '.join(f'`{(spelled or {}).get(name, name)}`' for name in group)}: {meaning}"
        if named:
            yield ""


def signature(function: Callable[..., Any], name: str) -> str:
    """A call of a function with its types, on one line where it fits."""
    written = inspect.signature(function)
    pieces: list[str] = []
    for parameter in written.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in pieces:
            pieces.append("*")
        default = "" if parameter.default is parameter.empty else f" = {_literal(parameter.default)}"
        pieces.append(f"{parameter.name}: {type_text(parameter.annotation, function)}{default}")
    result = type_text(written.return_annotation, function)
    line = f"{name}({', '.join(pieces)}) -> {result}"
    if len(line) <= _LONGEST_LINE:
        return line
    return "\n".join((f"{name}(", *(f"    {piece}," for piece in pieces), f") -> {result}"))


def type_text(annotation: str | ForwardRef, home: Any) -> str:
    """A type as it is written, with the names that its module has for longer types written out."""
    scope = vars(inspect.getmodule(home))
    # The fields of a NamedTuple have their types wrapped.
    annotation = annotation.__forward_arg__ if isinstance(annotation, ForwardRef) else annotation
    # Python keeps an annotation with single quotes, however it was written.
    return _WORD.sub(lambda found: _written_out(scope.get(found[0])) or found[0], annotation.replace("'", '"'))


def _written_out(meant: Any) -> str:
    """What a module's own name for a type stands for; "" for a class, and for anything else."""
    parts = get_args(meant)
    if get_origin(meant) is Literal:
        return f"Literal[{', '.join(map(_literal, parts))}]"
    if get_origin(meant) is tuple:
        return f"tuple[{', '.join(map(_part, parts))}]"
    if isinstance(meant, UnionType):
        return " | ".join(map(_part, parts))
    return ""


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    return "..." if isinstance(part, EllipsisType) else _written_out(part) or str(part.__name__)


def _literal(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)
