"""The time that a verification may take, which follows from what the models themselves take.

Both models run on every case, whatever that takes, up to the limit of all: the timeout, or 300 seconds without one. The
checks of the regions come after it, and take at most 20 times what one run of both models takes and a few seconds; a
timeout that the caller gives takes the place of this. What is open then is said (see `verdict.engine_trial`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from splitgraph.options import TIMEOUT

# The checks of regions take as many runs of both models, and so many seconds.
_RUNS, _FEW_SECONDS = 20, 6.0
# The reference evaluator judges what differs for so many seconds in any case.
_JUDGING_SECONDS = 6.0
# Of the time that a caller gives, this share is left for it.
_JUDGING_SHARE = 0.25
# Sizes at which something is decided are looked for in so many seconds, or in a share of the time that a caller gives.
_SEARCHING_SECONDS, _SEARCHING_SHARE = 2.0, 0.25
# More seconds than any run takes. The timers of the operating system overflow at larger numbers.
_LONGEST_TIMEOUT = 1e6


@dataclass(frozen=True, slots=True)
class Budget:
    """deadline: when everything ends, as `time.monotonic` tells it. is_given: the caller gave a timeout."""

    deadline: float
    is_given: bool = True

    @classmethod
    def begun(cls, timeout: float | None, longest: float = TIMEOUT) -> Budget:
        """Return the budget of a verification that begins now."""
        seconds = min(longest if timeout is None else timeout, _LONGEST_TIMEOUT)
        return cls(time.monotonic() + seconds, timeout is not None)

    def checking_ends(self, seconds: Mapping[int, float]) -> float:
        """Return when checks of regions end that begin now. seconds: what a run of each model takes."""
        if self.is_given:
            return self.deadline - _JUDGING_SHARE * max(self.deadline - time.monotonic(), 0.0)
        return min(self.deadline, time.monotonic() + _RUNS * sum(seconds.values()) + _FEW_SECONDS)

    def searching_ends(self) -> float:
        """Return when a search for sizes ends that begins now."""
        now = time.monotonic()
        share = _SEARCHING_SHARE * (self.deadline - now) if self.is_given else 0.0
        return min(self.deadline, now + max(share, _SEARCHING_SECONDS))

    def judging_ends(self, checking: float) -> float:
        """Return when judging ends that begins now. checking: when the checks end."""
        return min(self.deadline, max(checking, time.monotonic() + _JUDGING_SECONDS))
