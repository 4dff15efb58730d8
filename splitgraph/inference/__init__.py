"""Types and shapes of every value of a model, symbolic where they depend on the input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from splitgraph.model.deferred import import_whole

if TYPE_CHECKING:
    from splitgraph.inference.infer import Walked, fix_model, infer_model, later_leeway, walk_model

__all__ = ["Walked", "fix_model", "infer_model", "later_leeway", "walk_model"]


def __getattr__(name: str) -> Any:
    """Import what infers on first use: an engine process reads other modules of this package alone."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import_whole("splitgraph.inference.infer")
    from splitgraph.inference import infer

    return getattr(infer, name)
