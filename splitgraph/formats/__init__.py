"""The kinds of model that splitgraph reads and writes."""
