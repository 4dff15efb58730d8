"""How many of the backend tests of old onnx releases convert upward, and what became of the rest.

PYTHONPATH=tests python -m conformance.old_node_tests [--to N ...] [--ladder] [--release R ...]
    [--only OP ...] [--reasons]

The releases are downloaded (not installed) into a folder, and read there.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import onnx

from .model_cases import ModelCase
from .old_archives import GROUPS, RELEASES, collect
from .opset_cases import operators_of
from .opset_judge import STATUSES
from .opset_report import Found, faults, reasons, survey, table, ways_of

TARGETS = (18, 28)
FOLDER = Path(tempfile.gettempdir()) / "splitgraph-old-onnx"
# The opset from which on runtimes keep what they load; below it, little but onnx's own tests is left.
DIVIDE = 7
FROM, BELOW, INVALID = f"from opset {DIVIDE} on", f"below opset {DIVIDE}", "invalid as released"


def parts(cases: Iterable[ModelCase]) -> dict[str, list[ModelCase]]:
    """The cases from opset 7 on, those below it, and those whose model the installed onnx has something against.

    Cases without ai.onnx have nothing to convert.
    """
    made: dict[str, list[ModelCase]] = {FROM: [], BELOW: [], INVALID: []}
    for case in cases:
        if case.opset is not None:
            made[INVALID if fault_of(case) else BELOW if case.opset < DIVIDE else FROM].append(case)
    return made


def fault_of(case: ModelCase) -> str:
    """What onnx's checker has against the model as it was released, "" for nothing."""
    try:
        onnx.checker.check_model(case.model, full_check=True)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return ""


def targets_of(cases: Sequence[ModelCase], to: Sequence[int], ladder: bool) -> list[int]:
    """The opsets to convert to: those given, or with a ladder each above the oldest case up to the newest given."""
    if not ladder:
        return list(to)
    return list(range(1 + min(case.opset or max(to) for case in cases), max(to) + 1))


def report(found: Found, *, with_reasons: bool, show: Sequence[str]) -> Iterator[str]:
    """The table of some cases, the verdicts of the statuses to show, and the reasons of refusals."""
    yield from table(found)
    yield from faults(found, *show)
    if with_reasons:
        for way, verdicts in found.items():
            yield f"\nRefused {way}:"
            yield from reasons(verdicts)


def main() -> None:
    """Print a table for each part, and what was asked for beside it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the archives are, or go")
    parser.add_argument("--release", nargs="*", default=RELEASES, help=f"releases of onnx (default: {RELEASES})")
    parser.add_argument("--group", nargs="*", choices=GROUPS, default=GROUPS, help="groups of tests (default: all)")
    parser.add_argument("--to", type=int, nargs="*", default=TARGETS, help=f"opsets to convert to (default: {TARGETS})")
    parser.add_argument("--ladder", action="store_true", help="to each opset on the way as well")
    parser.add_argument("--only", nargs="*", default=[], help="only cases with one of these operators, or so named")
    parser.add_argument("--reasons", action="store_true", help="list the reasons of refusals")
    parser.add_argument("--show", nargs="*", choices=STATUSES, default=["wrong", "invalid", "crashed"])
    parser.add_argument("--workers", type=int, default=2, help="processes")
    options = parser.parse_args()
    cases = collect(options.folder, options.release, options.group)
    wanted = [case for case in cases if _is_wanted(case, options.only)]
    for title, part in parts(wanted).items():
        if part:
            targets = targets_of(part, options.to, options.ladder)
            found = survey([(case, ways_of(case, targets, ())) for case in part], options.workers)
            print(f"\n{title}: {len(part)} cases")
            print("\n".join(report(found, with_reasons=options.reasons, show=options.show)))


def _is_wanted(case: ModelCase, only: Sequence[str]) -> bool:
    return not only or case.name in only or not operators_of(case.model).isdisjoint(only)


if __name__ == "__main__":
    main()
