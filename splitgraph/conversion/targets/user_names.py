"""The names that the nodes of a model had before it was converted: a user knows no other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from splitgraph.conversion.rewrite import Change
from splitgraph.graph.scopes import node_label, scopes
from splitgraph.onnx_proto import ModelProto


class UserNames:
    """Finds the node of the user's model that a node of a converted model stands for.

    A conversion keeps the names of values: a node stands for the one that gave its outputs. A node whose outputs are
    new, such as one that computes lengths, stands for what the first node that reads it stands for.
    """

    def __init__(self, source: ModelProto) -> None:
        self._source = source
        self._known: Mapping[str, str] | None = None

    def located(self, changes: Iterable[Change], model: ModelProto) -> list[Change]:
        """The changes of a converted model with the locations of the user's nodes."""
        listed = list(changes)
        if not listed or model is self._source:
            return listed
        user = self.locations(model)
        return [replace(change, location=user.get(change.location, [change.location])[0]) for change in listed]

    def locations(self, model: ModelProto) -> dict[str, list[str]]:
        """By location of a node of a converted model, the locations of the user's nodes."""
        if self._known is None:
            self._known = _definers(self._source)
        found: dict[str, list[str]] = {}
        of_readers: dict[str, list[str]] = {}
        for scope in reversed(list(scopes(model))):
            nodes = scope.nodes
            for index in range(len(nodes) - 1, -1, -1):
                node = nodes[index]
                made = list(filter(None, node.output))
                known = list(dict.fromkeys(self._known[name] for name in made if name in self._known))
                known = known or next((of_readers[name] for name in made if name in of_readers), [])
                if known:
                    found[f"{scope.location}/{node_label(node, index)}"] = known
                    of_readers.update(dict.fromkeys(filter(None, node.input), known))
        return found


def _definers(model: ModelProto) -> dict[str, str]:
    """By name of a value, the location of the node that gives it: the first one where several graphs have the name."""
    found: dict[str, str] = {}
    for scope in scopes(model):
        for index, node in enumerate(scope.nodes):
            for name in filter(None, node.output):
                found.setdefault(name, f"{scope.location}/{node_label(node, index)}")
    return found
