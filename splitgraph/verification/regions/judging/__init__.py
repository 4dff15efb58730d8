"""Judge results that differ: `arbiter.py` says whether rounding made a difference, or the models."""
