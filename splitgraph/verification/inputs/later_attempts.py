"""What later attempts at a case ask for: less, until the first model accepts the inputs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True, slots=True)
class AttemptRule:
    """Says how the inputs of one attempt are drawn.

    round: the attempts of one round run in one process, and only if the model accepted no attempt of earlier rounds.
    zero_or_one: integers are 0 or 1, which most operators accept as an index, axis or size.
    only_split_rules: sizes satisfy only what splits require, because an engine may be less strict than inference. If
    only the second model names its dimensions, it draws these inputs.
    single: the free dimension with this number is 1 and the others are large, for a model that accepts one sample at a
    time and does not say so.
    all_ones: every free dimension is 1, which broadcasts with everything.
    signal_length: the last dimension of floating-point inputs, from which a model may cut windows; integers are this
    number, too, because they may give the length of the signal. None if the last dimension is like any other.
    """

    round: int
    zero_or_one: bool = False
    only_split_rules: bool = False
    single: int | None = None
    all_ones: bool = False
    signal_length: int | None = None

    @property
    def is_first(self) -> bool:
        """Return True for the first attempt: numbers of both signs, with and without optional values."""
        return self.round == 0

    @property
    def uses_preferences(self) -> bool:
        """Return True if sizes should satisfy the preferred constraints, too."""
        return self.round <= 1


RETRY_POLICY = (
    AttemptRule(0),
    AttemptRule(1),
    AttemptRule(1),
    AttemptRule(2),
    AttemptRule(2, zero_or_one=True),
    AttemptRule(2, zero_or_one=True, only_split_rules=True),
    AttemptRule(2, zero_or_one=True, only_split_rules=True),
    *(AttemptRule(2, zero_or_one=True, single=number) for number in range(4)),
    AttemptRule(3, zero_or_one=True, only_split_rules=True, all_ones=True),
    AttemptRule(3, zero_or_one=True, only_split_rules=True, all_ones=True),
    AttemptRule(4, zero_or_one=True, only_split_rules=True, all_ones=True, signal_length=4000),
    AttemptRule(4, zero_or_one=True, only_split_rules=True, all_ones=True, signal_length=256),
)

# The numbers of the attempts after the first one, round by round.
FURTHER_ROUNDS = [
    list(attempts)
    for number, attempts in groupby(range(len(RETRY_POLICY)), lambda attempt: RETRY_POLICY[attempt].round)
    if number
]
