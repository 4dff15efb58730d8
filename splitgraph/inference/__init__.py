"""Types and shapes of every value of a model, symbolic where they depend on the input."""
