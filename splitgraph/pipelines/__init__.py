"""splitgraph as a step of other tools' pipelines: passes for onnx_ir, a pass for Olive.

Each adapter is imported by its own name, because it extends a class of its tool:

>>> from splitgraph.pipelines.onnx_ir_passes import ConvertPass
>>> from splitgraph.pipelines.olive_pass import SplitgraphConversion
"""

from __future__ import annotations

from collections.abc import Iterable

from splitgraph.findings.diagnostics import Diagnostic, SplitgraphError

# Refusals -------------------------------------------------------------------------------------------------------------


def raise_errors(diagnostics: Iterable[Diagnostic]) -> None:
    """Raise a SplitgraphError with every finding of severity "error", if there are any."""
    errors = [finding for finding in diagnostics if finding.severity == "error"]
    if not errors:
        return
    first, more = errors[0], len(errors) - 1
    others = f", and {more} more error{'s' if more > 1 else ''}" if more else ""
    raise SplitgraphError(f"{first.location}: {first.message} [{first.code}]{others}", errors)
