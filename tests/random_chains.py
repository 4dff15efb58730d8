"""Random chains of shape arithmetic that run at the sizes of their design, and the ONNX models that they are.

A symbol whose name begins with "_" is a dimension without a name.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from chain_simulator import Chain, DoesNotRun, Param, Step, Values, evaluate_chain, run_step

NAMES = ("N", "X", "W", "b", "seq", "H")
OPSETS = (8, 9, 11, 12, 13, 13, 17, 17, 18, 21)

_SIZES = (0, 1, 2, 3, 4, 5, 6, 6, 7, 8, 9, 10, 12)
_BROADCASTING_SIZES = (0, 1, 1, 1, 4)

Maker = Callable[["_Design"], "Step | None"]
_MAKERS: list[Maker] = []


def _maker(weight: int = 1) -> Callable[[Maker], Maker]:
    def register(function: Maker) -> Maker:
        _MAKERS.extend([function] * weight)
        return function

    return register


def random_chain(seed: int, *, broadcasts: bool = False) -> tuple[Chain, dict[str, int]]:
    """A chain, and sizes at which it runs. broadcasts: dimensions of different names meet in broadcasts all the time,
    where one of them is 1 or 0.
    """
    rng = random.Random(seed)
    names = rng.sample(NAMES, rng.randint(2, 4) if broadcasts else rng.randint(1, 3))
    sizes = {name: rng.choice(_BROADCASTING_SIZES if broadcasts else _SIZES) for name in names}
    makers = [*_MAKERS, *[_add_tensors] * len(_MAKERS)] if broadcasts else _MAKERS
    inputs: dict[str, tuple[int | str, ...]] = {}
    for place in range(rng.choice((1, 1, 2, 3))):
        dims = [rng.choice(names) if rng.random() < 0.7 else rng.randint(1, 6) for _ in range(rng.randint(1, 4))]
        if rng.random() < 0.15:
            unnamed = f"_{place}"
            sizes[unnamed] = rng.randint(1, 6)
            dims[rng.randrange(len(dims))] = unnamed
        inputs[f"x{place}"] = tuple(dims)
    design = _Design(rng, rng.choice(OPSETS), inputs, sizes)
    wanted = rng.randint(3, 18)
    for _ in range(6 * wanted):
        if len(design.steps) < wanted:
            design.try_step(rng.choice(makers))
    return Chain(design.opset, inputs, tuple(design.steps)), sizes


class _Design:
    def __init__(
        self, rng: random.Random, opset: int, inputs: Mapping[str, tuple[int | str, ...]], sizes: Mapping[str, int]
    ) -> None:
        self.rng = rng
        self.opset = opset
        self.steps: list[Step] = []
        self.values: Values = {}
        self.tensors = list(inputs)
        self.lengths: list[str] = []
        self.sequences: list[str] = []
        self._made = 0
        self.values.update(evaluate_chain(Chain(opset, inputs, ()), sizes))

    def try_step(self, maker: Maker) -> None:
        try:
            step = maker(self)
            if step is None:
                return
            run_step(step, self.values)
        except DoesNotRun:
            # What was made for it, as the constants, stays.
            return
        self.steps.append(step)
        for name in step.outputs:
            value = self.values[name]
            if value.members is not None:
                self.sequences.append(name)
            elif value.items is not None and value.shape == (1,):
                self.lengths.append(name)
            elif value.items is None:
                self.tensors.append(name)

    def fresh(self, kind: str = "v") -> str:
        self._made += 1
        return f"{kind}{self._made}"

    def tensor(self, rank: int = 0) -> str | None:
        """A tensor, of a rank of at least so much; newer ones and the inputs more often."""
        fitting = [name for name in self.tensors if len(self.values[name].shape) >= rank]
        inputs = [name for name in fitting if name.startswith("x")]
        if inputs and self.rng.random() < 0.4:
            return self.rng.choice(inputs)
        return fitting[-1 - int(len(fitting) * self.rng.random() ** 2)] if fitting else None

    def shape(self, name: str) -> tuple[int, ...]:
        return self.values[name].shape

    def length(self) -> str | None:
        return self.rng.choice(self.lengths) if self.lengths else None

    def step(self, op: str, *inputs: str, count: int = 1, **params: Param) -> Step:
        return Step(op, inputs, tuple(self.fresh() for _ in range(count)), params)

    def add(self, op: str, *inputs: str, **params: Param) -> str:
        """A step that surely runs, and its output. Raises DoesNotRun where it does not."""
        made = self.step(op, *inputs, **params)
        run_step(made, self.values)
        self.steps.append(made)
        return made.outputs[0]

    def constant(self, *items: int) -> str:
        return self.add("Constant", value=items)

    def computed(self, parts: list[int | str]) -> str:
        """The vector of numbers and lengths."""
        return self.add("Concat", *[part if isinstance(part, str) else self.constant(part) for part in parts], axis=0)

    def length_of(self, value: int) -> int | str:
        """A length that is this number at the design's sizes, or the number."""
        fitting = [name for name in self.lengths if self.values[name].items == (value,)]
        return self.rng.choice(fitting) if fitting and self.rng.random() < 0.8 else value

    def dimension(self, name: str, axis: int) -> str:
        return self.add("Gather", self.add("Shape", name), index=axis)


@_maker(3)
def _concat(design: _Design) -> Step | None:
    name = design.tensor(1)
    if name is None:
        return None
    shape = design.shape(name)
    axis = design.rng.randrange(len(shape))
    fitting = [
        other
        for other in design.tensors
        if len(design.shape(other)) == len(shape)
        and all(a == b or at == axis for at, (a, b) in enumerate(zip(design.shape(other), shape, strict=True)))
    ]
    if design.rng.random() < 0.4:
        return design.step("Concat", _with_rows(design, name, axis, design.rng.randint(1, 5)), name, axis=axis)
    others = [design.rng.choice(fitting) for _ in range(design.rng.randint(1, 2))]
    return design.step("Concat", name, *others, axis=axis)


def _with_rows(design: _Design, name: str, axis: int, rows: int) -> str:
    """The tensor with more rows, of which nothing is known but their number."""
    dims: list[int | str] = [
        rows if at == axis else design.dimension(name, at) for at in range(len(design.shape(name)))
    ]
    extra = design.add("ConstantOfShape", shape=design.computed(dims))
    return design.add("Concat", name, extra, axis=axis)


@_maker(6)
def _divided(design: _Design) -> Step | None:
    """Rows added so that a number of parts divides them, or elements counted, and then divided."""
    name, rng = design.tensor(1), design.rng
    if name is None:
        return None
    if rng.random() < 0.5:
        name = design.add("Reshape", name, target=(-1,))
    axis, count = rng.randrange(len(design.shape(name))), rng.choice((2, 2, 3, 4, 4, 6, 8))
    rows = -design.shape(name)[axis] % count
    if rows:
        name = _with_rows(design, name, axis, rows)
    design.tensors.append(name)
    form = rng.random()
    if form < 0.6 and design.opset < 18:
        return design.step("Split", name, count=count, axis=axis, equal=1)
    if form < 0.8:
        target = [0] * axis + [count, -1]
        return design.step("Reshape", name, target=tuple(target))
    if form < 0.9:
        part = design.add("Div", design.dimension(name, axis), design.constant(count))
        lengths = design.computed([part] * count)
        if design.opset >= 13:
            return design.step("Split", name, count=count, axis=axis, lengths=lengths)
        return design.step("ConstantOfShape", shape=lengths)
    part = design.add("Div", design.dimension(name, axis), design.constant(count))
    return design.step("Mul", part, design.constant(rng.choice((1, 2, count, count))))


@_maker(2)
def _rejoin(design: _Design) -> Step | None:
    """All parts of a split, joined again."""
    splits = [step for step in design.steps if step.op == "Split"]
    if not splits:
        return None
    step = design.rng.choice(splits)
    return design.step("Concat", *step.outputs, axis=step.params["axis"])


@_maker(5)
def _split(design: _Design) -> Step | None:
    name = design.tensor(1)
    if name is None:
        return None
    shape, rng = design.shape(name), design.rng
    axis = rng.randrange(len(shape))
    dim = shape[axis]
    form = rng.choice(("equal", "equal", "lengths", "computed"))
    if form == "equal" and design.opset < 18:
        counts = [count for count in range(1, 9) if dim % count == 0]
        return design.step("Split", name, count=rng.choice(counts[1:] or counts), axis=axis, equal=1)
    if form == "equal":
        return design.step("Split", name, count=rng.randint(1, 5), axis=axis, chunks=1)
    count = rng.randint(1, 3)
    cuts = sorted(rng.randint(0, dim) for _ in range(count - 1))
    lengths = [end - start for start, end in zip([0, *cuts], [*cuts, dim], strict=True)]
    if form == "computed" and design.opset >= 13:
        return design.step(
            "Split", name, count=count, axis=axis, lengths=design.computed(list(map(design.length_of, lengths)))
        )
    return design.step("Split", name, count=count, axis=axis, lengths=tuple(lengths))


@_maker(6)
def _reshape(design: _Design) -> Step | None:
    name = design.tensor()
    if name is None:
        return None
    shape, rng = design.shape(name), design.rng
    total = 1
    for dim in shape:
        total *= dim
    target: list[int] = []
    kept = rng.randint(0, min(2, len(shape)))
    left = total
    for dim in shape[:kept]:
        target.append(0)
        left = left // dim if dim else 0
    for _ in range(rng.randint(0, 2)):
        factors = [factor for factor in (1, 2, 3, 4, 5, 6, 8) if left and left % factor == 0]
        if factors:
            target.append(rng.choice(factors))
            left //= target[-1]
    target.insert(rng.randint(kept, len(target)), -1)
    if rng.random() < 0.3:
        parts: list[int | str] = []
        for place, dim in enumerate(target):
            parts.append(design.dimension(name, place) if dim == 0 else dim if dim == -1 else design.length_of(dim))
        return design.step("Reshape", name, target=design.computed(parts))
    return design.step("Reshape", name, target=tuple(target))


@_maker()
def _flatten(design: _Design) -> Step | None:
    name = design.tensor()
    low = 0 if design.opset < 11 else -len(design.shape(name))
    return design.step("Flatten", name, axis=design.rng.randint(low, len(design.shape(name))))


@_maker(3)
def _slice(design: _Design) -> Step | None:
    name = design.tensor(1)
    if name is None:
        return None
    rng = design.rng
    axis = rng.randrange(len(design.shape(name)))
    start, end, by = rng.choice((0, 0, 1, 2, -3)), rng.choice((2, 5, -1, -2, 2**31 - 1)), rng.choice((1, 1, 1, 2, 3))
    if design.opset < 10:
        return design.step("Slice", name, starts=(start,), ends=(end,), axes=(axis,))
    ends, starts = (design.length() if rng.random() < 0.4 else None for _ in range(2))
    return design.step(
        "Slice", name, starts=starts or (start,), ends=ends or (end,), axes=(axis,), steps=(rng.choice((by, by, -by)),)
    )


@_maker()
def _transpose(design: _Design) -> Step | None:
    name = design.tensor()
    perm = list(range(len(design.shape(name))))
    design.rng.shuffle(perm)
    return design.step("Transpose", name, perm=tuple(perm)) if perm else None


@_maker(3)
def _add_tensors(design: _Design) -> Step | None:
    return design.step("AddTensors", design.tensor(), design.tensor())


@_maker()
def _expand(design: _Design) -> Step | None:
    name, rng = design.tensor(1), design.rng
    if name is None:
        return None
    parts: list[int | str] = [design.length_of(d) if d != 1 else rng.randint(1, 3) for d in design.shape(name)]
    return design.step("Expand", name, target=design.computed(parts))


@_maker()
def _tile(design: _Design) -> Step | None:
    name = design.tensor(1)
    if name is None:
        return None
    repeats = [design.rng.choice((1, 1, 2, 3)) for _ in design.shape(name)]
    if design.rng.random() < 0.3:
        return design.step("Tile", name, repeats=design.computed(list(map(design.length_of, repeats))))
    return design.step("Tile", name, repeats=tuple(repeats))


@_maker(2)
def _pad(design: _Design) -> Step | None:
    name = design.tensor(1)
    if name is None:
        return None
    pads = [design.rng.choice((0, 0, 1, 2, 3, -1)) for _ in range(2 * len(design.shape(name)))]
    if design.opset >= 11 and design.rng.random() < 0.3:
        return design.step("Pad", name, pads=design.computed(list(map(design.length_of, pads))))
    return design.step("Pad", name, pads=tuple(pads))


@_maker()
def _unsqueeze(design: _Design) -> Step | None:
    name = design.tensor()
    return design.step("Unsqueeze", name, axes=(design.rng.randint(0, len(design.shape(name))),))


@_maker()
def _squeeze(design: _Design) -> Step | None:
    name = design.tensor()
    ones = [axis for axis, dim in enumerate(design.shape(name)) if dim == 1]
    return design.step("Squeeze", name, axes=(design.rng.choice(ones),)) if ones else None


@_maker()
def _range(design: _Design) -> Step | None:
    limit = design.length()
    if limit is None or design.opset < 11:
        return None
    return design.step("Range", start=(design.rng.randint(0, 2),), limit=limit, delta=(design.rng.randint(1, 3),))


@_maker(3)
def _split_to_sequence(design: _Design) -> Step | None:
    name, rng = design.tensor(1), design.rng
    if name is None or design.opset < 11:
        return None
    shape = design.shape(name)
    axis = rng.randrange(len(shape))
    dim, form = shape[axis], rng.choice(("size", "lengths", "ones", "computed"))
    if form == "ones":
        return design.step("SplitToSequence", name, axis=axis, keepdims=rng.randint(0, 1))
    if form == "size":
        return design.step("SplitToSequence", name, axis=axis, size=design.length() or (rng.randint(1, 4),))
    cut = rng.randint(0, dim)
    parts: list[int | str] = [cut, dim - cut]
    if form == "computed":
        return design.step(
            "SplitToSequence", name, axis=axis, lengths=design.computed([design.length_of(p) for p in (cut, dim - cut)])
        )
    return design.step("SplitToSequence", name, axis=axis, lengths=(cut, dim - cut)) if parts else None


@_maker(3)
def _sequence_at(design: _Design) -> Step | None:
    if not design.sequences:
        return None
    return design.step("SequenceAt", design.rng.choice(design.sequences), position=design.rng.choice((0, 1, -1)))


@_maker(2)
def _read_sequence(design: _Design) -> Step | None:
    if not design.sequences:
        return None
    name = design.rng.choice(design.sequences)
    if design.rng.random() < 0.4:
        return design.step("SequenceLength", name)
    members = design.values[name].members or ((),)
    return design.step("ConcatFromSequence", name, axis=design.rng.randrange(len(members[0]))) if members[0] else None


@_maker(4)
def _dimension(design: _Design) -> Step | None:
    name = design.tensor(1)
    if name is None:
        return None
    return design.step("Gather", design.add("Shape", name), index=design.rng.randrange(len(design.shape(name))))


@_maker()
def _count(design: _Design) -> Step | None:
    return design.step("ReduceProd", design.add("Shape", design.tensor()))


@_maker(6)
def _arithmetic(design: _Design) -> Step | None:
    one, rng = design.length(), design.rng
    if one is None:
        return None
    op = rng.choice(("Add", "Sub", "Mul", "Div", "Div", "Mod", "Max", "Min"))
    if (op in ("Max", "Min") and design.opset < 12) or (op == "Mod" and design.opset < 10):
        return None
    other = design.length() if rng.random() < 0.4 else None
    pair = [one, other or design.constant(rng.randint(1, 6))]
    if rng.random() < 0.2:
        pair.reverse()
    return design.step(op, *pair)


@_maker(2)
def _computed_shape(design: _Design) -> Step | None:
    parts: list[int | str] = [
        design.length() or 2 if design.rng.random() < 0.7 else design.rng.randint(1, 4)
        for _ in range(design.rng.randint(1, 3))
    ]
    return design.step("ConstantOfShape", shape=design.computed(parts))
