"""Many models in one call: find the models, run a command on each in worker processes, and collect the outcomes."""
