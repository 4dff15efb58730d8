"""Reading a ModelProto: its graphs, subgraphs and functions, its constants, its names."""
