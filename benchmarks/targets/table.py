"""Writes the files of targets from measured answers: how a runtime was run, and its limits.

    python benchmarks/targets/table.py RESULT...

Each RESULT is a file that `measure.py` wrote. What a runtime does with operators is in the files of `factor_table.py`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from prose import PROSE

TABLE = Path(__file__).parents[2] / "splitgraph" / "runtimes" / "table"
# Forms of this prefix only probe opsets and IR versions.
_PROBE = "zz_"


def main(results: Sequence[Path]) -> None:
    """Write the file of each result."""
    for path in results:
        entry = entry_of(json.loads(path.read_text()))
        target = TABLE / f"{entry['name']}@{entry['version']}.json"
        target.write_text(json.dumps(entry, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{target.name}: opset {entry['newest_opset']}, IR version {entry['newest_ir_version']}")


def entry_of(measured: Mapping[str, Any]) -> dict[str, Any]:
    """The file of a runtime."""
    prose, answers = PROSE[measured["runtime"]], measured["answers"]
    newest_opset, newest_ir = _limits({form: answer for form, (answer, _) in answers.items()})
    return {
        "name": measured["runtime"],
        "title": prose.title,
        "version": measured["version"],
        "measured": measured["date"],
        "how": prose.how,
        "sources": [],
        "newest_opset": newest_opset,
        "newest_ir_version": newest_ir,
        "unnamed_dimensions": prose.unnamed_dimensions,
        "untrue_shapes": prose.untrue_shapes,
        # OpenCV 5 gives constants to nodes in another way.
        "shared_constants": None if measured["version"].startswith("5.") else prose.shared_constants,
    }


def _limits(answers: Mapping[str, str]) -> tuple[int | None, int | None]:
    """The newest opset and IR version that were read; None where a version that does not exist was read, too."""
    opsets, versions = {}, {}
    for form, answer in answers.items():
        if form.startswith(f"{_PROBE}ir"):
            versions[int(form.split("_")[1][2:])] = answer
        elif form.startswith((f"{_PROBE}add", f"{_PROBE}split", f"{_PROBE}nat")):
            number = int(form.split("_op")[1].split("_")[0])
            # Also a model of this opset with the IR version of its time counts.
            opsets[number] = "reads" if "reads" in (answer, opsets.get(number)) else answer
    return _newest(opsets), _newest(versions)


def _newest(answers: Mapping[int, str]) -> int | None:
    if not answers or answers[max(answers)] == "reads":
        return None
    return max((number for number, answer in answers.items() if answer == "reads"), default=None)


if __name__ == "__main__":
    main([Path(each) for each in sys.argv[1:]])
