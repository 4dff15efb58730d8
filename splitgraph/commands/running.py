"""Run a command: handle signals and errors, print the failure, return the exit code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from splitgraph.findings.diagnostics import (
    ConversionError,
    Diagnostic,
    InternalError,
    SplitgraphError,
    VerificationError,
    diagnostic,
)
from splitgraph.findings.exit_codes import FINDINGS, WRONG_USAGE
from splitgraph.processes.this_process import OutputError, collection_paused, stopped_cleanly

# Wrong calls and the end of the program; errors after which nothing can be printed.
_NO_FAILURES = (click.ClickException, click.exceptions.Exit, click.Abort, OutputError, BrokenPipeError)


def run_command(command: Callable[..., int], options: Mapping[str, Any]) -> int:
    """Run a command and return its exit code. An error is a line on stderr, an exit code, and with --json a document.
    Raises every exception that is not an error of the model or the call; the program reports those.
    """
    # Objects that a command makes live as long as the process: there is no garbage to collect.
    with stopped_cleanly(), collection_paused():
        try:
            return command(**options)
        except InternalError as error:
            _print_failure(command.__name__, options, error.diagnostics)
            raise
        except SplitgraphError as error:
            _report_error(command.__name__, options, error)
            return FINDINGS if isinstance(error, ConversionError | VerificationError) else WRONG_USAGE
        except _NO_FAILURES:
            raise
        except Exception as error:
            _print_failure(command.__name__, options, [_unexpected(error)])
            raise


def _report_error(command: str, options: Mapping[str, Any], error: SplitgraphError) -> None:
    from splitgraph.reports.printing import say_error

    try:
        _print_failure(command, options, error.diagnostics or [Diagnostic("SG601", "error", str(error))])
    finally:
        # Also where the document cannot be printed.
        say_error(str(error), error.diagnostics)


def _unexpected(error: Exception) -> Diagnostic:
    """Return the diagnostic of an error that neither the model nor the call caused."""
    if isinstance(error, MemoryError):
        return diagnostic("SG602", "out of memory")
    if isinstance(error, OSError):
        # Model files have their own errors: this one comes from the machine.
        return diagnostic("SG602", error.strerror or str(error))
    return diagnostic("SG603", f"{type(error).__name__}: {error}")


def print_usage_failure(command: str, message: str) -> None:
    """Print the document of a wrong call. The model is unknown: the error may be in an option before the model."""
    _print_failure(command, {"as_json": True}, [Diagnostic("SG601", "error", message)])


def _print_failure(command: str, options: Mapping[str, Any], diagnostics: Sequence[Diagnostic]) -> None:
    """With --json, print the document of a command that failed."""
    if not options.get("as_json"):
        return
    from splitgraph.reports.documents.skeletons import failed_document
    from splitgraph.reports.printing import print_document

    print_document(failed_document(command, _model(options), diagnostics))


def _model(options: Mapping[str, Any]) -> str:
    """Return the model of a command; "" if there are many."""
    models = options.get("models", ())
    return models[0] if len(models) == 1 else ""
