"""Export the PyTorch models: `python models/make_torch_models.py [--check]`.

Needs torch, onnx, onnxscript and numpy (`--check` also onnxruntime). Weights are random, from a fixed seed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import catalogue
import check_models
import numpy as np
import onnx
import torch
import torch_architectures as parts
from catalogue import Case, Entry

SEED = 20
TORCHSCRIPT, DYNAMO = "TorchScript exporter", "dynamo exporter"
BOTH = ("onnxruntime", "reference")
Shape = tuple[int | str, ...]


@dataclass(frozen=True)
class Export:
    """One model, and every way in which it is exported.

    `inputs` and `outputs` give each name its shape, symbols by name. `vocabulary` bounds integer inputs by name.
    `values` holds, for each of `sizes`, the inputs that must not be random.
    """

    name: str
    about: str
    build: Callable[[], torch.nn.Module]
    inputs: dict[str, Shape]
    outputs: dict[str, Shape]
    sizes: tuple[dict[str, int], dict[str, int]]
    opsets: tuple[int, ...] = (11, 13, 17, 18)
    exporter: str = TORCHSCRIPT
    scripted: bool = False
    vocabulary: dict[str, tuple[int, int]] = field(default_factory=dict)
    values: tuple[dict[str, list[list[float]]], ...] = ({}, {})
    engines_at: dict[int, tuple[str, ...]] = field(default_factory=dict)
    valid: bool = True

    def entry(self, opset: int) -> Entry:
        suffix = ".dynamo" if self.exporter == DYNAMO else ""
        cases = tuple(Case(sizes, values) for sizes, values in zip(self.sizes, self.values, strict=True))
        engines = self.engines_at.get(opset, BOTH) if self.valid else ()
        file = f"{self.name}.opset{opset}{suffix}.onnx"
        return Entry(
            file, self.about, "make_torch_models.py", self.exporter, cases, self.vocabulary, engines, self.valid
        )


PAST: Shape = ("batch", 3, "past_len", 8)
PRESENT: Shape = ("batch", 3, "past_len + seq", 8)
IMAGE: Shape = ("batch", 16, "height", "width")
IMAGE_SIZES = ({"batch": 2, "height": 6, "width": 5}, {"batch": 3, "height": 4, "width": 9})
STATES: dict[str, Shape] = {"hidden": ("batch", 8), "cell": ("batch", 8)}
NEXT_STATES: dict[str, Shape] = {"next_hidden": ("batch", 8), "next_cell": ("batch", 8)}
FRAMES: dict[str, Shape] = {"x": ("batch", "seq", 6)}


def _lstm_cell(kind: type[parts.LstmCell]) -> parts.LstmCell:
    return kind(features=6, hidden=8)


def _gpt2(exporter: str, opsets: tuple[int, ...]) -> Export:
    return Export(
        "gpt2",
        "GPT-2-style decoder, 2 layers, past keys and values in, present ones out; query, key and value by one "
        "`split(n, dim=2)` each",
        parts.Gpt2,
        {"input_ids": ("batch", "seq"), "attention_mask": ("batch", "past_len + seq")}
        | {f"past_{kind}_{layer}": PAST for layer in range(2) for kind in ("key", "value")},
        {"logits": ("batch", "seq", 48)}
        | {f"present_{kind}_{layer}": PRESENT for layer in range(2) for kind in ("key", "value")},
        ({"batch": 2, "seq": 4, "past_len": 3}, {"batch": 3, "seq": 1, "past_len": 7}),
        opsets,
        exporter,
        vocabulary={"input_ids": (0, 48), "attention_mask": (0, 2)},
    )


def _block(name: str, about: str, build: Callable[[], torch.nn.Module], opsets: tuple[int, ...], by: str) -> Export:
    return Export(name, about, build, {"x": IMAGE}, {"y": IMAGE}, IMAGE_SIZES, opsets, by)


def _unrolled(name: str, about: str, kind: type[parts.LstmCell], opsets: tuple[int, ...], exporter: str) -> Export:
    return Export(
        name,
        about,
        lambda: parts.LstmUnrolled(_lstm_cell(kind)),
        {"x": ("batch", 3, 6)} | STATES,
        {"y": ("batch", 3, 8)} | NEXT_STATES,
        ({"batch": 2}, {"batch": 5}),
        opsets,
        exporter,
    )


def _vision() -> Iterator[Export]:
    c2f = "YOLO C2f block, two bottlenecks; channels halved by"
    unit = "ShuffleNet v2 unit; channels halved, joined and shuffled;"
    legacy = (11, 13, 17, 18)
    yield _block("c2f", f"{c2f} `split`", parts.C2fSplit, legacy, TORCHSCRIPT)
    yield _block("c2f", f"{c2f} `chunk(2, 1)`", parts.C2f, (18,), DYNAMO)
    invalid = "INVALID as exported: Split-13 has no `num_outputs`"
    yield replace(_block("c2f", f"{c2f} `chunk(2, 1)`; {invalid}", parts.C2f, (17,), DYNAMO), valid=False)
    yield _block("c2f_chunk", f"{c2f} `chunk(2, 1)`: written as Slice", parts.C2f, (13,), TORCHSCRIPT)
    yield _block("shufflenet", f"{unit} by `split`", parts.ShuffleNetUnitSplit, legacy, TORCHSCRIPT)
    yield _block("shufflenet", f"{unit} by `chunk(2, 1)`", parts.ShuffleNetUnit, (18,), DYNAMO)
    yield _block(
        "shufflenet_chunk", f"{unit} by `chunk(2, 1)`: written as Slice", parts.ShuffleNetUnit, (13,), TORCHSCRIPT
    )
    # Without dynamic axes, the sizes of the example are numbers in the targets of Reshape.
    fixed = {"x": (1, 16, 6, 4)}, {"y": (1, 16, 6, 4)}, ({}, {})
    yield Export("shufflenet_fixed", f"{unit} exported at one size", parts.ShuffleNetUnitSplit, *fixed, (17,))


def _recurrent() -> Iterator[Export]:
    steps = "three LSTM steps, written out; four gates by"
    legacy = (11, 13, 17, 18)
    yield _unrolled("lstm_unrolled", f"{steps} `split`", parts.LstmCellSplit, legacy, TORCHSCRIPT)
    yield _unrolled("lstm_unrolled", f"{steps} `chunk(4, 1)`", parts.LstmCell, (18,), DYNAMO)
    yield _unrolled(
        "lstm_unrolled_chunk", f"{steps} `chunk(4, 1)`: written as Slice", parts.LstmCell, (13,), TORCHSCRIPT
    )
    yield Export(
        "lstm_loop",
        "LSTM over any length, scripted: Loop with the split of the gates in it",
        lambda: parts.LstmLoop(_lstm_cell(parts.LstmCellSplit)),
        FRAMES | STATES,
        NEXT_STATES,
        ({"batch": 2, "seq": 3}, {"batch": 3, "seq": 5}),
        scripted=True,
    )
    yield Export(
        "lstm_scan",
        "LSTM over any length by torch's `scan`: Scan with `chunk(4, 1)` in it",
        lambda: parts.LstmScan(_lstm_cell(parts.LstmCell)),
        {"x": ("seq", "batch", 6)} | STATES,
        {"y": ("seq", "batch", 8)} | NEXT_STATES,
        ({"batch": 2, "seq": 3}, {"batch": 3, "seq": 5}),
        (18,),
        DYNAMO,
    )


def _gates() -> Iterator[Export]:
    for opsets, exporter in (((11, 13, 17, 18), TORCHSCRIPT), ((18,), DYNAMO)):
        yield Export(
            "glu",
            "GLU, by `functional.glu` and by hand on `torch.split(x, 3, dim=-1)` of 8: 3, 3 and 2",
            parts.Glu,
            FRAMES,
            {"y": ("batch", "seq", 6)},
            ({"batch": 2, "seq": 3}, {"batch": 3, "seq": 5}),
            opsets,
            exporter,
        )
    row = [0.5, -0.25, 1.0, 0.75, -0.5, 0.125]
    for build, how, opsets, exporter in (
        (parts.BranchedGate, "scripted", (11, 13, 17, 18), TORCHSCRIPT),
        (parts.BranchedGateCond, "by `torch.cond`", (18,), DYNAMO),
    ):
        yield Export(
            "branched_gate",
            f"If on the input's mean, a split in each branch: 6 and 6, or 4, 2 and 6; {how}",
            build,
            {"x": ("batch", 6)},
            {"y": ("batch", 6)},
            ({"batch": 2}, {"batch": 3}),
            opsets,
            exporter,
            scripted=exporter == TORCHSCRIPT,
            values=({"x": [row] * 2}, {"x": [[-each for each in row]] * 3}),
        )


def _sequences() -> Iterator[Export]:
    yield Export(
        "segment_means",
        "mean of each stretch of 4 frames, scripted: `torch.split(x, 4, dim=1)` of any length, looped over",
        parts.SegmentMeans,
        FRAMES,
        {"y": ("batch", "segments", 6)},
        ({"batch": 2, "seq": 8, "segments": 2}, {"batch": 3, "seq": 11, "segments": 3}),
        scripted=True,
        # At opset 11 the list is a Loop's scan output, which onnx 1.23.2's reference evaluator does not stack.
        engines_at={11: ("onnxruntime",)},
    )
    yield Export(
        "segment_means",
        "mean of each stretch of 4 frames: three of them, as `torch.export` fixes their number",
        parts.SegmentMeans,
        FRAMES,
        {"y": ("batch", 3, 6)},
        ({"batch": 2, "seq": 11}, {"batch": 3, "seq": 9}),
        (18,),
        DYNAMO,
    )
    for opsets, exporter in (((11, 13, 17, 18), TORCHSCRIPT), ((18,), DYNAMO)):
        yield Export(
            "prefix_split",
            "prompt and continuation apart: `torch.split(x, [n, seq - n], dim=1)` with n known only at run time",
            parts.PrefixSplit,
            FRAMES | {"prefix": ("batch", "prefix_len", 6)},
            {"y": ("batch", "seq", 6)},
            ({"batch": 2, "seq": 7, "prefix_len": 3}, {"batch": 3, "seq": 5, "prefix_len": 4}),
            opsets,
            exporter,
            scripted=exporter == TORCHSCRIPT,
        )


def all_exports() -> Iterator[Export]:
    """Every export, in the order of the files' making."""
    yield _gpt2(TORCHSCRIPT, (11, 13, 17, 18))
    yield _gpt2(DYNAMO, (18,))
    yield from _vision()
    yield from _recurrent()
    yield from _gates()
    yield from _sequences()


def arrays_for(export: Export, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Random inputs of the export's shapes at these sizes, for tracing."""
    rng = np.random.default_rng(SEED)
    arrays: dict[str, np.ndarray] = {}
    for name, shape in export.inputs.items():
        concrete = [dim if isinstance(dim, int) else sum(sizes[term] for term in dim.split(" + ")) for dim in shape]
        if name in export.vocabulary:
            arrays[name] = rng.integers(*export.vocabulary[name], concrete)
        else:
            arrays[name] = rng.standard_normal(concrete).astype(np.float32)
    return arrays


def export_one(export: Export, opset: int, path: Path) -> torch.nn.Module:
    """Export to `path`, and return the module that was exported, for comparison."""
    torch.manual_seed(SEED)
    module = export.build().eval()
    args = tuple(torch.from_numpy(array) for array in arrays_for(export, export.sizes[0]).values())
    dims = {name: _symbols(shape) for name, shape in (export.inputs | export.outputs).items()}
    names = {"input_names": list(export.inputs), "output_names": list(export.outputs)}
    if export.exporter == DYNAMO:
        shapes = tuple(dims[name] for name in export.inputs)
        options = {"dynamo": True, "dynamic_shapes": shapes, "external_data": False, "verbose": False}
    else:
        options = {"dynamo": False, "dynamic_axes": dims}
    exported = torch.jit.script(module) if export.scripted else module
    torch.onnx.export(exported, args, str(path), opset_version=opset, **names, **options)
    return module


def _symbols(shape: Shape) -> dict[int, str]:
    return {axis: dim for axis, dim in enumerate(shape) if isinstance(dim, str)}


def without_paths(path: Path) -> None:
    """Take out of the file every doc string and metadata entry that carries a path of this machine (stack traces).

    Raises:
        AssertionError: a path is left all the same.
    """
    machine = (str(catalogue.FOLDER), sys.prefix, sys.base_prefix, str(Path.home()), os.getcwd(), tempfile.gettempdir())
    model = onnx.load(path)
    graphs = [model.graph]
    graphs += [a.g for node in catalogue.nodes_of(model) for a in node.attribute if a.HasField("g")]
    carriers = [model, *model.functions, *graphs, *catalogue.nodes_of(model)]
    for graph in graphs:
        carriers += [*graph.input, *graph.output, *graph.value_info, *graph.initializer]
    for carrier in carriers:
        kept = [entry for entry in carrier.metadata_props if not _mentions(entry.value, machine)]
        if len(kept) < len(carrier.metadata_props):
            entries = [(entry.key, entry.value) for entry in kept]
            del carrier.metadata_props[:]
            for key, value in entries:
                carrier.metadata_props.add(key=key, value=value)
        if _mentions(carrier.doc_string, machine):
            carrier.ClearField("doc_string")
    data = model.SerializeToString(deterministic=True)
    left = [text for text in machine if text.encode() in data]
    assert not left, f"{path.name} still mentions {left}"
    path.write_bytes(data)


def _mentions(text: str, machine: tuple[str, ...]) -> bool:
    return 'File "' in text or any(each in text for each in machine)


def store_expected(module: torch.nn.Module, entry: Entry, path: Path) -> None:
    """Run the module itself on the inputs that the check will use, and store inputs and outputs."""
    model = onnx.load(catalogue.FOLDER / entry.file)
    row = {"ranges": entry.ranges}
    arrays: dict[str, np.ndarray] = {}
    for number, case in enumerate(entry.cases):
        inputs = check_models.inputs_for(model, row, {"dims": case.dims, "values": case.values})
        with torch.no_grad():
            found = module(*(torch.from_numpy(array) for array in inputs.values()))
        results = found if isinstance(found, tuple) else (found,)
        arrays |= {f"{number}.{name}": array for name, array in inputs.items()}
        for output, result in zip(model.graph.output, results, strict=True):
            arrays[f"{number}.{output.name}"] = result.numpy()
    np.savez(path, **arrays)


def main() -> int:
    """Export all models and write the index; with `--check`, check them; the exit code is 1 when one fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="check every model, in a child process each")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as scratch:
        entries: list[Entry] = []
        expected: dict[str, Path] = {}
        for export in all_exports():
            for opset in export.opsets:
                entry = export.entry(opset)
                path = catalogue.FOLDER / entry.file
                module = export_one(export, opset, path)
                without_paths(path)
                expected[entry.file] = Path(scratch, f"{len(entries)}.npz")
                store_expected(module, entry, expected[entry.file])
                entries.append(entry)
        catalogue.write(entries, "make_torch_models.py")
        return 1 if options.check and check_models.check([entry.file for entry in entries], expected) else 0


if __name__ == "__main__":
    sys.exit(main())
