"""What onnx's checker and onnxruntime say of a mutant that splitgraph takes: it is wrong where both refuse it."""

from __future__ import annotations

import json
import os
import resource
from functools import cache

import onnx
import onnxruntime
from mutated_models_mutants import Mutant
from mutated_models_sources import Source
from mutated_models_trial import Report
from onnx import ModelProto

import splitgraph

# Seconds of CPU time for a judge; some sizes make onnxruntime compute for ever while it folds constants.
LONGEST_JUDGEMENT = 10
# Warnings on faults that leave a node one reading: the judges refuse what every rewrite mends.
REPAIRED = ("SG207", "SG208", "SG416")
# What onnxruntime says of a valid model that it has no kernel for.
NO_KERNEL = ("NOT_IMPLEMENTED", "NotImplemented", "Could not find an implementation", "is not a registered function/op")
LET_THROUGH = "let through"
ALONE = "refused by onnxruntime alone"


def judge_mutant(mutant: Mutant, report: Report, *, alone: bool) -> None:
    """Add to the report what the judges say. alone: what only onnxruntime refuses is a fault, too."""
    assert isinstance(mutant.content, ModelProto)
    kind, said = _verdict(mutant.content, mutant.source)
    report.outcomes.append(f"judged: {kind}")
    if kind == LET_THROUGH or (alone and kind == ALONE):
        report.place, report.fault = kind, said


def _verdict(model: ModelProto, source: Source) -> tuple[str, str]:
    """Which kind of case a mutant is, and what the judges say where they refuse what splitgraph takes."""
    analysis = splitgraph.infer(model)
    if not analysis.ok:
        return "refused by splitgraph", ""
    if any(found.code in REPAIRED for found in analysis.diagnostics):
        return "repaired by splitgraph", ""
    if not _is_judged(source):
        return "of models that the judges do not take", ""
    said = judge(model.SerializeToString())
    if any(text in said["onnxruntime"] for text in NO_KERNEL) or not said["onnxruntime"]:
        return "taken by onnxruntime, or without a kernel", ""
    texts = " | ".join(" ".join(text.split())[:200] for text in said.values() if text)
    if "OpType: If" in said["checker"]:
        # What is wrong in a branch that a constant condition rules out is no finding.
        return "in a branch", texts
    return LET_THROUGH if said["checker"] else ALONE, texts


@cache
def _is_judged(source: Source) -> bool:
    """True for a model that both judges take as it is."""
    return not any(judge(source.written).values())


def judge(written: bytes) -> dict[str, str]:
    """What the checker and onnxruntime say against a model, in a process of its own; "" of one that takes it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (LONGEST_JUDGEMENT, LONGEST_JUDGEMENT))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.close(reader)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(writer, "w") as answers:
            for name, ask in (("checker", _ask_checker), ("onnxruntime", _ask_onnxruntime)):
                answers.write(json.dumps([name, ask(written)]) + "\n")
                answers.flush()
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answers:
        said = dict(json.loads(line) for line in answers)
    os.waitpid(child, 0)
    return {name: said.get(name, "it ends the process") for name in ("checker", "onnxruntime")}


def _ask_checker(written: bytes) -> str:
    try:
        onnx.checker.check_model(written)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _ask_onnxruntime(written: bytes) -> str:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        onnxruntime.InferenceSession(written, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""
