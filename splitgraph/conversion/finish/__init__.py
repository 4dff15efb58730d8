"""Rewrites of the whole model that run after the opset ladder: names of outputs, declared types, the IR version."""
