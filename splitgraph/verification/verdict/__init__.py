"""Turn the runs of the engines into a verdict: equal, different or not run."""
