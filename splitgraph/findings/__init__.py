"""Codes, diagnostics, errors that a user accepts, outcomes of many models, exit codes."""
