"""All diagnostic codes: for each a title, its meaning, and advice. A code never changes its meaning."""

from __future__ import annotations

from collections.abc import Mapping

from splitgraph.findings.code_tables.code_info import CodeInfo
from splitgraph.findings.code_tables.conversion import CONVERSION
from splitgraph.findings.code_tables.models import FILES, INFERENCE, SPLITS
from splitgraph.findings.code_tables.program import CALLS, INSTALLATION
from splitgraph.findings.code_tables.targets import TARGETS
from splitgraph.findings.code_tables.verification import VERIFICATION

__all__ = ["CODES", "SECTIONS", "CodeInfo"]

# The codes by what they are about, which their first digit says: SG1xx, SG2xx, and so on.
SECTIONS: Mapping[str, Mapping[str, CodeInfo]] = {
    "The file and the model as a whole": FILES,
    "The split operators": SPLITS,
    "Inference of everything else": INFERENCE,
    "Conversion": CONVERSION,
    "Verification": VERIFICATION,
    "How the program was called": CALLS,
    "What a target reads": TARGETS,
    "The installation": INSTALLATION,
}
CODES: Mapping[str, CodeInfo] = {code: info for codes in SECTIONS.values() for code, info in codes.items()}
