"""Find what differs between two models, and cut it out: `find.py` finds the regions, `cut.py` makes models of them."""
