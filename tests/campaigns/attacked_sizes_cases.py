"""What a case of `attacked_sizes.py` is, and how a family of cases is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx
from attacked_sizes_tape import Tape, Value

# A program is called with a tape and the sizes by name, and returns the outputs.
Program = Callable[..., "Value | Sequence[Value]"]
Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Case:
    """A model with fixed sizes, and what it has to give at others.

    programs: the first one is the model; the others give the same at the old sizes and are right readings as well.
    form: arguments of the tape. may_ask: sizes for which both readings fit, so that a question is right, too.
    may_refuse: sizes that a refusal is right for, because the model does not say enough. stuck: sizes that only a
    refusal is right for. mixes: the model computes over its items, so that they are no batch. fits: sizes that the
    model can have. baked: sizes that are names, but that the model has constants of.
    """

    name: str
    programs: tuple[Program, ...]
    old: Sizes
    form: Mapping[str, Any] = field(default_factory=dict)
    may_ask: frozenset[str] = frozenset()
    may_refuse: frozenset[str] = frozenset()
    stuck: frozenset[str] = frozenset()
    mixes: bool = False
    fits: Callable[[Sizes], bool] = lambda sizes: True
    baked: frozenset[str] = frozenset()

    @property
    def free(self) -> list[str]:
        """Return the sizes that are names, and that a run may choose."""
        return [name for name in self.form.get("named", ()) if name not in self.baked]

    def run(self, sizes: Sizes, seed: int = 0, reading: int = 0) -> tuple[Tape, list[Value]]:
        """Return the tape and the outputs of a program at these sizes."""
        tape = Tape(sizes, seed=seed, **self.form)
        found = self.programs[reading](tape, **sizes)
        return tape, [found] if isinstance(found, Value) else list(found)

    def model(self) -> onnx.ModelProto:
        """Return the model, at the old sizes."""
        tape, outputs = self.run(self.old)
        return tape.model(outputs)


CASES: list[Case] = []


def forms(*styles: str, opsets: Sequence[int] = (17,), named: str = "", nodes: bool = False) -> list[dict[str, Any]]:
    """Return forms of a model: each style with each opset."""
    return [
        {"style": style, "opset": opset, "named": tuple(named), "nodes": nodes}
        for style in styles or ("numbers",)
        for opset in opsets
    ]


def olds(names: str, *sizes: Sequence[int]) -> list[dict[str, int]]:
    """Return old sizes by name: olds("NT", (1, 5), (2, 6))."""
    return [dict(zip(names, each, strict=True)) for each in sizes]


def family(
    old: Sequence[Sizes],
    forms: Sequence[Mapping[str, Any]] = ({},),
    others: Sequence[Program] = (),
    *,
    ask: str = "",
    refuse: str = "",
    stuck: str = "",
    mixes: bool = False,
    baked: str = "",
    fits: Callable[[Sizes], bool] | None = None,
    label: str = "",
) -> Callable[[Program], Program]:
    """Return a decorator that adds a program's cases: each of the old sizes in each of the forms."""

    def add(program: Program) -> Program:
        name = label or program.__name__.strip("_")
        for sizes in old:
            for form in forms:
                spelled = "x".join(map(str, sizes.values()))
                CASES.append(
                    Case(
                        "/".join([name, spelled, *_marks(form)]),
                        (program, *others),
                        sizes,
                        {key: mark for key, mark in form.items() if mark},
                        frozenset(ask),
                        frozenset(refuse),
                        frozenset(stuck),
                        mixes,
                        fits or (lambda sizes: True),
                        frozenset(baked),
                    )
                )
        return program

    return add


def _marks(form: Mapping[str, Any]) -> Iterator[str]:
    """Yield how a form is told from the usual one."""
    for key, mark in form.items():
        if mark and mark not in ("numbers", 17):
            yield {"named": f"named {''.join(mark)}" if key == "named" else "", "nodes": key}.get(key) or str(mark)


def unique(cases: Iterable[Case]) -> Iterator[Case]:
    """Yield the cases; raises ValueError for two of one name."""
    seen: set[str] = set()
    for case in cases:
        if case.name in seen:
            raise ValueError(f"two cases are named {case.name}")
        seen.add(case.name)
        yield case
