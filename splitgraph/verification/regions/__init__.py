"""Check what differs between two models where it differs: each changed part alone, on the values that reach it.

`finding/` finds the regions that differ, and cuts them out; `drawing/` draws values for their inputs; `sizes/` finds
sizes at which they may differ; `judging/` tells rounding from a difference; `checking/` runs them, and says what became
of each. A folder imports only from those before it, and `judging/` nothing from `sizes/`.
"""
