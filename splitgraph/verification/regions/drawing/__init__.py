"""Draw values on which a region may differ: `draw.py` draws all kinds of them, each kind from a file of its own."""
