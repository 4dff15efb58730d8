"""Exit codes of the command line and their meanings. They are part of the contract: a code keeps its meaning."""

from __future__ import annotations

CLEAN = 0
FINDINGS = 1
WRONG_USAGE = 2
NOT_CHECKED = 3
INTERNAL_ERROR = 70
INTERRUPTED = 130
BROKEN_PIPE = 141

# One sentence for each, which `--help` and the reference show.
MEANINGS: dict[int, str] = {
    CLEAN: "Success: nothing is wrong.",
    FINDINGS: "The model is wrong, the conversion is blocked, or the models differ.",
    WRONG_USAGE: "The call is wrong, or a file cannot be read or written.",
    NOT_CHECKED: "The models could not be compared.",
    INTERNAL_ERROR: "A bug in splitgraph; please report it.",
    INTERRUPTED: "Interrupted by Ctrl+C.",
    BROKEN_PIPE: "The program that reads the output stopped reading.",
}
