"""Many models in one call: finds them, runs a command on each in worker processes, and collects what became of them."""
