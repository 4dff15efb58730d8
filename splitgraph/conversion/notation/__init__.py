"""Building blocks with which adapters write nodes: shapes computed by nodes, formulas, interpolation, Reshape and
function bodies.
"""
