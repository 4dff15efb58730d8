"""`splitgraph explain`."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.findings.acceptance import ACCEPTABLE
from splitgraph.findings.diagnostics import CODES, SplitgraphError, diagnostic, meant
from splitgraph.findings.exit_codes import CLEAN
from splitgraph.reports.printing import print_document, print_result


def explain(codes: Sequence[str], *, as_json: bool) -> int:
    """Print the meaning of codes; without a code, list all of them. Raises SplitgraphError for an unknown code."""
    known = list(dict.fromkeys(map(_known, codes)))
    if as_json:
        from splitgraph.reports.documents.program import explain_json

        print_document(explain_json({code: CODES[code] for code in known or CODES}, ACCEPTABLE))
        return CLEAN
    from splitgraph.reports.pages import code_page, codes_page
    from splitgraph.reports.text import BLANK

    if not known:
        print_result(codes_page(CODES))
    for position, code in enumerate(known):
        page = code_page(code, CODES[code], ACCEPTABLE.get(code, ""))
        print_result([BLANK, *page] if position else page)
    return CLEAN


def _known(code: str) -> str:
    """Return the code that is meant by a code as people write it: SG203, sg203 or 203."""
    known = code.strip().upper()
    if known.isdigit():
        known = f"SG{known}"
    if known in CODES:
        return known
    near = meant(known, CODES, most=3) or "; 'splitgraph explain' lists all codes"
    text = f"there is no code {code.strip() or repr(code)}{near}"
    raise SplitgraphError(text, [diagnostic("SG601", text)])
