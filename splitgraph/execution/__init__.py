"""Running models in child processes and comparing what they give."""
