"""The folder in which files of other machines are kept."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """The folder in SPLITGRAPH_CACHE, or else `splitgraph` in the user's folder for caches. It may not exist yet."""
    named = os.environ.get("SPLITGRAPH_CACHE")
    if named:
        return Path(named)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "splitgraph"
