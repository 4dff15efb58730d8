"""Converts a model for a target: each split that the runtime does not read gets a form that it reads."""
