"""The table of targets, the traits of a model in the words of this table, and the check of a model."""
