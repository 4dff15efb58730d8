"""Initializers that are also inputs: they are defaults that a caller may replace, and therefore no constants."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from math import prod

from splitgraph.dim import Dim, symbols_of
from splitgraph.findings.diagnostics import ConversionError, Diagnostic, diagnostic
from splitgraph.model.onnx_proto import ModelProto, TensorProto
from splitgraph.model.value_type import ValueType
from splitgraph.model.values import INTEGER_TYPES

# Before IR 4 every initializer was listed as an input, and is the constant that it holds.
_DEFAULTS_SINCE = 4
# Longer tensors of integers hold data, not shapes.
_MOST_ELEMENTS = 64
_REMEDY = (
    "If no caller replaces the defaults of inputs, use --assume-defaults (Python: assume_defaults=True), or let "
    "convert --fix-defaults (fix_defaults=True) take them out of the inputs."
)


def defaults_of(model: ModelProto) -> list[TensorProto]:
    """Return the initializers of a model that are also inputs, so that a caller may replace them; each name once."""
    if model.ir_version < _DEFAULTS_SINCE or not model.graph.initializer:
        return []
    inputs = {value.name for value in model.graph.input}
    return list(
        {
            initializer.name: initializer for initializer in model.graph.initializer if initializer.name in inputs
        }.values()
    )


def may_tell_shapes(tensor: TensorProto) -> bool:
    """Return True for a tensor of few integers: shapes may be computed from it."""
    return tensor.data_type in INTEGER_TYPES and prod(tensor.dims) <= _MOST_ELEMENTS


def left_open(types: Mapping[str, ValueType], assumed: Mapping[str, ValueType], generated: frozenset[str]) -> int:
    """Return how many dimensions are unknown only because defaults are not constants. types, assumed: the types of all
    values without and with defaults as constants. generated: the symbols for unknown dimensions in `types`.
    """
    return sum(_opened(types.get(name), value, generated) for name, value in assumed.items())


def _opened(known: ValueType | None, assumed: ValueType, generated: frozenset[str]) -> int:
    if assumed.shape is None:
        return 0
    if known is None or known.shape is None or len(known.shape) != len(assumed.shape):
        return sum(1 for dim in assumed.shape if isinstance(dim, int))
    pairs = zip(known.shape, assumed.shape, strict=True)
    return sum(1 for mine, theirs in pairs if isinstance(theirs, int) and _is_open(mine, generated))


def _is_open(dim: int | Dim | None, generated: frozenset[str]) -> bool:
    return dim is None or (isinstance(dim, Dim) and not symbols_of(dim).isdisjoint(generated))


def defaults_left_open(count: int, dims: int) -> Diagnostic:
    """Return the finding that defaults leave dimensions unknown."""
    inputs = "1 input has a default" if count == 1 else f"{count} inputs have defaults"
    dimensions = "1 dimension is" if dims == 1 else f"{dims} dimensions are"
    text = f"{inputs} that a caller may replace, so {dimensions} unknown"
    return diagnostic("SG305", text, "main", severity="info")


def findings_about_defaults(model: ModelProto, *, assumed: bool) -> list[Diagnostic]:
    """Return the finding that defaults were taken for constants, if they were and the model has some."""
    defaults = defaults_of(model) if assumed else []
    return [defaults_assumed(len(defaults))] if defaults else []


def notes_about_new_defaults(before: int, model: ModelProto) -> list[Diagnostic]:
    """Return the finding that constants of a model have become defaults with its IR version. before: the IR version of
    which the model was.
    """
    count = len(defaults_of(model))
    if before >= _DEFAULTS_SINCE or not count:
        return []
    told = "1 initializer is an input: it is a default" if count == 1 else f"{count} initializers are inputs: defaults"
    text = f"{told} from IR version {_DEFAULTS_SINCE} on, which a caller may replace"
    help = "If nobody replaces them, take them out of the inputs with convert --fix-defaults (fix_defaults=True)."
    return [diagnostic("SG305", text, "main", severity="info", help=help)]


def with_remedy(error: ConversionError, left: Collection[Diagnostic]) -> ConversionError:
    """Return the refusal of a conversion. Each blocker that constant defaults would remove gets the remedy. left: the
    blockers that remain if defaults are constants.
    """
    still = {finding.location for finding in left}
    text, told = str(error), []
    for finding in error.diagnostics:
        if finding.severity != "error" or finding.location in still:
            told.append(finding)
            continue
        message = f"{finding.message}; this depends on the default of an input, which a caller may replace"
        told.append(replace(finding, message=message, help=_REMEDY))
        text = text.replace(finding.message, message)
    if told != list(error.diagnostics):
        text += f"\n  {_REMEDY}"
    return ConversionError(text, told)


def defaults_assumed(count: int) -> Diagnostic:
    """Return the finding that defaults were taken for constants."""
    inputs = "the default of 1 input is" if count == 1 else f"the defaults of {count} inputs are"
    help = "The result holds only if no caller replaces a default."
    return diagnostic("SG305", f"{inputs} treated as constant", "main", severity="info", help=help)
