"""What opset conversion knows about each operator. Each file holds one family of operators and reads as a history: a
decision about each boundary with its reason, and below the decision the functions that carry it out (see
`registry.py`).
"""
