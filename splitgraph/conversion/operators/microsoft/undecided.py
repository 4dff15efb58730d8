"""Operators of com.microsoft that have no standard form in this version, and those of layouts that no file explains."""

from __future__ import annotations

from splitgraph.conversion.operators.standard import without_form

without_form(
    "CausalConvWithState EngramGate GatedAdd GatedDeltaNet HyperConnectionPostMix HyperConnectionPreMix "
    "LinearAttention LinearAttentionGate VarlenCausalConvWithState",
    "this version of splitgraph does not write it",
)
without_form(
    "AveragePool Conv GlobalAveragePool GlobalMaxPool MaxPool ReorderInput ReorderOutput Upsample",
    "its channels lie in blocks as wide as those of the processor that saved the model, which the model does not tell; "
    "save it again at the level extended",
    domain="com.microsoft.nchwc",
)
