"""What stops a pipeline: the errors among the findings of a model."""

from __future__ import annotations

from collections.abc import Iterable

from splitgraph.diagnostics import Diagnostic, SplitgraphError


def raise_errors(found: Iterable[Diagnostic]) -> None:
    """Raise a SplitgraphError with every finding of severity "error", if there are any."""
    errors = [each for each in found if each.severity == "error"]
    if not errors:
        return
    first, more = errors[0], len(errors) - 1
    others = f", and {more} more error{'s' if more > 1 else ''}" if more else ""
    raise SplitgraphError(f"{first.location}: {first.message} [{first.code}]{others}", errors)
