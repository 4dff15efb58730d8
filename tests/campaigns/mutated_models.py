"""Mutated models, inferred by splitgraph and judged by onnx's checker and onnxruntime.

    python tests/campaigns/mutated_models.py --from 0 --count 5000

The models are onnx's own node tests and those of `models/` that are small. One tensor, input, output or attribute of
each is changed at random. Printed is every mutant that splitgraph takes and both judges refuse, with its seed, every
crash of splitgraph, and the figures. Each mutant is judged in a process of its own: a judge that dies of it refuses it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import onnx
import onnxruntime
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper

sys.path[:0] = [str(Path(__file__).parents[2])]

import splitgraph  # noqa: E402, the folder above is on the path only now

ROOT = Path(__file__).parents[2]
# Larger models take too long to judge thousands of times.
MOST_BYTES = 60_000
# Seconds of CPU time for a judge; some sizes make onnxruntime compute for ever while it folds constants.
LONGEST_JUDGEMENT = 10
NUMBERS = (-(2**31), -7, -3, -2, -1, 0, 1, 2, 3, 5, 17, 1000)
FIELDS = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")
# What onnxruntime says of a valid model that it has no kernel for.
NO_KERNEL = ("NOT_IMPLEMENTED", "NotImplemented", "Could not find an implementation", "is not a registered function/op")


@cache
def sources() -> tuple[tuple[str, bytes], ...]:
    """Name and bytes of every model that is mutated."""
    # It warns of the overflows that some of its cases are about.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        cases = [(case.name, case.model) for case in collect_testcases(None)]
    held = [(name, model.SerializeToString()) for name, model in cases if model is not None]
    held += [(path.name, path.read_bytes()) for path in sorted((ROOT / "models").glob("*.onnx"))]
    return tuple((name, written) for name, written in held if len(written) <= MOST_BYTES)


def nodes_of(model: ModelProto) -> list[NodeProto]:
    """The nodes of the main graph, of the graphs in it, and of functions."""
    found = list(model.graph.node)
    for node in found:
        found += [inner for each in node.attribute for graph in (each.g, *each.graphs) for inner in graph.node]
    return found + [node for function in model.functions for node in function.node]


def tensors_of(model: ModelProto) -> list[TensorProto]:
    """Initializers and tensors in attributes."""
    held = [each.t for node in nodes_of(model) for each in node.attribute if each.HasField("t")]
    return [*model.graph.initializer, *held]


def mutate(model: ModelProto, rng: random.Random) -> str | None:
    """Change one thing of the model; returns what, None where the model has nothing of the kind."""
    return rng.choice((_mutate_tensor, _mutate_inputs, _mutate_outputs, _mutate_attribute, _mutate_attribute))(
        model, rng
    )


def _mutate_tensor(model: ModelProto, rng: random.Random) -> str | None:
    held = tensors_of(model)
    if not held:
        return None
    tensor = rng.choice(held)
    changes: dict[str, Callable[[], object]] = {
        "data type": lambda: setattr(tensor, "data_type", rng.randint(0, 27)),
        "dims": lambda: tensor.dims.append(rng.choice(NUMBERS)),
        "no dims": lambda: tensor.ClearField("dims"),
        "raw data": lambda: setattr(tensor, "raw_data", tensor.raw_data + b"\1"),
        "entries": lambda: getattr(tensor, rng.choice(FIELDS)).append(1),
        "less raw data": lambda: setattr(tensor, "raw_data", tensor.raw_data[:-1]),
    }
    name = rng.choice(list(changes))
    changes[name]()
    return f"tensor {tensor.name!r}: {name}"


def _mutate_inputs(model: ModelProto, rng: random.Random) -> str | None:
    held = [node for node in nodes_of(model) if node.input]
    if not held:
        return None
    node = rng.choice(held)
    at = rng.randrange(len(node.input))
    changes: dict[str, Callable[[], object]] = {
        "left out": lambda: node.input.__setitem__(at, ""),
        "removed": lambda: node.input.pop(at),
        "added": lambda: node.input.append(node.input[at]),
        "added empty": lambda: node.input.append(""),
        "another": lambda: node.input.__setitem__(at, rng.choice(node.input)),
        "undefined": lambda: node.input.__setitem__(at, "nobody_gives_this"),
    }
    name = rng.choice(list(changes))
    changes[name]()
    return f"{node.op_type}: input {at} {name}"


def _mutate_outputs(model: ModelProto, rng: random.Random) -> str | None:
    node = rng.choice(nodes_of(model))
    if not node.output:
        return None
    name = rng.choice(("removed", "added", "twice"))
    if name == "removed":
        node.output.pop()
    else:
        node.output.append("one_more" if name == "added" else node.output[0])
    return f"{node.op_type}: output {name}"


def _mutate_attribute(model: ModelProto, rng: random.Random) -> str | None:
    node = rng.choice(nodes_of(model))
    if not node.attribute or rng.random() < 0.1:
        added = rng.choice(("axis", "axes", "nothing_has_this", "consumed_inputs", "mode", "to", "keepdims"))
        if added in [each.name for each in node.attribute]:
            return None
        node.attribute.append(helper.make_attribute(added, rng.choice((1, [0, 1], "linear", 1.5))))
        return f"{node.op_type}: attribute {added} added"
    at = rng.randrange(len(node.attribute))
    attribute = node.attribute[at]
    name = rng.choice(("removed", "retyped", "value", "value", "value", "value"))
    if name == "removed":
        del node.attribute[at]
    elif name == "retyped":
        attribute.type = rng.randint(0, 11)
    elif attribute.type == AttributeProto.INT:
        attribute.i = rng.choice(NUMBERS)
    elif attribute.type == AttributeProto.FLOAT:
        attribute.f = rng.choice((-1.0, 0.0, 2.0, float("nan")))
    elif attribute.type == AttributeProto.STRING:
        attribute.s = rng.choice((b"", b"nonsense", attribute.s.upper()))
    elif attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS, AttributeProto.STRINGS):
        _mutate_list(attribute, rng)
    else:
        return None
    return f"{node.op_type}: attribute {attribute.name if name != 'removed' else at} {name}"


def _mutate_list(attribute: AttributeProto, rng: random.Random) -> None:
    kinds = {AttributeProto.INTS: "ints", AttributeProto.FLOATS: "floats", AttributeProto.STRINGS: "strings"}
    items = getattr(attribute, kinds[attribute.type])
    if items and rng.random() < 0.3:
        items.pop()
    elif items and attribute.type == AttributeProto.INTS and rng.random() < 0.7:
        items[rng.randrange(len(items))] = rng.choice(NUMBERS)
    else:
        items.append(b"a" if attribute.type == AttributeProto.STRINGS else rng.choice(NUMBERS[3:]))


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


# Warnings on faults that leave a node one reading: the judges refuse what every rewrite mends.
REPAIRED = ("SG207", "SG208", "SG416")


def mutants(first: int, count: int) -> Iterator[tuple[int, str, str, ModelProto]]:
    """Seed, name of the model, what was changed, and the mutant."""
    for seed in range(first, first + count):
        rng = random.Random(seed)
        name, written = rng.choice(sources())
        model = onnx.load_from_string(written)
        changed = mutate(model, rng)
        if changed is not None:
            yield seed, name, changed, model


@cache
def is_judged(name: str) -> bool:
    """True for a model that both judges take as it is."""
    return not any(judge(dict(sources())[name]).values())


def check(first: int, count: int, *, alone: bool = False) -> Counter[str]:
    """Print what is wrong with these seeds; the figures. alone: also what only onnxruntime refuses."""
    figures: Counter[str] = Counter()
    for seed, name, changed, model in mutants(first, count):
        figures["mutants"] += 1
        written = model.SerializeToString()
        try:
            analysis = splitgraph.infer(model)
            taken = analysis.ok
            repaired = any(found.code in REPAIRED for found in analysis.diagnostics)
        except splitgraph.SplitgraphError:
            taken = repaired = False
        except Exception:
            figures["crashes"] += 1
            print(f"{seed}: {name}: {changed}: {traceback.format_exc()}", flush=True)
            continue
        if not taken:
            figures["refused by splitgraph"] += 1
            continue
        if repaired:
            figures["repaired by splitgraph"] += 1
            continue
        if not is_judged(name):
            figures["of models that the judges do not take"] += 1
            continue
        said = judge(written)
        if any(text in said["onnxruntime"] for text in NO_KERNEL) or not said["onnxruntime"]:
            figures["taken by onnxruntime, or without a kernel"] += 1
            continue
        kind = "let through" if said["checker"] else "refused by onnxruntime alone"
        if "OpType: If" in said["checker"]:
            # What is wrong in a branch that a constant condition rules out is no finding.
            kind = "in a branch"
        figures[kind] += 1
        if kind == "let through" or alone:
            texts = " | ".join(" ".join(text.split())[:200] for text in said.values() if text)
            print(f"{seed}: {name}: {changed}: {kind}: {texts}", flush=True)
    return figures


def main() -> int:
    """Check a range of seeds; 1 when a mutant was let through or splitgraph crashed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed")
    parser.add_argument("--count", type=int, default=2000, help="how many seeds")
    parser.add_argument("--alone", action="store_true", help="print also what onnxruntime alone refuses")
    options = parser.parse_args()
    figures = check(options.first, options.count, alone=options.alone)
    print(", ".join(f"{kind}: {count}" for kind, count in figures.items()))
    return 1 if figures["let through"] or figures["crashes"] else 0


if __name__ == "__main__":
    sys.exit(main())
