"""A split as numbers and as a drawing: the data of a page, and a file of SVG."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

from splitgraph.dim import Dim, evaluate, symbols_of
from splitgraph.findings.diagnostics import SplitgraphError, diagnostic, meant
from splitgraph.inference.analysis import Analysis, SplitReport
from splitgraph.model.scopes import node_label
from splitgraph.reports.html.page import asset
from splitgraph.reports.text import count, dim_text, printable

# Splits as data -------------------------------------------------------------------------------------------------------


Bounds = Mapping[str, tuple[int, int | None]]

# The size of every symbol while bars are cut: many divisors, so that equal parts look equal.
NOMINAL = 240
# How each operator is drawn.
KINDS = {"Split": "split", "VariadicSplit": "variadic", "SplitToSequence": "sequence", "StringSplit": "string"}


def operator_label(split: SplitReport) -> str:
    """Return the operator with its version, "Split-18"; the operators of OpenVINO have no version of an opset."""
    return split.op if split.domain else f"{split.op}-{split.since_version}"


def part_weight(length: int | Dim | None, bounds: Bounds) -> float | None:
    """Return how wide a part is drawn, relative to the others; None for an unknown length.

    A symbolic length is computed with a nominal size for each symbol, within the symbol's bounds. So the picture
    shows `(N + 1)//2 | N//2` as two parts of about the same width.
    """
    if length is None or isinstance(length, int):
        # A split with an error may have a negative length.
        return length if length is None else max(0, length)
    try:
        return max(0, evaluate(length, {name: _nominal(bounds.get(name, (0, None))) for name in symbols_of(length)}))
    except (ZeroDivisionError, OverflowError):
        # At the nominal sizes a divisor is 0, or the number is far too large for a dimension.
        return None


def _nominal(bounds: tuple[int, int | None]) -> int:
    low, high = bounds
    size = max(low, NOMINAL)
    return size if high is None else min(size, high)


def bar_weights(lengths: Iterable[int | Dim | None], bounds: Bounds) -> list[float]:
    """Return the width of each part of a bar, relative to the others. An unknown part gets the mean of the known
    ones.
    """
    weights = [part_weight(length, bounds) for length in lengths]
    known = [weight for weight in weights if weight is not None]
    mean = sum(known) / len(known) if known else 1.0
    return [float(mean if weight is None else weight) for weight in weights]


def rest_parts(analysis: Analysis) -> dict[str, int]:
    """Return the part of each VariadicSplit whose length is written as -1 (the rest of the dimension), by location.

    Splits in the bodies of model-local functions are left out: a call may give them other lengths.
    """
    rests: dict[str, int] = {}
    if analysis.details is None:
        return rests
    for scope in analysis.details.scopes:
        detail = analysis.details.graphs.get(scope.path)
        for index, split in ({} if detail is None or scope.in_function else detail.splits).items():
            node = scope.nodes[index]
            has_rest = split.rest_possible and split.split is not None
            items = getattr(detail.constants.get(node.input[2]), "items", ()) if has_rest else ()
            if -1 in items:
                rests[f"{scope.location}/{node_label(node, index)}"] = items.index(-1)
    return rests


# SVG ------------------------------------------------------------------------------------------------------------------


WIDTH, _PAD = 640, 24
_BAR = WIDTH - 2 * _PAD
_BAR_TOP, _BAR_HEIGHT = 84, 44
_GAP, _NARROWEST = 2, 3
_ROW, _COLOURS = 26, 8
# Parts in the bar and rows in the table; of more, the first ones and the last one.
_MOST_SEGMENTS, _MOST_ROWS = 32, 16
_APART = ' dx="12"'
# The width of a character of the fixed-width font, as a share of its size.
_ADVANCE = 0.602


class _Segment(NamedTuple):
    """A part in the bar, or several parts that are left out. part: None for these."""

    part: int | None
    text: str
    weight: float


def split_svg(analysis: Analysis, split: SplitReport) -> str:
    """Return the split as a standalone SVG: name, axis and input, a bar cut in proportion to the lengths, and the
    outputs.
    """
    segments = _segments(split, analysis)
    rest = rest_parts(analysis).get(split.location)
    top = _BAR_TOP + _BAR_HEIGHT + 16
    captions = list(_bar(split, segments, rest))
    narrow = any('class="narrow' in part for part in captions)
    body = [*_head(split), *captions, *_rows(split, rest, top + (14 if narrow else 0))]
    rows = len(_row_parts(split)) + len(split.obligations)
    height = top + (14 if narrow else 0) + _ROW * max(rows, 1) + 14
    lengths = " | ".join(map(dim_text, split.lengths)) or "parts of unknown length"
    label = f"{operator_label(split)} {split.name}: {lengths}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{_safe(label)}">',
            f"<title>{_safe(label)}</title>",
            f"<style>\n{asset('split.css')}</style>",
            f'<rect class="card" x="0.75" y="0.75" width="{WIDTH - 1.5}" height="{height - 1.5}" rx="12"/>',
            *body,
            "</svg>\n",
        ]
    )


def _safe(text: str) -> str:
    return escape(printable(text))


def _shortened(text: str, most: int) -> str:
    """Return a name with its two ends, because names differ in both."""
    text = printable(text)
    tail = (most - 1) * 3 // 5
    return text if len(text) <= most else f"{text[: most - 1 - tail]}…{text[-tail:]}"


def _text(x: float, y: float, kind: str, text: str) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(text)}</text>'


def _line(x: float, y: float, *parts: tuple[str, str]) -> str:
    """Return a line of text with pieces of several classes. The browser knows the widths of its fonts."""
    spans = [
        f'<tspan class="{kind}"{_APART if place else ""}>{escape(text)}</tspan>'
        for place, (kind, text) in enumerate(parts)
    ]
    return f'<text x="{x:g}" y="{y:g}">{"".join(spans)}</text>'


def _head(split: SplitReport) -> Iterator[str]:
    yield _line(_PAD, 36, ("op", operator_label(split)), ("name", _shortened(split.name, 40)))
    axis = "cuts text" if split.op == "StringSplit" else f"axis {'?' if split.axis is None else split.axis}"
    width = len(axis) * 7 + 20
    yield f'<rect class="chip" x="{WIDTH - _PAD - width}" y="20" width="{width}" height="22" rx="11"/>'
    yield _text(WIDTH - _PAD - width / 2, 35, "axis", axis)
    yield _line(_PAD, 68, ("value", _shortened(split.input_name, 34)), ("type", _shortened(str(split.input), 40)))


def _segments(split: SplitReport, analysis: Analysis) -> list[_Segment]:
    if split.op == "StringSplit":
        return [_Segment(None, "“ one ┊ two ┊ … ”", 1)]
    weights = bar_weights(split.lengths, analysis.symbols)
    parts = [
        _Segment(part, printable(dim_text(length)), weight)
        for part, (length, weight) in enumerate(zip(split.lengths, weights, strict=True))
    ]
    if not parts:
        return [_Segment(None, "parts of unknown length", 1)]
    if len(parts) <= _MOST_SEGMENTS:
        return parts
    first, hidden = parts[: _MOST_SEGMENTS - 6], len(parts) - _MOST_SEGMENTS + 4
    mean = sum(part.weight for part in first) / len(first) or 1
    return [*first, _Segment(None, f"… {hidden:,} more …", 6 * mean), *parts[-2:]]


def _widths(segments: Sequence[_Segment]) -> list[float]:
    """Return widths in proportion to the weights. Narrow parts stay visible, and wide ones make room for them."""
    room = _BAR - _GAP * (len(segments) - 1)
    total = sum(segment.weight for segment in segments)
    widths = [max(_NARROWEST, segment.weight / total * room if total else room / len(segments)) for segment in segments]
    excess = sum(widths) - room
    wide = sum(width for width in widths if width > 4 * _NARROWEST)
    if excess > 0 and wide > excess:
        widths = [width * (1 - excess / wide) if width > 4 * _NARROWEST else width for width in widths]
    return widths


def _bar(split: SplitReport, segments: Sequence[_Segment], rest: int | None) -> Iterator[str]:
    x, free = float(_PAD), float(_PAD)
    for segment, width in zip(segments, _widths(segments), strict=True):
        kind = "more" if segment.part is None else f"p{segment.part % _COLOURS}"
        at = f'x="{x:.2f}" width="{width:.2f}"'
        yield f'<g class="segment {kind}">'
        yield f'<rect class="fill" {at} y="{_BAR_TOP}" height="{_BAR_HEIGHT}" rx="4"/>'
        yield f'<rect class="edge" {at} y="{_BAR_TOP + _BAR_HEIGHT - 5}" height="5" rx="2.5"/>'
        if rest is not None and segment.part == rest:
            yield f'<rect class="rest" {at} y="{_BAR_TOP}" height="{_BAR_HEIGHT}" rx="4"/>'
        half = len(segment.text) * 11 * _ADVANCE / 2
        middle = x + width / 2
        below = min(max(middle, _PAD + half), _PAD + _BAR - half)
        if len(segment.text) * 14 * _ADVANCE + 8 <= width:
            yield _text(round(middle, 2), _BAR_TOP + 27, "length", segment.text)
        elif below - half >= free:
            yield _text(round(below, 2), _BAR_TOP + _BAR_HEIGHT + 14, f"narrow {kind}", segment.text)
            free = below + half + 6
        yield "</g>"
        x += width + _GAP
    if split.op == "SplitToSequence":
        yield f'<path class="bracket" d="M{_PAD} {_BAR_TOP + _BAR_HEIGHT + 4} v5 h{_BAR} v-5"/>'


def _row_parts(split: SplitReport) -> list[int | None]:
    """Return the outputs in the table; None if some are left out."""
    parts: list[int | None] = list(range(len(split.outputs)))
    return parts if len(parts) <= _MOST_ROWS else [*parts[: _MOST_ROWS - 2], None, parts[-1]]


def _rows(split: SplitReport, rest: int | None, top: float) -> Iterator[str]:
    y = top + 14
    parts = split.op not in ("SplitToSequence", "StringSplit")
    lengths = {
        output: _shortened(dim_text(split.lengths[output]) + (" (-1)" if output == rest else ""), 24)
        for output in _row_parts(split)
        if parts and output is not None and output < len(split.lengths)
    }
    column = max((len(text) for text in lengths.values()), default=-2)
    names = _PAD + 22 + (column + 2) * 13 * _ADVANCE
    for output in _row_parts(split):
        if output is None:
            yield _text(_PAD + 22, y, "type", f"… {count(len(split.outputs) - _MOST_ROWS + 1, 'more output')}")
            y += _ROW
            continue
        name, value = split.outputs[output]
        kind = f"p{output % _COLOURS}" if parts else "more"
        yield f'<rect class="swatch {kind}" x="{_PAD}" y="{y - 10}" width="12" height="12" rx="3"/>'
        if output in lengths:
            yield _text(_PAD + 22, y, "value", lengths[output])
        shown = ("value strong", _shortened(name or "(omitted)", 24)), ("type", _shortened(str(value), 32))
        yield _line(round(names, 1), y, *shown)
        y += _ROW
    for obligation in split.obligations:
        yield _text(_PAD + 22, y, "type", f"requires {_shortened(obligation, 60)}")
        y += _ROW


# The split that a text means ------------------------------------------------------------------------------------------


_MOST_SHOWN = 5


def find_split(analysis: Analysis, wanted: str) -> SplitReport:
    """Return the split with this location ("main/h.0/Split") or this name. Raises SplitgraphError (SG601) for none and
    for several; the error lists the possible locations.
    """
    matches = [split for split in analysis.splits if split.location == wanted]
    matches = matches or [split for split in analysis.splits if split.name == wanted]
    if len(matches) == 1:
        return matches[0]
    if matches:
        places = [split.location for split in matches]
        raise _usage(f"{len(matches)} splits are named {wanted!r}. Give the location of one: {_listed(places)}")
    if not analysis.splits:
        raise _usage(f"there is no split {wanted!r}: the model has no splits")
    names = list(dict.fromkeys(text for split in analysis.splits for text in (split.name, split.location)))
    near = meant(wanted, names, most=_MOST_SHOWN) or f"; the model has {_listed([e.name for e in analysis.splits])}"
    raise _usage(f"there is no split {wanted!r}{near}")


def _listed(texts: list[str]) -> str:
    more = len(texts) - _MOST_SHOWN
    shown = ", ".join(map(repr, texts[:_MOST_SHOWN]))
    return f"{shown} and {more} more" if more > 0 else shown


def _usage(message: str) -> SplitgraphError:
    return SplitgraphError(message, [diagnostic("SG601", message)])
