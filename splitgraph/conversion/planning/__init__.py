"""Planning a rewrite, and applying the plan to a copy of the model: all of it or nothing."""
