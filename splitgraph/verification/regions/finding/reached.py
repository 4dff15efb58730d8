"""Which nodes some nodes depend on, and which depend on them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import onnx


def reached(start: Collection[int], reads: Sequence[Sequence[str]], makers: Mapping[str, int]) -> set[int]:
    """Return the nodes that some nodes depend on, and these."""
    seen, waiting = set(start), list(start)
    while waiting:
        for name in reads[waiting.pop()]:
            maker = makers.get(name)
            if maker is not None and maker not in seen:
                seen.add(maker)
                waiting.append(maker)
    return seen


def reached_forward(
    start: Iterable[int], nodes: Sequence[onnx.NodeProto], readers: Mapping[str, Sequence[int]]
) -> set[int]:
    """Return the nodes that depend on some nodes, and these."""
    seen, waiting = set(start), list(start)
    while waiting:
        for name in nodes[waiting.pop()].output:
            for reader in readers.get(name, ()):
                if reader not in seen:
                    seen.add(reader)
                    waiting.append(reader)
    return seen
