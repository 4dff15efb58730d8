"""What campaigns share: their results as a JSON file, and a page that is written from it."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def measured_at() -> str:
    """The date of the commit that is measured."""
    command = ["git", "log", "-1", "--format=%cs"]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE).stdout.strip()


def keep(results: Mapping[str, Any], path: Path, page: Callable[[Mapping[str, Any]], str], page_path: Path) -> None:
    """Write the results and their page; the page is made of what a reader of the file finds."""
    path.write_text(json.dumps(results, indent=1) + "\n")
    page_path.write_text(page(json.loads(path.read_text())))


def counted_lines(reasons: Counter[str]) -> Iterator[str]:
    """A line of a list for each reason, with how often it stands; the most frequent one first."""
    for reason, count in reasons.most_common():
        yield f"- {count} × {reason.replace('|', '/')}"
