"""How many examples a test with hypothesis looks at: in the default tests a quarter, in the slow stage of CI all."""

from __future__ import annotations

import os


def examples(many: int) -> int:
    """Return the number of examples. SPLITGRAPH_EXAMPLES=all gives all of them."""
    return many if os.environ.get("SPLITGRAPH_EXAMPLES") == "all" else many // 4
