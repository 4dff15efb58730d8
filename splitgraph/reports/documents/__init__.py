"""JSON documents, as docs and outside programs rely on them: every name here is part of the contract.

Every document begins with `splitgraph`, the version that printed it. docs/reference/schemas/ has a JSON Schema of each.
A command has one skeleton (`skeletons.py`), with the value of each entry for a command that failed before it knew more.
"""
