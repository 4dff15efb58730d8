"""Run two models on the same inputs, each time in a new process, and compare their outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from splitgraph.model.deferred import import_whole

if TYPE_CHECKING:
    from splitgraph.verification.verify import verify_models

__all__ = ["verify_models"]


def __getattr__(name: str) -> Any:
    """Import `verify_models` on first use: an engine process imports this package without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import_whole("splitgraph.verification.verify")
    from splitgraph.verification.verify import verify_models

    return verify_models
