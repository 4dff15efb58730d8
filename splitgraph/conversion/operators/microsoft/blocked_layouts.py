"""Operators of com.microsoft.nchwc, whose layout no model tells."""

from __future__ import annotations

from splitgraph.conversion.operators.standard import without_form

without_form(
    "AveragePool Conv GlobalAveragePool GlobalMaxPool MaxPool ReorderInput ReorderOutput Upsample",
    "its channels lie in blocks as wide as those of the processor that saved the model, which the model does not tell; "
    "save it again at the level extended",
    domain="com.microsoft.nchwc",
)
