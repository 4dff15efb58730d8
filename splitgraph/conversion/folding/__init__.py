"""Folds a model: values that are the same in every run become constants, and nodes that change nothing go.

`fold.py` does it step by step, each step a plan. `uses.py` says who makes and who reads a value; `elements.py` says
what is the same in every run, and `certainty.py` what every runtime gives alike.
"""
