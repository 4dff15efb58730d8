"""The reference evaluator, imported when it first runs something: onnx's own takes longer than most regions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from splitgraph.model.deferred import Deferred

if TYPE_CHECKING:
    from splitgraph.verification.reference import evaluator
else:
    evaluator = Deferred("splitgraph.verification.reference.evaluator")

__all__ = ["evaluator"]
