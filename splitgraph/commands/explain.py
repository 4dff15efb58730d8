"""`splitgraph explain`."""

from __future__ import annotations

from splitgraph.findings.acceptance import ACCEPTABLE
from splitgraph.findings.diagnostics import CODES
from splitgraph.findings.exit_codes import CLEAN, WRONG_USAGE
from splitgraph.reports.pages import code_page, codes_page
from splitgraph.reports.printing import print_result, say_error


def explain(code: str | None) -> int:
    """Print the meaning of a code, or without a code the list of all codes."""
    if code is None:
        print_result(codes_page(CODES))
        return CLEAN
    known = code.strip().upper()
    if known.isdigit():
        known = f"SG{known}"
    if known not in CODES:
        return _say_unknown(code, known)
    print_result(code_page(known, CODES[known], ACCEPTABLE.get(known, "")))
    return CLEAN


def _say_unknown(code: str, known: str) -> int:
    from difflib import get_close_matches

    close = get_close_matches(known, CODES)
    also = f"did you mean {' or '.join(close)}?" if close else "'splitgraph explain' lists all codes"
    say_error(f"there is no code {code.strip() or repr(code)}; {also}")
    return WRONG_USAGE
