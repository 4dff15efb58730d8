"""Check regions with an engine: `check.py` asks, `local_check.py` runs them, and `inside.py` looks into bodies."""
