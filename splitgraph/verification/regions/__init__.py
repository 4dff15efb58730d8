"""Check what differs between two models where it differs: each changed part alone, on the values that reach it."""
