"""Decide whether equal outputs prove anything. Outputs of NaN or of a saturated function are equal in any two models.

Each output of the first model must pass three tests, over all cases together:

- It holds a number somewhere: it is not empty, and not NaN or infinite everywhere.
- If it depends on the elements of an input (not only on its shape), it differs between two cases by more than the
  tolerances, in the part that both cases have; or it has another shape although no input has.
- If it depends on floating-point weights, it changes by more than the tolerances when the weights grow by 20 to 40 per
  cent, each by another factor.

An output that fails a test is silent. The caller may have given inputs: an output that depends on no other inputs need
not differ between cases. An output that depends on neither inputs nor weights, such as a shape, has no tests. Equal
outputs prove nothing (SG506) if all tested outputs are silent, if one never holds a number, or if some weights lead
only to silent outputs. Otherwise the silent outputs are named beside the verdict (SG507).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.verification import help_texts
from splitgraph.verification.comparison import Comparison, has_finite, is_finite
from splitgraph.verification.engines.engine_process import EngineRun, Probe
from splitgraph.verification.models.dependence import Dependence
from splitgraph.verification.values import Array, Value, ValueBlock, blocks, tensors_of

# The shapes of the tensors in each input, by its name.
Shapes = dict[str, list[tuple[int, ...]]]

_EMPTY, _NO_NUMBER = "empty", "only NaN or infinity"
_CONSTANT, _STILL = "not change with the inputs", "not change with the weights"
_VERBS = {_EMPTY: ("is", "are"), _NO_NUMBER: ("holds", "hold"), _CONSTANT: ("does", "do"), _STILL: ("does", "do")}
# A message lists at most so many names of outputs or weights.
_MOST_NAMES = 5


@dataclass(slots=True)
class Evidence:
    """Collects which tests the outputs of the first model have passed so far.

    names: of the outputs. by_inputs: a bit mask of the outputs that depend on inputs which vary between cases.
    by_given: the same of inputs that the caller gave: such an output must hold a number, and need not change.
    never_filled: outputs that never have an element. comparison: decides what counts as a difference. numbers: for each
    case and attempt that was compared, how many outputs hold a number somewhere or have no tests.
    """

    names: Sequence[str]
    dependence: Dependence
    by_inputs: int
    never_filled: frozenset[int]
    comparison: Comparison
    by_given: int = 0
    numbers: dict[tuple[int, int], int] = field(default_factory=dict)
    _moving: set[int] = field(default_factory=set)
    _numbers: set[int] = field(default_factory=set)
    _filled: set[int] = field(default_factory=set)
    _varying: set[int] = field(default_factory=set)
    _seen: dict[int, list[tuple[Shapes, Value]]] = field(default_factory=dict)

    def add(self, run: EngineRun, given: Mapping[tuple[int, int], Mapping[str, Value]]) -> None:
        """Record a run. given: the inputs of its cases."""
        self._moving |= run.moving
        for key in sorted(run.outputs[0].keys() & run.outputs[1].keys()):
            shapes = {name: [array.shape for array in tensors_of(value)] for name, value in given[key].items()}
            self.numbers[key] = self._note(run.outputs[0][key], shapes)

    def best(self) -> list[tuple[int, int]]:
        """Return the cases and attempts in which the most outputs hold a number."""
        most = max(self.numbers.values(), default=0)
        return [key for key, number in self.numbers.items() if number == most]

    @property
    def meaningful_cases(self) -> int:
        """Return in how many cases at least one output holds a number."""
        return sum(number > 0 for number in self.numbers.values())

    def _note(self, outputs: Sequence[Value], sizes: Shapes) -> int:
        """Record the outputs of the first model on a case; return how many of them hold a number or have no tests."""
        count = 0
        for position, value in enumerate(outputs):
            arrays = list(tensors_of(value))
            if any(array.size for array in arrays):
                self._filled.add(position)
            has_number = any(map(has_finite, arrays))
            if has_number:
                self._numbers.add(position)
            count += has_number or not self._is_tested(position)
            if self._has_inputs(position) and position not in self._varying:
                seen = self._seen.setdefault(position, [])
                if any(
                    _differ(seen_value, value, self.comparison, same=sizes == before) for before, seen_value in seen
                ):
                    self._varying.add(position)
                    self._seen.pop(position)
                else:
                    seen.append((sizes, value))
        return count

    def probe(self, *, deploy: bool) -> Probe:
        """Return what the engine process must still find out. deploy: whether to load the second model with
        optimisations.
        """
        settled = self._moving | self.never_filled
        wanted = [
            position for position in range(len(self.names)) if self._has_weights(position) and position not in settled
        ]
        kept = sorted(self.dependence.of_shapes)
        return Probe(wanted, kept, self.comparison.rtol, self.comparison.atol, deploy)

    def silent(self) -> dict[int, str]:
        """Return the reason for each silent output, by its position."""
        reasons = {position: self._silence(position) for position in range(len(self.names))}
        return {position: reason for position, reason in reasons.items() if reason}

    def _is_tested(self, position: int) -> bool:
        is_led_to = self._has_inputs(position) or self._has_weights(position) or bool(self.by_given >> position & 1)
        return is_led_to and position not in self.never_filled

    def _has_inputs(self, position: int) -> bool:
        return bool(self.by_inputs >> position & 1)

    def _has_weights(self, position: int) -> bool:
        return bool(self.dependence.on_weights >> position & 1)

    def _silence(self, position: int) -> str:
        if not self._is_tested(position):
            return ""
        if position not in self._filled:
            return _EMPTY
        if position not in self._numbers:
            return _NO_NUMBER
        if self._has_inputs(position) and position not in self._varying:
            return _CONSTANT
        return _STILL if self._has_weights(position) and position not in self._moving else ""

    def finding(self) -> Diagnostic | None:
        """Return what limits the verdict "equal": SG506 if nothing is proved, SG507 if some outputs are silent."""
        silent = self.silent()
        if not silent:
            return None
        tested = [position for position in range(len(self.names)) if self._is_tested(position)]
        alone = self.dependence.leading_only_to(sum(1 << position for position in silent))
        reasons = "; ".join(filter(None, (self._describe(silent, silence) for silence in _VERBS)))
        if len(silent) == len(tested) or alone or _NO_NUMBER in silent.values():
            weights = f". Weights without a visible effect: {_listed(alone)}" if alone else ""
            text = (
                f"not verified: all outputs are equal, but on the inputs that were tried they prove nothing: {reasons}"
            )
            text += weights
            return diagnostic("SG506", text, severity="warning", help=help_texts.INPUTS)
        text = f"some outputs prove nothing on the inputs that were tried: {reasons}"
        return diagnostic("SG507", text, severity="warning", help=help_texts.INPUTS)

    def _describe(self, silent: Mapping[int, str], silence: str) -> str:
        names = [self.names[position] for position, reason in silent.items() if reason == silence]
        return f"{_listed(names)} {_VERBS[silence][len(names) > 1]} {silence}" if names else ""


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
