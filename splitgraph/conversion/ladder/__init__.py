"""Converting nodes from opset to opset, one boundary of their operator after the other."""
