"""What is tried at a case, attempt by attempt, until the first model accepts the inputs: each attempt asks for less
than the one before.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True, slots=True)
class Manner:
    """How inputs are drawn in one attempt.

    round: attempts of one round are drawn, and run in one process, only if none of the round before was accepted.
    is_timid: integers are 0 or 1, which most operators take as index, axis or size. is_lenient: only what splits demand
    is met, as an engine may be less strict than inference elsewhere, and the second model draws where only that one
    names its dimensions. single: the free dimension of this number is 1 and the others are large, for a model that is
    made for one sample at a time and demands it unseen. is_plain: every free dimension is 1, which broadcasts with
    whatever it may have to agree with. signal_length: of the last dimension of floating-point inputs, from which a
    model may cut windows; integers are that number, too, as they may say how much of the signal counts. None where it
    is like any other dimension.
    """

    round: int
    is_timid: bool = False
    is_lenient: bool = False
    single: int | None = None
    is_plain: bool = False
    signal_length: int | None = None

    @property
    def is_first(self) -> bool:
        """True for inputs as they should be: of both signs, with and without what is optional."""
        return self.round == 0

    @property
    def is_preferring(self) -> bool:
        """True where sizes are sought that show more than others, which the model does not demand."""
        return self.round <= 1


MANNERS = (
    Manner(0),
    Manner(1),
    Manner(1),
    Manner(2),
    Manner(2, is_timid=True),
    Manner(2, is_timid=True, is_lenient=True),
    Manner(2, is_timid=True, is_lenient=True),
    *(Manner(2, is_timid=True, single=number) for number in range(4)),
    Manner(3, is_timid=True, is_lenient=True, is_plain=True),
    Manner(3, is_timid=True, is_lenient=True, is_plain=True),
    Manner(4, is_timid=True, is_lenient=True, is_plain=True, signal_length=4000),
    Manner(4, is_timid=True, is_lenient=True, is_plain=True, signal_length=256),
)

# The attempts after the first one, round by round.
FURTHER_ROUNDS = [
    list(attempts) for number, attempts in groupby(range(len(MANNERS)), lambda each: MANNERS[each].round) if number
]
