"""Inference of function bodies as written: conversion edits each body once for all calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from splitgraph.dim import Dim, DimLike
from splitgraph.graph.scopes import function_key, function_location, opset_imports
from splitgraph.inference.define_graph import take_demands
from splitgraph.inference.memo import Memo
from splitgraph.inference.walk import Walk
from splitgraph.inference.walk_results import FunctionCall
from splitgraph.inference.walk_state import WalkState
from splitgraph.value_type import UNKNOWN, ValueType


def walk_function_bodies(state: WalkState, main: Walk) -> None:
    """Walk each function body as written, with the input types that all calls have in common. Report findings only for
    functions that no call has walked.
    """
    facts = main.facts
    for index, function in enumerate(state.task.model.functions):
        key = function_key(function)
        calls = state.record.calls.get(key, [])
        imports = opset_imports(function.opset_import)
        known = facts.child()
        state.record.quiet += bool(calls)
        body = Walk(state, ("F", index), function_location(function), imports, known, memo=Memo(known, main.memo))
        state.record.calling.append(key)
        followed, symbols = calls if state.record.follows_every_call else [], _stand_ins(state)
        for position, name in enumerate(function.input):
            body.define(name, _common(symbols, followed, position), body.location)
        take_demands(body)
        body.run(function.node)
        body.check_function_outputs(function)
        state.record.calling.pop()
        state.record.quiet -= bool(calls)


def _stand_ins(state: WalkState) -> Iterator[Dim]:
    """Symbols for the unknown dimensions of a function's inputs. All functions use the same symbols, so that equal
    calls in different functions stay equal. Requirements on these symbols stay within the function.
    """
    for position in count():
        if position == len(state.symbols.stand_ins):
            state.symbols.stand_ins.append(state.fresh())
        yield state.symbols.stand_ins[position]


def _common(symbols: Iterator[Dim], calls: Sequence[FunctionCall], position: int) -> ValueType:
    """What all calls of a function agree on for one input: kind, element type, rank and static dimensions. Symbols of
    one call mean nothing in another.
    """
    types = [(call.inputs[position] if position < len(call.inputs) else None) or UNKNOWN for call in calls]
    if not types or any(value.kind != types[0].kind for value in types):
        return UNKNOWN
    dtype = types[0].dtype if all(value.dtype == types[0].dtype for value in types) else None
    shapes = [value.shape for value in types]
    if None in shapes or len({len(shape or ()) for shape in shapes}) > 1:
        return ValueType(types[0].kind, dtype, None, types[0].element)
    dims = [set(dims) for dims in zip(*(shape or () for shape in shapes), strict=True)]
    return ValueType(types[0].kind, dtype, tuple(_agreed(symbols, each) for each in dims), types[0].element)


def _agreed(symbols: Iterator[Dim], dims: set[DimLike | None]) -> DimLike:
    only = dims.pop() if len(dims) == 1 else None
    return only if isinstance(only, int) else next(symbols)
