"""Find sizes at which changed nodes may differ: `size_limits.py` looks for limits, `windows.py` for wide windows."""
