"""What is tried at a case, attempt by attempt, until the first model accepts the inputs: each attempt asks for less
than the one before.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True, slots=True)
class AttemptRule:
    """How inputs are drawn in one attempt.

    round: attempts of one round are drawn, and run in one process, only if none of the round before was accepted.
    zero_or_one: integers are 0 or 1, which most operators take as index, axis or size. only_split_rules: only what
    splits demand is met, as an engine may be less strict than inference elsewhere, and the second model draws where
    only that one names its dimensions. single: the free dimension of this number is 1 and the others are large, for a
    model that is made for one sample at a time and demands it unseen. all_ones: every free dimension is 1, which
    broadcasts with whatever it may have to agree with. signal_length: of the last dimension of floating-point inputs,
    from which a model may cut windows; integers are that number, too, as they may say how much of the signal counts.
    None where it is like any other dimension.
    """

    round: int
    zero_or_one: bool = False
    only_split_rules: bool = False
    single: int | None = None
    all_ones: bool = False
    signal_length: int | None = None

    @property
    def is_first(self) -> bool:
        """True for inputs as they should be: of both signs, with and without what is optional."""
        return self.round == 0

    @property
    def uses_preferences(self) -> bool:
        """True where sizes are sought that show more than others, which the model does not demand."""
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

# The attempts after the first one, round by round.
FURTHER_ROUNDS = [
    list(attempts)
    for number, attempts in groupby(range(len(RETRY_POLICY)), lambda each: RETRY_POLICY[each].round)
    if number
]
