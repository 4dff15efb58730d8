"""Reads and describes a ModelProto in memory.

- `scopes`: its graphs, subgraphs and functions, how each is addressed, how deep they are nested, the order of nodes.
- `names`: the names in use, new names, and the node or constant that a name stands for.
- `values`: declared types and constant tensors, as `ValueType` and `Contents`.
"""
