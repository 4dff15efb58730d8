"""The page of the Python API, from the signatures and docstrings of the public names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from reference_docstrings import as_markdown, signature, type_text

import splitgraph

_INTRODUCTION = """\
# Python API

<!-- Generated from the docstrings of `splitgraph` by `docs/make_reference.py`; do not edit by hand. -->

Everything here is imported from `splitgraph`. A model passed in memory is never changed, and nothing is printed. What a
verb gives back as `.model` is of the kind that went in; a path gives an `onnx.ModelProto` or an `OpenVINOModel`.
`splitgraph.__version__` is the version. [`splitgraph.openvino`](../openvino.md) is for pipelines of OpenVINO.
"""
# In the order of their use, not of the alphabet.
_VERBS = (
    *("infer", "upgrade", "downgrade", "convert", "reshape", "blockers", "check", "targets", "find_target"),
    *("verify", "diff", "report", "map_models", "load", "save"),
)
# Fields that are no part of the contract.
INTERNAL = {"Analysis": ("details",)}


def api_page() -> str:
    """The page as Markdown: functions, results, errors."""
    parts = [_INTRODUCTION, "## Functions\n"]
    for name in _VERBS:
        parts += _function(name)
    parts.append("## Classes\n")
    for known in classes():
        parts += _class(known)
    parts.append("## Errors\n")
    parts += _errors()
    return "\n".join(parts)


def functions() -> dict[str, Callable[..., Any]]:
    """The public functions, by name."""
    return {name: getattr(splitgraph, name) for name in _VERBS}


def classes() -> list[type]:
    """The public classes that are no errors, in alphabetical order."""
    return [value for value in _public() if isinstance(value, type) and not issubclass(value, Exception)]


def errors() -> list[type]:
    """The public errors, in alphabetical order."""
    return [value for value in _public() if isinstance(value, type) and issubclass(value, Exception)]


def fields(known: type) -> list[str]:
    """The public fields of a class, in the order of its definition."""
    internal = INTERNAL.get(known.__name__, ())
    return [name for name in inspect.get_annotations(known) if name[0] != "_" and name not in internal]


def members(known: type) -> dict[str, Any]:
    """The public properties and methods that a class defines, by name."""
    found = {name: value for name, value in vars(known).items() if name[0] != "_"}
    return {name: value for name, value in found.items() if isinstance(value, property) or inspect.isfunction(value)}


def _public() -> list[Any]:
    return [getattr(splitgraph, name) for name in sorted(splitgraph.__all__)]


def _function(name: str) -> Iterator[str]:
    function = functions()[name]
    yield f"### {name}\n"
    yield f"```python\nsplitgraph.{signature(function, name)}\n```\n"
    yield from as_markdown(function, list(inspect.signature(function).parameters))


def _class(known: type) -> Iterator[str]:
    yield f"### {known.__name__}\n"
    yield from as_markdown(known, fields(known), _fields_with_types(known))
    described = [_member(name, value) for name, value in members(known).items()]
    if described:
        yield "Properties and methods:\n"
        yield from described
        yield ""


def _fields_with_types(known: type) -> dict[str, str]:
    written = inspect.get_annotations(known)
    return {name: f"{name}: {type_text(written[name], known)}" for name in fields(known)}


def _member(name: str, value: Any) -> str:
    if isinstance(value, property):
        told, written = value.fget, f"{name}: {type_text(inspect.signature(value.fget).return_annotation, value.fget)}"
    else:
        told, written = value, signature(value, name)
    return f"- `{written}`: {' '.join(inspect.cleandoc(told.__doc__ or '').split())}"


def _errors() -> Iterator[str]:
    yield from _tree(Exception, errors(), depth=0)
    yield ""
    for error in errors():
        yield f"### {error.__name__}\n"
        yield from as_markdown(error, fields(error), _fields_with_types(error))


def _tree(base: type, known: Sequence[type], depth: int) -> Iterator[str]:
    """A nested list of the errors that are made of another."""
    for error in known:
        if base in error.__bases__:
            yield f"{'  ' * depth}- [{error.__name__}](#{error.__name__.lower()})"
            yield from _tree(error, known, depth + 1)
