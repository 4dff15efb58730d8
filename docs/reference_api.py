"""The pages of the Python API, from the signatures and docstrings of the public names: an overview, the functions that
rewrite models, those that read them, and what they return and raise.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from reference_docstrings import as_markdown, signature, type_text

import splitgraph

_NOTE = "<!-- Generated from the docstrings of `splitgraph` by `docs/make_reference.py`; do not edit by hand. -->"
_INTRODUCTION = f"""\
# Python API

{_NOTE}

Everything here is imported from `splitgraph`. A model passed in memory is never changed, and nothing is printed. What a
verb gives back as `.model` is of the kind that went in; a path gives an `onnx.ModelProto` or an `OpenVINOModel`.
`splitgraph.__version__` is the version. [`splitgraph.openvino`](../openvino.md) is for pipelines of OpenVINO.
"""
# In the order of their use, not of the alphabet.
_REWRITING = ("upgrade", "downgrade", "convert", "reshape", "blockers")
_READING = ("infer", "check", "targets", "find_target", "verify", "diff", "report", "map_models", "load", "save")
_PAGE_OF = dict.fromkeys(_REWRITING, "api-rewriting.md") | dict.fromkeys(_READING, "api-reading.md")
# What functions return, by what made it.
_ANALYSES = ("Analysis", "Completeness", "SplitReport", "ValueType", "Dim", "Obligation", "OpenVINOModel")
_REWRITES = ("Rewrite", "Change", "Blockers", "Outcome")
_COMPARISONS = ("Verification", "Region", "Difference")
_DIFFERENCES = ("ModelDifference", "NodeDifference", "NodeForm", "PartDifference", "ValueDifference")
_TARGETS = ("TargetFindings", "NodeAnswer", "Target")
_ERRORS_PAGE = "api-errors.md"
_PAGE_OF_CLASS = (
    dict.fromkeys(_ANALYSES, "api-analyses.md")
    | dict.fromkeys(_REWRITES, "api-rewrites.md")
    | dict.fromkeys((*_COMPARISONS, *_DIFFERENCES), "api-comparisons.md")
    | dict.fromkeys(_TARGETS, "api-targets.md")
    | {"Diagnostic": _ERRORS_PAGE}
)
# Fields that are no part of the contract.
INTERNAL = {"Analysis": ("details",)}


def api_page() -> str:
    """The overview as Markdown: every public name in a line."""
    parts = [_INTRODUCTION, "## Functions\n", "| Function | What it does |\n|---|---|"]
    parts += [_line(name, functions()[name], page) for name, page in _PAGE_OF.items()]
    parts += ["", "## Results and errors\n", "| Class | What it is |\n|---|---|"]
    parts += [_line(known.__name__, known, _PAGE_OF_CLASS[known.__name__]) for known in classes()]
    parts += [_line(known.__name__, known, _ERRORS_PAGE) for known in errors()]
    return "\n".join([*parts, ""])


def rewriting_page() -> str:
    """The page as Markdown of the functions that make another model of a model."""
    return _functions_page("Python: upgrade, downgrade, convert, reshape", _REWRITING)


def reading_page() -> str:
    """The page as Markdown of the functions that read, compare, load and save models."""
    return _functions_page("Python: infer, check, verify, diff, report, many models", _READING)


def analyses_page() -> str:
    """The page as Markdown of what `infer` returns."""
    return _classes_page("Python: what infer returns", _ANALYSES)


def rewrites_page() -> str:
    """The page as Markdown of what rewriting functions return, for one model or for many."""
    return _classes_page("Python: what rewriting functions return", _REWRITES)


def comparisons_page() -> str:
    """The page as Markdown of what `verify` and `diff` return."""
    return _classes_page("Python: what verify and diff return", (*_COMPARISONS, *_DIFFERENCES))


def targets_page() -> str:
    """The page as Markdown of what `check` and `targets` return."""
    return _classes_page("Python: what check and targets return", _TARGETS)


def errors_page() -> str:
    """The page as Markdown of findings, and of what functions raise."""
    return "\n".join([_classes_page("Python: findings and errors", ("Diagnostic",)), "## Errors\n", *_errors()])


def _classes_page(title: str, names: Sequence[str]) -> str:
    parts = [f"# {title}\n\n{_NOTE}\n", "[All functions and classes](api.md)\n"]
    for name in names:
        parts += _class(getattr(splitgraph, name))
    return "\n".join(parts)


def _functions_page(title: str, names: Sequence[str]) -> str:
    told = f"[All functions, and what they return](api.md) · [what they raise]({_ERRORS_PAGE})\n"
    parts = [f"# {title}\n\n{_NOTE}\n", told]
    for name in names:
        parts += _function(name)
    return "\n".join(parts)


def _line(name: str, known: Any, page: str) -> str:
    told = re.split(r"(?<=\.)\s", " ".join(inspect.cleandoc(known.__doc__ or "").split()), maxsplit=1)[0]
    told = told.replace("|", "\\|")
    return f"| [{name}]({page}#{name.lower()}) | {told} |"


def functions() -> dict[str, Callable[..., Any]]:
    """The public functions, by name."""
    return {name: getattr(splitgraph, name) for name in _PAGE_OF}


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
    yield f"## {name}\n"
    yield f"```python\nsplitgraph.{signature(function, name)}\n```\n"
    yield from as_markdown(function, list(inspect.signature(function).parameters))


def _class(known: type) -> Iterator[str]:
    yield f"## {known.__name__}\n"
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
