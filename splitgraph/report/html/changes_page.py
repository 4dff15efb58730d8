"""The page of a model before and after a rewrite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from splitgraph.inference.analysis import Analysis
from splitgraph.report.html.difference_data import difference_data, is_listed
from splitgraph.report.html.model_data import model_data
from splitgraph.report.html.model_page import last_part, page_of
from splitgraph.report.text import printable

if TYPE_CHECKING:
    from splitgraph.conversion.rewrite import Change
    from splitgraph.differences import ModelDifference


def changes_page(
    before: Analysis,
    after: Analysis,
    difference: ModelDifference,
    names: tuple[str, str],
    *,
    changes: Sequence[Change] = (),
    title: str | None = None,
) -> str:
    """A self-contained HTML page of two models, with what differs between them.

    before, after: the analyses. difference: of the two models, as `splitgraph.diff` returns it. names: of the models,
    such as their paths. changes: of the rewrite that made the second model, `Rewrite.changes`, which have the reason of
    each change. title: of the page; by default the last parts of the names.
    """
    forms = [(each.before, each.after) for each in difference.nodes if is_listed(each)]
    data = [
        model_data(analysis, name, [form.location for pair in forms if (form := pair[side]) is not None])
        for side, (analysis, name) in enumerate(((before, names[0]), (after, names[1])))
    ]
    shown = printable(title or " → ".join(map(last_part, names)))
    found = difference_data(difference, (data[0].places, data[1].places), changes)
    return page_of({"title": shown, "models": [each.document for each in data], **found})
