"""Run a model in a runtime itself, by whatever Python has the runtime."""
