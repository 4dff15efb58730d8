"""What conversions write nodes with: shapes computed by nodes, formulas, interpolation, Reshape and its like."""
