"""Rewriting models: between the split variants, and from opset to opset."""
