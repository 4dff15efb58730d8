"""Running models in child processes and comparing what they give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from splitgraph.execution.verify import verify_models

__all__ = ["verify_models"]


def __getattr__(name: str) -> Any:
    """Import `verify_models` when it is asked for: an engine's child process imports this package without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from splitgraph.execution.verify import verify_models

    return verify_models
