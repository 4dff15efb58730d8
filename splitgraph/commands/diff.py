"""`splitgraph diff`."""

from __future__ import annotations

from pathlib import Path

from splitgraph import api
from splitgraph.findings.exit_codes import CLEAN, FINDINGS
from splitgraph.reports.printing import print_document, print_result


def diff(before: Path, after: Path, *, with_all: bool, as_json: bool) -> int:
    """Compare two models and print what differs."""
    difference = api.diff(before, after)
    if as_json:
        from splitgraph.reports.documents.comparisons import difference_document

        print_document(difference_document(difference, str(before), str(after)))
    else:
        from splitgraph.reports.differences import difference_page

        print_result(difference_page(difference, str(before), str(after), with_all=with_all))
    return FINDINGS if difference else CLEAN
