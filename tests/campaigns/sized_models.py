"""Networks that are exported twice: at fixed sizes, and with dynamic axes.

    python tests/campaigns/sized_models.py FOLDER [--count 342]

Needs torch with its TorchScript exporter, and nothing of splitgraph. Each network gives NAME.fixed.onnx and
NAME.dynamic.onnx for a batch of 1 at opset 17 and for one of 2 at opset 13; index.json lists them with their axes.
`reshaped_models.py` gives the fixed ones the sizes of the dynamic ones.
"""

from __future__ import annotations

import argparse
import itertools
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as f
from torch import nn

Axes = dict[str, dict[int, str]]


class Network(NamedTuple):
    """A network, what it is called with for a batch, and the names of its dynamic axes."""

    kind: str
    module: nn.Module
    arguments: Callable[[int], tuple[Any, ...]]
    axes: Axes


class Classifier(nn.Module):
    def __init__(self, width: int, flat: str, pools: bool) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, width, 3, 2, 1), nn.Conv2d(width, 2 * width, 3, 2, 1)
        self.norm, self.flat, self.pools = nn.BatchNorm2d(2 * width), flat, pools
        self.head = nn.Linear(2 * width * (1 if flat == "mean" else 16 if pools else 32), 10)

    def forward(self, x: Any) -> Any:
        x = f.relu(self.norm(self.second(f.relu(self.first(x)))))
        if self.flat == "mean":
            return self.head(x.mean((2, 3)))
        x = f.adaptive_avg_pool2d(x, (4, 4)) if self.pools else x
        return self.head(x.view(x.size(0), -1) if self.flat == "view" else torch.flatten(x, 1))


class Shuffle(nn.Module):
    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups, self.first = groups, nn.Conv2d(3, 4 * groups, 3, 1, 1)

    def forward(self, x: Any) -> Any:
        x = self.first(x)
        batch, channels, height, width = x.shape
        x = x.view(batch, self.groups, channels // self.groups, height, width).transpose(1, 2).contiguous()
        one, other = x.view(batch, channels, height, width).chunk(2, 1)
        return torch.cat([other, f.relu(one)], 1)


class Transformer(nn.Module):
    def __init__(self, width: int, heads: int, layers: int, causal: bool, token: bool, positions: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.norm = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.token = nn.Parameter(torch.randn(1, 1, width)) if token else None
        self.positions = nn.Parameter(torch.randn(1, 64, width)) if positions else None
        self.register_buffer("mask", torch.ones(64, 64).tril()[None, None])

    def forward(self, x: Any) -> Any:
        if self.token is not None:
            x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
        if self.positions is not None:
            x = x + self.positions[:, : x.shape[1]]
        for qkv, out, norm in zip(self.qkv, self.out, self.norm, strict=True):
            batch, length, width = x.shape
            parts = qkv(norm(x)).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
            weights = parts[0] @ parts[1].transpose(-1, -2) / (width // self.heads) ** 0.5
            if self.causal:
                weights = weights.masked_fill(self.mask[:, :, :length, :length] == 0, -1e9)
            x = x + out((weights.softmax(-1) @ parts[2]).transpose(1, 2).reshape(batch, length, width))
        return x[:, 0] if self.token is not None else x


class Cached(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Any, keys: Any, values: Any) -> Any:
        batch, length, width = x.shape
        parts = [
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(x).split(width, 2)
        ]
        keys, values = torch.cat([keys, parts[1]], 2), torch.cat([values, parts[2]], 2)
        mixed = ((parts[0] @ keys.transpose(-1, -2)).softmax(-1) @ values).transpose(1, 2).contiguous()
        return self.out(mixed.view(batch, length, width)), keys, values


class Recurrent(nn.Module):
    def __init__(self, kind: str, width: int, layers: int, both: bool, last: bool) -> None:
        super().__init__()
        self.cells = getattr(nn, kind)(5, width, layers, batch_first=True, bidirectional=both)
        self.head, self.last = nn.Linear(width * (2 if both else 1), 5), last

    def forward(self, x: Any) -> Any:
        found, _ = self.cells(x)
        return self.head(found[:, -1] if self.last else found)


class Stateful(nn.Module):
    def __init__(self, kind: str, width: int) -> None:
        super().__init__()
        self.cells, self.width, self.has_two = getattr(nn, kind)(5, width, 1), width, kind == "LSTM"

    def forward(self, x: Any) -> Any:
        state = torch.zeros(1, x.shape[0], self.width)
        found, _ = self.cells(x.transpose(0, 1), (state, state) if self.has_two else state)
        return found.transpose(0, 1)


class Detector(nn.Module):
    def __init__(self, width: int, anchors: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, width, 3, 2, 1), nn.Conv2d(width, width, 3, 2, 1)
        self.head, self.anchors, self.classes = nn.Conv2d(width, anchors * (5 + classes), 1), anchors, classes

    def forward(self, x: Any) -> Any:
        one = f.silu(self.first(x))
        return torch.cat([self.decoded(one), self.decoded(f.silu(self.second(one)))], 1)

    def decoded(self, x: Any) -> Any:
        x = self.head(x)
        batch, _, height, width = x.shape
        x = x.view(batch, self.anchors, 5 + self.classes, height, width).permute(0, 1, 3, 4, 2).contiguous()
        rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        grid = torch.stack((columns, rows), 2).view(1, 1, height, width, 2).float()
        boxes = torch.cat([x[..., :2].sigmoid() * 2 + grid, x[..., 2:4].sigmoid() ** 2, x[..., 4:].sigmoid()], -1)
        return boxes.view(batch, -1, 5 + self.classes)


class Segmenter(nn.Module):
    def __init__(self, width: int, mode: str) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, width, 3, 1, 1), nn.Conv2d(width, 2 * width, 3, 2, 1)
        self.third, self.up = nn.Conv2d(2 * width, 4 * width, 3, 2, 1), nn.Conv2d(6 * width, 2 * width, 3, 1, 1)
        self.last, self.mode = nn.Conv2d(3 * width, 4, 3, 1, 1), mode

    def forward(self, x: Any) -> Any:
        one = f.relu(self.first(x))
        two = f.relu(self.second(one))
        three = f.relu(self.third(two))
        wide = f.relu(self.up(torch.cat([self.enlarged(three, two), two], 1)))
        return self.last(torch.cat([self.enlarged(wide, one), one], 1))

    def enlarged(self, x: Any, like: Any) -> Any:
        if self.mode == "scale":
            return f.interpolate(x, scale_factor=2.0)
        return f.interpolate(x, size=like.shape[2:], mode=self.mode)


def drawn(*shape: int) -> Callable[[int], tuple[Any, ...]]:
    """One argument: items of this shape."""
    return lambda batch: (torch.randn(batch, *shape),)


def networks() -> Iterator[Network]:
    """Every network."""
    image, sequence = {"x": {0: "N", 2: "H"}}, {"x": {0: "N", 1: "S"}}
    for width, flat, pools in itertools.product((4, 6, 8), ("view", "flatten", "mean"), (True, False)):
        axes = image if flat == "mean" else {"x": {0: "N"}}
        yield Network("classifier", Classifier(width, flat, pools), drawn(3, 32, 16), axes)
    for groups in (2, 3, 4):
        yield Network("shuffle", Shuffle(groups), drawn(3, 16, 8), image)
    flags = (True, False)
    for width, heads, layers, *kinds in itertools.product((16, 24), (2, 4), (1, 2), flags, flags, flags):
        yield Network("transformer", Transformer(width, heads, layers, *kinds), drawn(12, width), sequence)
    for width, heads in ((16, 2), (16, 4), (24, 3), (32, 4)):
        past = heads, 6, width // heads
        yield Network(
            "cached",
            Cached(width, heads),
            lambda batch, width=width, past=past: (torch.randn(batch, 2, width), *torch.randn(2, batch, *past)),
            {"x": {0: "N"}, "keys": {0: "N", 2: "P"}, "values": {0: "N", 2: "P"}},
        )
    for kind, width, layers, both, last in itertools.product(("LSTM", "GRU", "RNN"), (4, 6), (1, 2), flags, flags):
        yield Network("recurrent", Recurrent(kind, width, layers, both, last), drawn(8, 5), sequence)
    for kind, width in itertools.product(("LSTM", "GRU", "RNN"), (4, 7)):
        yield Network("stateful", Stateful(kind, width), drawn(8, 5), sequence)
    for width, anchors, classes in itertools.product((4, 6), (1, 2, 3), (1, 3)):
        yield Network("detector", Detector(width, anchors, classes), drawn(3, 16, 16), image)
    for width, mode in itertools.product((2, 3, 4), ("nearest", "bilinear", "scale")):
        yield Network("segmenter", Segmenter(width, mode), drawn(3, 16, 8), image)


def main() -> None:
    """Export what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=10**6)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore")
    torch.manual_seed(0)
    index: list[dict[str, Any]] = []
    for number, network in enumerate(networks()):
        network.module.eval()
        for batch, opset in ((1, 17), (2, 13)):
            if len(index) == given.count:
                break
            name, arguments = f"{network.kind}{number}.b{batch}.opset{opset}", network.arguments(batch)
            for kind, axes in (("fixed", None), ("dynamic", network.axes)):
                torch.onnx.export(
                    network.module,
                    arguments,
                    str(given.folder / f"{name}.{kind}.onnx"),
                    input_names=list(network.axes),
                    opset_version=opset,
                    dynamic_axes=axes,
                    dynamo=False,
                )
            index.append({"name": name, "kind": network.kind, "axes": network.axes})
    (given.folder / "index.json").write_text(json.dumps(index))
    print(f"{len(index)} pairs in {given.folder}")


if __name__ == "__main__":
    main()
