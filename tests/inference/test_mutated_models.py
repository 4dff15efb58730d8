"""A small seeded sample of the campaign `tests/campaigns/mutated_models.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CAMPAIGN = Path(__file__).parents[1] / "campaigns" / "mutated_models.py"


def test_what_both_judges_refuse_is_refused() -> None:
    """In a process of its own: the campaign judges each mutant in a fork, which must have no threads."""
    ran = subprocess.run([sys.executable, CAMPAIGN, "--count", "250"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "refused by splitgraph" in ran.stdout
