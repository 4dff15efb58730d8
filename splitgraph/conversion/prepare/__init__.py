"""Rewrites of the whole model that run before the opset ladder."""
