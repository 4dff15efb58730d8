"""Converting split nodes: to another opset, and to another form at the same opset."""
