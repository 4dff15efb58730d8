"""Other sizes for a model: its inputs get them, and constants that say an old size are made to follow.

`wanted.py` reads which dimensions change; `follow.py` walks the model with symbols in their place, reads constants in
terms of them (`readings.py`), and finds what is still in the way (`origins.py`); `write.py` writes constants and nodes;
`convert.py` does it all.
"""
