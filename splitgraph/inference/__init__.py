"""Types and shapes of every value of a model, symbolic where they depend on the input."""

from __future__ import annotations

from splitgraph.inference.infer import Walked, fix_model, infer_model, later_leeway, walk_model

__all__ = ["Walked", "fix_model", "infer_model", "later_leeway", "walk_model"]
