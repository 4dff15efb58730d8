"""The longest common subsequence of two lists, at bounded cost.

Source: E. W. Myers, An O(ND) difference algorithm and its variations (1986), with a limit on D.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

# The edits that are looked for; the search takes the square of this number of steps.
_MOST_EDITS = 500

Pairs = list[tuple[int, int]]


def common_subsequence(before: Sequence[Hashable], after: Sequence[Hashable]) -> Pairs:
    """The positions of a common subsequence: the longest one, unless the lists differ by very many edits. Beyond the
    limit, equal items are paired in their order, the first with the first.
    """
    shared = set(before) & set(after)
    one = [index for index, item in enumerate(before) if item in shared]
    other = [index for index, item in enumerate(after) if item in shared]
    items, others = [before[index] for index in one], [after[index] for index in other]
    start, end = 0, min(len(items), len(others))
    while start < end and items[start] == others[start]:
        start += 1
    tail = 0
    while tail < end - start and items[-1 - tail] == others[-1 - tail]:
        tail += 1
    middle, other_middle = items[start : len(items) - tail], others[start : len(others) - tail]
    inner = _shortest_edits(middle, other_middle)
    if inner is None:
        inner = _paired_in_order(middle, other_middle)
    found = [(index, index) for index in range(start)]
    found += [(start + index, start + place) for index, place in inner]
    found += [(len(items) - back, len(others) - back) for back in range(tail, 0, -1)]
    return [(one[index], other[place]) for index, place in found]


def _shortest_edits(before: Sequence[Hashable], after: Sequence[Hashable]) -> Pairs | None:
    """The pairs that the fewest edits keep; None where there are too many edits."""
    furthest, trace = {1: 0}, list[dict[int, int]]()
    for edits in range(min(len(before) + len(after), _MOST_EDITS) + 1):
        trace.append(dict(furthest))
        for diagonal in range(-edits, edits + 1, 2):
            down = diagonal == -edits or (
                diagonal != edits and furthest.get(diagonal - 1, -1) < furthest.get(diagonal + 1, -1)
            )
            x = furthest[diagonal + 1] if down else furthest[diagonal - 1] + 1
            y = x - diagonal
            while x < len(before) and y < len(after) and before[x] == after[y]:
                x, y = x + 1, y + 1
            furthest[diagonal] = x
            if x >= len(before) and y >= len(after):
                return _walked_back(trace, len(before), len(after))
    return None


def _walked_back(trace: Sequence[dict[int, int]], x: int, y: int) -> Pairs:
    pairs: Pairs = []
    for edits in range(len(trace) - 1, -1, -1):
        furthest, diagonal = trace[edits], x - y
        down = diagonal == -edits or (
            diagonal != edits and furthest.get(diagonal - 1, -1) < furthest.get(diagonal + 1, -1)
        )
        earlier = diagonal + 1 if down else diagonal - 1
        before_x = furthest[earlier] if edits else 0
        before_y = before_x - earlier if edits else 0
        while x > before_x and y > before_y and (x, y) != (0, 0):
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = before_x, before_y
    pairs.reverse()
    return pairs


def _paired_in_order(before: Sequence[Hashable], after: Sequence[Hashable]) -> Pairs:
    places = defaultdict(list)
    for place, item in enumerate(after):
        places[item].append(place)
    taken = {item: iter(found) for item, found in places.items()}
    pairs = [(index, next(taken.get(item, iter(())), None)) for index, item in enumerate(before)]
    return [(index, place) for index, place in pairs if place is not None]
