"""What the reference evaluator gives for suspects of one region: as they are, in float64, and with moved constants.

It takes longer to begin than to run, so what one suspect needs is run for all that are judged together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import onnx

from splitgraph.verification.comparison import OutOfTimeError
from splitgraph.verification.engines.engine_process import Suspect
from splitgraph.verification.regions.judging.rounded_constants import with_moved_constants
from splitgraph.verification.regions.judging.widening import widened_as_a_whole
from splitgraph.verification.values import Value, tensors_of

# Suspects with more bytes of inputs are run with moved constants one by one.
_MOST_BYTES = 2**22

Sides = list[list[Value]]
# Runs two models on each of some inputs.
Run = Callable[[Sequence[onnx.ModelProto], Sequence[Mapping[str, Value]]], "list[Answers]"]


class Answers(NamedTuple):
    """What the evaluator gives for both sides, None where it fails. is_late: or where the time was over before."""

    outputs: tuple[list[Value] | None, list[Value] | None]
    is_late: bool

    def sides(self) -> Sides | None:
        """Return the outputs of both sides; None if the evaluator does not run both. Raises OutOfTimeError."""
        before, after = self.outputs
        if before is not None and after is not None:
            return [before, after]
        if self.is_late:
            raise OutOfTimeError
        return None


class Evaluations:
    """Runs a region. models, folders: before and after. together: the suspects that are judged together, and asked:
    those on which the models run as they are.
    """

    def __init__(
        self,
        models: Sequence[onnx.ModelProto],
        folders: Sequence[Path | None],
        together: Sequence[Suspect],
        asked: Sequence[Suspect],
        run: Run,
    ) -> None:
        self.models, self.run = models, run
        self._folders, self._together = folders, together
        self._plain = self._by_suspect(asked, run(models, [suspect.inputs for suspect in asked]))
        self._exact: dict[int, Answers] = {}
        self._moved: dict[int, list[Answers]] = {}

    def plain(self, suspect: Suspect) -> Answers | None:
        """Return what the models give as they are; None for a suspect that was not asked."""
        return self._plain.get(_key(suspect))

    def wide(self, suspect: Suspect) -> tuple[list[onnx.ModelProto], dict[str, Value]]:
        """Return both models and the inputs in float64."""
        return widened_as_a_whole(self.models, self._folders, suspect)

    def exact(self, suspect: Suspect) -> Sides | None:
        """Return what both sides give in float64; None if the evaluator does not run both. Raises OutOfTimeError."""
        if _key(suspect) not in self._exact:
            wide, group = self._like(suspect)
            self._exact |= self._by_suspect([each for each, _ in group], self.run(wide, [own for _, own in group]))
        return self._exact[_key(suspect)].sides()

    def with_moved_constants(self, suspect: Suspect) -> list[Sides] | None:
        """Return what both sides give in float64, with their rounded constants as they are, and then moved. None if
        they have none, or the evaluator does not run them. Raises OutOfTimeError.
        """
        if _key(suspect) not in self._moved:
            wide, group = self._like(suspect)
            if sum(_bytes_of(inputs) for _, inputs in group) > _MOST_BYTES:
                group = [(each, inputs) for each, inputs in group if _key(each) == _key(suspect)]
            found = with_moved_constants(self.models, wide, [inputs for _, inputs in group])
            if found is None:
                return None
            answers = iter(self.run(found.models, [each for ways in found.inputs for each in ways]))
            for (each, _), ways in zip(group, found.inputs, strict=True):
                self._moved[_key(each)] = [next(answers) for _ in ways]
        sides = [each.sides() for each in self._moved[_key(suspect)]]
        given = [each for each in sides if each is not None]
        return given if len(given) == len(sides) else None

    def _like(self, suspect: Suspect) -> tuple[list[onnx.ModelProto], list[tuple[Suspect, dict[str, Value]]]]:
        """Return the models in float64 for a suspect, and the suspects with the same ones, each with its inputs."""
        wide, own = self.wide(suspect)
        group = [(suspect, own)]
        for other in self._together:
            if _key(other) != _key(suspect) and _types_of(other) == _types_of(suspect):
                group.append((other, self.wide(other)[1]))
        return wide, group

    def _by_suspect(self, suspects: Sequence[Suspect], answers: Sequence[Answers]) -> dict[int, Answers]:
        return {_key(suspect): each for suspect, each in zip(suspects, answers, strict=True)}


def _key(suspect: Suspect) -> int:
    """Return what tells a suspect from the others, also with other outputs."""
    return id(suspect.inputs)


def _types_of(suspect: Suspect) -> list[str]:
    values: Iterator[Value] = iter((*suspect.inputs.values(), *suspect.outputs[0]))
    return [array.dtype.name for value in values for array in tensors_of(value)]


def _bytes_of(inputs: Mapping[str, Value]) -> int:
    return sum(array.nbytes for value in inputs.values() for array in tensors_of(value))
