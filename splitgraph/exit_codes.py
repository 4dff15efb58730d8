"""Exit codes of the command line."""

from __future__ import annotations

CLEAN = 0
FINDINGS = 1
WRONG_USAGE = 2
NOT_CHECKED = 3
INTERNAL_ERROR = 70
INTERRUPTED = 130
BROKEN_PIPE = 141
