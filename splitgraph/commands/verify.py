"""`splitgraph verify`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from splitgraph import api
from splitgraph.arguments import parse_bindings
from splitgraph.exit_codes import CLEAN, FINDINGS, NOT_CHECKED
from splitgraph.report.printing import print_document, print_result, working


def verify(before: Path, after: Path, *, bind: Sequence[str], as_json: bool, **options: Any) -> int:
    """Compare two models by running them; options: the keywords of `api.verify`."""
    bindings = parse_bindings(bind)
    with working("running both models"):
        verification = api.verify(before, after, bind=bindings, **options)
    if as_json:
        from splitgraph.report.documents import verification_json

        print_document(verification_json(verification))
    else:
        from splitgraph.report.pages import verification_page

        print_result(verification_page(verification))
    return {"equal": CLEAN, "different": FINDINGS, "not-run": NOT_CHECKED}[verification.verdict]
