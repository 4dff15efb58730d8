"""Say beside a verdict what is known of regions that are not simply equal."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.verification import help_texts
from splitgraph.verification.regions.judging.lost_digits import Loss
from splitgraph.verification.verification import UNSEARCHED, Region

# A message names at most so many regions.
MOST_NAMED = 3


def unchecked_note(unchecked: Sequence[Region]) -> Diagnostic:
    """Return why there is no verdict: constants that no run read, and regions that were never compared."""
    told = [region.reason for region in unchecked if region.unread]
    alone = [f"{region.name} ({region.reason})" for region in unchecked if not region.unread]
    if alone:
        told.append(f"the outputs are equal, but parts that differ could not be checked alone: {_listed(alone, ', ')}")
    text = f"not verified: {_listed(told, '; ')}"
    return diagnostic("SG506", text, severity="warning", help=help_texts.where_little_shows(text))


def _listed(texts: Sequence[str], separator: str) -> str:
    more = f" and {len(texts) - MOST_NAMED} more" if len(texts) > MOST_NAMED else ""
    return f"{separator.join(texts[:MOST_NAMED])}{more}"


def loss_note(losses: Sequence[tuple[str, Loss, str]]) -> Diagnostic:
    """Return which model is nearer to the result of float64, and how many digits the other one loses. losses: see
    `LocalCheck.losses`.
    """
    shown = _listed([f"{name}: {loss}, on {values}" for name, loss, values in losses], "; ")
    is_worse = any(loss.side for _, loss, _ in losses)
    return diagnostic("SG514", f"equal up to rounding: {shown}", severity="warning" if is_worse else "info")


def impossible_note(regions: Sequence[Region]) -> Diagnostic:
    """Return which regions are equal, although they differ alone. regions: with the reasons for which they were called
    different.
    """
    names = "; ".join(f"{region.name}: {region.reason}" for region in regions[:MOST_NAMED])
    more = f"; and {len(regions) - MOST_NAMED} more" if len(regions) > MOST_NAMED else ""
    text = (
        f"{len(regions)} changed parts differ on inner values, and together with all nodes behind them, or with those "
        f"that read them, they are equal on all kinds of values: {names}{more}"
    )
    return diagnostic("SG515", text, severity="info")


def stopped_notes(regions: Sequence[Region]) -> list[Diagnostic]:
    """Return what is open beside the verdict: of drawn values, and of sizes."""
    stopped = [region for region in regions if region.is_open]
    sized = [region for region in stopped if region.reason.startswith(UNSEARCHED)]
    told = {
        "compared on all drawn values": [
            f"{region.name} ({region.cases} sets of values)" for region in stopped if region not in sized
        ],
        "compared at all sizes at which they may decide otherwise": [
            f"{region.name} ({region.reason})" for region in sized
        ],
    }
    texts = [
        f"{len(names)} of {len(regions)} changed parts were {what}: {_listed(names, ', ')}"
        for what, names in told.items()
        if names
    ]
    return [diagnostic("SG513", f"the time was over before {text}", severity="info") for text in texts]
