"""Compare two models by running them."""

from __future__ import annotations

from splitgraph import api
from splitgraph.execution.verification import Verification
from splitgraph.exit_codes import CLEAN, FINDINGS, NOT_CHECKED
from splitgraph.formats import open_model
from splitgraph.options import ATOL, RTOL
from splitgraph.work.task import Task

# The exit code of each verdict.
CODES = {"equal": CLEAN, "different": FINDINGS, "not-run": NOT_CHECKED}


def verify_files(task: Task) -> Verification:
    """Compare two models. Raises SplitgraphError."""
    assert task.after is not None
    given = task.running
    rtol, atol = RTOL if given.rtol is None else given.rtol, ATOL if given.atol is None else given.atol
    before, after = (open_model(each, weights="leave") for each in (task.model, task.after))
    return api.compared(before, after, given._replace(rtol=rtol, atol=atol))
