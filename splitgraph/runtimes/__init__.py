"""What runtimes read: the table of targets, the traits of a model in its words, and the check of a model."""
