"""Removes nodes on which nothing depends, and constants that nobody reads any more."""

from __future__ import annotations

from collections.abc import Collection

from splitgraph.conversion.folding.uses import Uses, has_bodies
from splitgraph.conversion.plan import Plan, Replacement
from splitgraph.conversion.rewrite import Change
from splitgraph.inference import Walked
from splitgraph.model.places import versioned_operator
from splitgraph.model.scopes import MAIN, Scope, node_label, plain_domain

WHY = "nothing depends on it"


def plan_sweep(plan: Plan, walked: Walked, uses: Uses, unread_before: Collection[str] = ()) -> None:
    """Plan that nodes of ai.onnx without bodies go if no output of a graph depends on them, and initializers that
    nobody reads. unread_before: initializers of the main graph that nobody read in the user's model; they stay.
    """
    needed = uses.needed()
    gone = []
    for scope in uses.root:
        for index, node in enumerate(scope.nodes):
            place = scope.path, index
            is_plain = plain_domain(node.domain) == "" and not has_bodies(node)
            if place not in needed and is_plain and place not in walked.set_aside:
                gone.append((scope, index, Replacement([])))
                before = versioned_operator(node, scope.imports)
                plan.changes.append(Change(f"{scope.location}/{node_label(node, index)}", before, "", WHY))
    plan.replace_all(gone)
    main = uses.scopes.get(MAIN)
    if main is not None:
        unread = unread_initializers(main, uses) - {*unread_before}
        if unread:
            plan.at(MAIN).gone_initializers |= unread


def unread_initializers(main: Scope, uses: Uses) -> set[str]:
    """Return the initializers of a main graph that are no inputs, and that nobody reads."""
    inputs = {value.name for value in main.proto.input}
    keys = {tensor.name: uses.key(MAIN, tensor.name) for tensor in main.proto.initializer if tensor.name not in inputs}
    return {name for name, key in keys.items() if not uses.readers.get(key) and key not in uses.results}
