"""Targets: the runtimes that models are for, and what each of them reads."""
