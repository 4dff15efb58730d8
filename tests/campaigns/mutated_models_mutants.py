"""One mutant for each seed: a model with one to three mutations of a kind, and what is done with it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mutated_models_bytes import mutate_bytes
from mutated_models_faults import make_fault
from mutated_models_fields import mutate_fields, read_fields, write_fields
from mutated_models_objects import mutate_object
from mutated_models_sources import Source, pick_source
from onnx import ModelProto

import splitgraph

# So many of a hundred mutants are of each kind.
KINDS = {"bytes": 44, "fields": 27, "objects": 21, "faults": 8}
_OPSETS = (1, 7, 9, 11, 13, 17, 18, 21, 24, 28)
_FORMS = ("split", "variadic-split", "slice")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done with a mutant after it was inferred.

    verb: its name. arguments, keywords: beside the model. typed: the same on the command line. is_typed: whether that
    is run, too. is_file: whether a model in memory is also written to a file and read.
    """

    verb: str
    arguments: Sequence[Any]
    keywords: dict[str, Any]
    typed: Sequence[str]
    is_typed: bool
    is_file: bool

    def run(self, model: Any) -> Any:
        """Convert a model, or a file."""
        verb: Callable[..., Any] = getattr(splitgraph, self.verb)
        return verb(model, *self.arguments, **self.keywords)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A model that was mutated: the bytes of a file, or a model in memory. changes: what was done to it."""

    seed: int
    kind: str
    source: Source
    changes: Sequence[str]
    content: bytes | ModelProto
    plan: Plan

    def __str__(self) -> str:
        return f"{self.kind} of {self.source.name}: {'; '.join(self.changes)}; {self.plan.verb}"


def make_mutant(seed: int, kinds: Sequence[str] = ()) -> Mutant:
    """The mutant of a seed. kinds: a seed that would give another kind gives one of these; the default is all."""
    rng = random.Random(seed)
    plan = _plan(rng)
    (kind,) = rng.choices(list(KINDS), list(KINDS.values()))
    if kinds and kind not in kinds:
        kind = kinds[seed % len(kinds)]
    changes: Sequence[str] = ()
    while not changes:
        # Not every model has something of what is to be changed.
        source = pick_source(rng)
        content, changes = _MAKERS[kind](source, rng)
    return Mutant(seed, kind, source, changes, content, plan)


def _plan(rng: random.Random) -> Plan:
    opset, form = rng.choice(_OPSETS), rng.choice(_FORMS)
    is_explicit, is_typed, is_file = rng.random() < 0.3, rng.random() < 0.1, rng.random() < 0.25
    explicit = {"explicit_lengths": True} if is_explicit and form == "split" else {}
    flags = ["--explicit-lengths"] if explicit else []
    ways: list[tuple[str, Sequence[Any], dict[str, Any], Sequence[str]]] = [
        ("upgrade", [opset], {}, ["--opset", str(opset)]),
        ("downgrade", [opset], {}, ["--opset", str(opset)]),
        ("convert", [form], explicit, ["--to", form, *flags]),
        ("convert", [form], {"opset": opset, **explicit}, ["--to", form, "--opset", str(opset), *flags]),
    ]
    return Plan(*rng.choice(ways), is_typed, is_file)


def _how_many(rng: random.Random) -> int:
    return rng.choice((1, 1, 2, 3))


def _of_bytes(source: Source, rng: random.Random) -> tuple[bytes, list[str]]:
    data = bytearray(source.written)
    changes = [mutate_bytes(data, rng) for _ in range(_how_many(rng))]
    return bytes(data), changes


def _of_fields(source: Source, rng: random.Random) -> tuple[bytes, list[str]]:
    message = read_fields(source.written)
    changes = [mutate_fields(message, rng) for _ in range(_how_many(rng))]
    return write_fields(message), changes


def _of_objects(source: Source, rng: random.Random) -> tuple[ModelProto, list[str]]:
    model = ModelProto.FromString(source.written)
    changes = [mutate_object(model, rng) for _ in range(_how_many(rng))]
    return model, list(filter(None, changes))


def _of_faults(source: Source, rng: random.Random) -> tuple[ModelProto, list[str]]:
    model = ModelProto.FromString(source.written)
    return model, list(filter(None, [make_fault(model, rng)]))


_MAKERS: dict[str, Callable[[Source, random.Random], tuple[bytes | ModelProto, list[str]]]] = {
    "bytes": _of_bytes,
    "fields": _of_fields,
    "objects": _of_objects,
    "faults": _of_faults,
}
