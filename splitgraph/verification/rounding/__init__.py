"""Decide how much rounding may change the outputs of a rewritten model."""
