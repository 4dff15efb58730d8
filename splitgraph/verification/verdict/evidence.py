"""Decide whether equal outputs of models that only run as a whole prove anything: OpenVINO IR has no regions.

Outputs of NaN are equal in any two models, and so is what does not depend on the inputs. Each output of the first model
must pass two tests, over all cases together:

- It holds a number somewhere: it is not empty, and not NaN or infinite everywhere.
- If it depends on the elements of an input that is drawn, it differs between two cases by more than the tolerances, in
  the part that both cases have; or it has another shape although no input has.

An output that fails a test is silent. Equal outputs prove nothing (SG506) if all tested outputs are silent, or if one
never holds a number. Otherwise the silent outputs are named beside the verdict (SG507).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.verification import help_texts
from splitgraph.verification.comparison import Comparison, has_finite, is_finite
from splitgraph.verification.values import Array, Value, ValueBlock, blocks, tensors_of

_EMPTY, _NO_NUMBER, _CONSTANT = "empty", "only NaN or infinity", "not change with the inputs"
_VERBS = {_EMPTY: ("is", "are"), _NO_NUMBER: ("holds", "hold"), _CONSTANT: ("does", "do")}
# A message lists at most so many names of outputs.
_MOST_NAMES = 5


def find_silence(
    names: Sequence[str],
    cases: Sequence[tuple[Mapping[str, Value], Sequence[Value]]],
    varying: Collection[int],
    tested: Collection[int],
    comparison: Comparison,
) -> Diagnostic | None:
    """Return what limits the verdict "equal": SG506 if nothing is proved, SG507 if some outputs are silent.

    cases: the inputs and the outputs of the first model. varying: the positions of the outputs that depend on inputs
    that are drawn. tested: of all outputs that depend on inputs.
    """
    silent = {
        position: reason
        for position in tested
        if (
            reason := _silence(
                [(given, outputs[position]) for given, outputs in cases], position in varying, comparison
            )
        )
    }
    if not silent:
        return None
    reasons = "; ".join(filter(None, (_described(names, silent, silence) for silence in _VERBS)))
    if len(silent) == len(tested) or _NO_NUMBER in silent.values():
        text = f"not verified: all outputs are equal, but on the inputs that were tried they prove nothing: {reasons}"
        return diagnostic("SG506", text, severity="warning", help=help_texts.INPUTS)
    text = f"some outputs prove nothing on the inputs that were tried: {reasons}"
    return diagnostic("SG507", text, severity="warning", help=help_texts.INPUTS)


def _silence(cases: Sequence[tuple[Mapping[str, Value], Value]], must_vary: bool, comparison: Comparison) -> str:
    arrays = [array for _, value in cases for array in tensors_of(value)]
    if not any(array.size for array in arrays):
        return _EMPTY
    if not any(map(has_finite, arrays)):
        return _NO_NUMBER
    shapes = [
        {name: [array.shape for array in tensors_of(value)] for name, value in given.items()} for given, _ in cases
    ]
    pairs = ((one, other) for other in range(len(cases)) for one in range(other))
    varies = any(
        _differ(cases[one][1], cases[other][1], comparison, same=shapes[one] == shapes[other]) for one, other in pairs
    )
    return _CONSTANT if must_vary and not varies else ""


def _described(names: Sequence[str], silent: Mapping[int, str], silence: str) -> str:
    found = [names[position] for position, reason in silent.items() if reason == silence]
    return f"{_listed(found)} {_VERBS[silence][len(found) > 1]} {silence}" if found else ""


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    return shown if len(names) <= _MOST_NAMES else f"{shown} and {len(names) - _MOST_NAMES} more"


def _differ(before: Value, after: Value, comparison: Comparison, *, same: bool) -> bool:
    """Return True if two values differ, in more than their shape if the inputs had other shapes. same: whether the
    inputs had the same shapes.
    """
    left, right = list(tensors_of(before)), list(tensors_of(after))
    if (before is None) != (after is None):
        return True
    if isinstance(before, dict) and before.keys() != after.keys():
        return True
    if same and [array.shape for array in left] != [array.shape for array in right]:
        return True
    return any(_differ_where_both_are(*pair, comparison) for pair in zip(left, right, strict=False))


def _differ_where_both_are(before: Array, after: Array, comparison: Comparison) -> bool:
    if before.ndim != after.ndim:
        return True
    common = tuple(slice(0, min(pair)) for pair in zip(before.shape, after.shape, strict=True))
    # A text in a tensor without dimensions stays an array.
    selected: ValueBlock = (*common, ...)
    left, right = before[selected], after[selected]
    return any(
        bool((comparison.wrong(*pair) & is_finite(pair[0]) & is_finite(pair[1])).any())
        for block in blocks(left, right)
        if (pair := (left[block], right[block]))[0].size
    )
