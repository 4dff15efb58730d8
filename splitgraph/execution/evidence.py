"""Whether results that are equal show anything: of NaN, or of a function in saturation, any two models give the same.

Of each output of the first model three things are asked, over all cases together:

- is it a number somewhere: not empty, and not NaN or infinite everywhere;
- where the elements of some input lead to it (not its shape alone): does it differ between two cases, by more than the
  tolerances, in the part that both have, or has it another shape though no input has;
- where floating-point weights lead to it: does it move by more than the tolerances when these are made larger by 20 to
  40 per cent, each by another factor?

An output that fails is silent. What depends on neither inputs nor weights, as a shape does, is asked nothing. Nothing
is shown where all other outputs are silent, where one is never a number, and where some weights lead to silent outputs
alone. Else the silent outputs are named beside the verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.execution import advice
from splitgraph.execution.child import EngineRun, Probe
from splitgraph.execution.comparison import Comparison, is_finite
from splitgraph.execution.dependence import Dependence
from splitgraph.execution.values import Value

Array = npt.NDArray[Any]
# The shapes of the tensors in each input.
Sizes = dict[str, list[tuple[int, ...]]]

_EMPTY, _NO_NUMBER = "empty", "no number but NaN or infinity"
_CONSTANT, _STILL = "not depend on the inputs", "not depend on the weights"
_VERBS = {_EMPTY: ("is", "are"), _NO_NUMBER: ("has", "have"), _CONSTANT: ("does", "do"), _STILL: ("does", "do")}
# So many names are told of outputs or weights.
_MOST_NAMES = 5


@dataclass(slots=True)
class Evidence:
    """What the outputs of the first model have shown so far.

    names: of the outputs. by_inputs: a bit mask of those to which inputs lead that are not the same in each case.
    never_filled: outputs that can have no element. comparison: what counts as a difference. numbers: of each case that
    was compared, with its attempt, how many outputs have a number somewhere or are asked nothing.
    """

    names: Sequence[str]
    dependence: Dependence
    by_inputs: int
    never_filled: frozenset[int]
    comparison: Comparison
    numbers: dict[tuple[int, int], int] = field(default_factory=dict)
    _moving: set[int] = field(default_factory=set)
    _numbers: set[int] = field(default_factory=set)
    _filled: set[int] = field(default_factory=set)
    _varying: set[int] = field(default_factory=set)
    _seen: dict[int, list[tuple[Sizes, Value]]] = field(default_factory=dict)

    def take(self, run: EngineRun, given: Mapping[tuple[int, int], Mapping[str, Value]]) -> None:
        """Take what a run shows; given: the inputs of its cases."""
        self._moving |= run.moving
        for key in sorted(run.outputs[0].keys() & run.outputs[1].keys()):
            self.numbers[key] = self._note(run.outputs[0][key], _sizes(given[key]))

    def best(self) -> list[tuple[int, int]]:
        """The cases so far, with their attempts, in which the most outputs have a number somewhere."""
        most = max(self.numbers.values(), default=0)
        return [key for key, number in self.numbers.items() if number == most]

    @property
    def telling(self) -> int:
        """The number of cases in which some output says something."""
        return sum(number > 0 for number in self.numbers.values())

    def _note(self, outputs: Sequence[Value], sizes: Sizes) -> int:
        """Take what the first model gives for one more case, and count the outputs that have a number somewhere."""
        count = 0
        for position, value in enumerate(outputs):
            arrays = list(_arrays(value))
            if any(array.size for array in arrays):
                self._filled.add(position)
            has_number = any(is_finite(array).any() for array in arrays)
            if has_number:
                self._numbers.add(position)
            count += has_number or not self._is_asked(position)
            if self._has_inputs(position) and position not in self._varying:
                seen = self._seen.setdefault(position, [])
                if any(_differ(other, value, self.comparison, same=sizes == before) for before, other in seen):
                    self._varying.add(position)
                    self._seen.pop(position)
                else:
                    seen.append((sizes, value))
        return count

    def probe(self, *, deploy: bool) -> Probe:
        """What is to be asked of the engine; deploy: whether to load the second model as a deployment would."""
        done = self._moving | self.never_filled
        wanted = [
            position for position in range(len(self.names)) if self._has_weights(position) and position not in done
        ]
        kept = sorted(self.dependence.of_shapes)
        return Probe(wanted, kept, self.comparison.rtol, self.comparison.atol, deploy)

    def silent(self) -> dict[int, str]:
        """Why each silent output shows nothing, by its position."""
        reasons = {position: self._silence(position) for position in range(len(self.names))}
        return {position: reason for position, reason in reasons.items() if reason}

    def _is_asked(self, position: int) -> bool:
        is_led_to = self._has_inputs(position) or self._has_weights(position)
        return is_led_to and position not in self.never_filled

    def _has_inputs(self, position: int) -> bool:
        return bool(self.by_inputs >> position & 1)

    def _has_weights(self, position: int) -> bool:
        return bool(self.dependence.on_weights >> position & 1)

    def _silence(self, position: int) -> str:
        if not self._is_asked(position):
            return ""
        if position not in self._filled:
            return _EMPTY
        if position not in self._numbers:
            return _NO_NUMBER
        if self._has_inputs(position) and position not in self._varying:
            return _CONSTANT
        return _STILL if self._has_weights(position) and position not in self._moving else ""

    def finding(self) -> Diagnostic | None:
        """What limits a verdict of "equal": SG506 where nothing is shown, SG507 where some outputs are silent."""
        silent = self.silent()
        if not silent:
            return None
        asked = [position for position in range(len(self.names)) if self._is_asked(position)]
        alone = self.dependence.leading_only_to(sum(1 << position for position in silent))
        told = "; ".join(filter(None, (self._told(silent, silence) for silence in _VERBS)))
        if len(silent) == len(asked) or alone or _NO_NUMBER in silent.values():
            weights = f". Weights that were not seen to matter: {_listed(alone)}" if alone else ""
            text = (
                f"not verified: all results are equal, but show nothing on the inputs that were tried: {told}{weights}"
            )
            return diagnostic("SG506", text, severity="warning", help=advice.INPUTS)
        text = f"some outputs show nothing on the inputs that were tried: {told}"
        return diagnostic("SG507", text, severity="warning", help=advice.INPUTS)

    def _told(self, silent: Mapping[int, str], silence: str) -> str:
        names = [self.names[position] for position, found in silent.items() if found == silence]
        return f"{_listed(names)} {_VERBS[silence][len(names) > 1]} {silence}" if names else ""


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    return shown if len(names) <= _MOST_NAMES else f"{shown} and {len(names) - _MOST_NAMES} more"


def _arrays(value: Value) -> Iterator[Array]:
    """The tensors in a value."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield np.asarray(item)
    elif isinstance(value, list):
        for item in value:
            yield from _arrays(item)


def _sizes(inputs: Mapping[str, Value]) -> Sizes:
    return {name: [array.shape for array in _arrays(value)] for name, value in inputs.items()}


def _differ(before: Value, after: Value, comparison: Comparison, *, same: bool) -> bool:
    """Whether two values differ by more than what the sizes of the inputs make of them; same: whether those are the
    same.
    """
    left, right = list(_arrays(before)), list(_arrays(after))
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
    left, right = before[common], after[common]
    return left.size > 0 and bool((comparison.wrong(left, right) & is_finite(left) & is_finite(right)).any())
