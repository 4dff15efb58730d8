"""Whether an inferred type is right, exact or wrong against the corpus's expected one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from expr import Unknown, assignments, ev, prepare

CORPUS_DTYPE = {"float": "float32", "double": "float64"}


@dataclass
class Judgement:
    """wrong: claims that do not hold. loose: dimensions that could have been known and are not."""

    wrong: list[str] = field(default_factory=list)
    loose: list[str] = field(default_factory=list)


def judge(
    expected: dict[str, Any], types: dict[str, Any], symbols: set[str], where: list[str], hi: int = 13
) -> Judgement:
    """Compare the expected types of a case with inferred ones, dimensions by evaluation over many assignments of the
    symbols.
    """
    result = Judgement()
    cases = assignments(symbols, where, hi=hi)
    assert cases, "no assignment satisfies the case"
    groups: dict[str, set[str]] = {}
    for name, want in expected.items():
        got = types.get(name)
        if want["kind"] == "any":
            if got is not None and (got.kind != "unknown" and (got.dtype is not None or got.shape is not None)):
                result.wrong.append(f"{name}: claims {got} where nothing can be known")
            continue
        if got is None or got.kind == "unknown":
            result.loose.append(f"{name}: unknown")
            continue
        dtype = CORPUS_DTYPE.get(want["dtype"], want["dtype"])
        if got.kind != want["kind"] or got.dtype not in (None, dtype):
            result.wrong.append(f"{name}: {got.kind} {got.dtype}, expected {want['kind']} {dtype}")
        if want["shape"] is None:
            if got.shape is not None:
                result.wrong.append(f"{name}: claims rank {len(got.shape)}")
            continue
        if got.shape is None:
            result.loose.append(f"{name}: unknown rank")
            continue
        if len(got.shape) != len(want["shape"]):
            result.wrong.append(f"{name}: rank {len(got.shape)}, expected {len(want['shape'])}")
            continue
        for position, (mine, theirs) in enumerate(zip(got.shape, want["shape"], strict=True)):
            _judge_dim(result, f"{name}[{position}]", mine, theirs, symbols, cases, groups)
    result.wrong += [f"?{key} is {', '.join(sorted(shown))}" for key, shown in groups.items() if len(shown) > 1]
    return result


def _judge_dim(
    result: Judgement, place: str, mine: Any, theirs: Any, symbols: set[str], cases: list[dict[str, int]], groups: dict
) -> None:
    text = None if mine is None else mine if isinstance(mine, int) else str(mine)
    if isinstance(theirs, str) and theirs.startswith("?"):
        if len(theirs) > 1:
            groups.setdefault(theirs[1:], set()).add(str(text))
        if isinstance(text, int) or (text is not None and _evaluable(text, symbols)):
            result.wrong.append(f"{place}: claims {text} where nothing can be known")
        return
    if text is None:
        result.loose.append(f"{place}: unknown, expected {theirs}")
        return
    try:
        mine_prepared = prepare(text, symbols) if isinstance(text, str) else None
    except Unknown:
        result.loose.append(f"{place}: {text}, expected {theirs}")
        return
    wanted = prepare(theirs, symbols) if isinstance(theirs, str) else None
    for case in cases:
        value = text if mine_prepared is None else ev(mine_prepared, case)
        want = theirs if wanted is None else ev(wanted, case)
        if value != want:
            result.wrong.append(f"{place}: {text} is {value} for {case}, expected {theirs} = {want}")
            return


def _evaluable(text: str, symbols: set[str]) -> bool:
    try:
        prepare(text, symbols)
    except Unknown:
        return False
    return True
