"""Results that are made up, as the verbs give them."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.conversion.rewrite import Change, Rewrite
from splitgraph.dim import parse_expression
from splitgraph.findings.diagnostics import Diagnostic
from splitgraph.inference.analysis import Analysis, Completeness, LazyReports, Reports, SplitReport
from splitgraph.model.value_type import ValueType, tensor
from splitgraph.verification.verification import Verification


def dims(*texts: object) -> tuple:
    return tuple(
        None if text is None else text if isinstance(text, int) else parse_expression(str(text)) for text in texts
    )


def make_split(
    name: str = "s",
    *,
    op: str = "Split",
    domain: str = "",
    version: int = 18,
    location: str | None = None,
    axis: int | None = 1,
    input: ValueType | None = None,
    lengths: Sequence[object] = (3, 3),
    outputs: Sequence[tuple[str, ValueType]] | None = None,
    obligations: Sequence[str] = (),
) -> SplitReport:
    lengths = dims(*lengths)
    if outputs is None:
        outputs = [(f"{name}_{i}", tensor("float32", dims("N", length))) for i, length in enumerate(lengths)]
    return SplitReport(
        name,
        op,
        domain,
        version,
        f"main/{name}" if location is None else location,
        axis,
        "x",
        tensor("float32", dims("N", 6)) if input is None else input,
        tuple(outputs),
        lengths,
        tuple(obligations),
    )


def make_analysis(
    *splits: SplitReport,
    diagnostics: Sequence[Diagnostic] = (),
    completeness: Completeness | None = None,
    **more: object,
) -> Analysis:
    fields = {"types": {"y": tensor("float32", dims("N", 3))}, "opset": {"": 18}, **more}
    told = {name: fields.pop(name) for name in ("required_by", "assumed_by", "generated") if name in fields}
    reports = Reports(splits, symbols=fields.pop("symbols", {"N": (0, None)}), **told)
    return Analysis(
        held=None,
        reports=LazyReports(lambda: reports),
        diagnostics=tuple(diagnostics),
        completeness=completeness or Completeness(12, 12, 4, 0, 3, ()),
        **fields,
    )


def make_rewrite(*changes: Change, before: int = 13, after: int = 18, **more: object) -> Rewrite:
    return Rewrite(None, changes, from_opset={"": before}, to_opset={"": after}, **more)


def make_verification(verdict: str = "equal", **more: object) -> Verification:
    fields = {
        "engine": "onnxruntime",
        "cases": 3,
        "max_abs_diff": 0.0,
        "max_rel_diff": 0.0,
        "first_difference": None,
        "proofs": (),
        **more,
    }
    return Verification(verdict, **fields)


SPLIT_CHANGE = Change("main/s", "Split-13", "Split-18", "opset 18")
OTHER_CHANGE = Change("main/r", "Relu-6", "Relu-14", "opset 14")

GPT2 = make_analysis(
    *(
        make_split(
            f"/h.{i}/attn/Split", version=13, axis=2, input=tensor("float32", dims("B", "T", 2304)), lengths=(768,) * 3
        )
        for i in range(2)
    ),
    make_split("/head/Split", input=tensor("float32", dims("B", "N")), lengths=("(N + 1)//2", "N//2")),
    opset={"": 13},
    completeness=Completeness(1204, 1204, 38, 0, 412, ()),
)
