"""Inference rules by family of operators."""
