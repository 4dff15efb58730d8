"""Small versions of well-known network parts, as their authors write them, for `make_torch_models.py`.

Sizes are tiny on purpose: what matters is which operators the exporters write, not what the weights say.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch._higher_order_ops import scan
from torch.nn import functional


class FusedAttention(nn.Module):
    """Causal self-attention of GPT-2: one projection to query, key and value, split in three along the last axis."""

    def __init__(self, width: int, heads: int, positions: int) -> None:
        super().__init__()
        self.width, self.heads = width, heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        causal = torch.tril(torch.ones(positions, positions, dtype=torch.bool))
        self.register_buffer("causal", causal.view(1, 1, positions, positions), persistent=False)

    def split_heads(self, x: Tensor) -> Tensor:
        return x.view(x.size(0), x.size(1), self.heads, self.width // self.heads).transpose(1, 2)

    def forward(self, x: Tensor, mask: Tensor, past_key: Tensor, past_value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = self.c_attn(x).split(self.width, dim=2)
        query = self.split_heads(query)
        key = torch.cat((past_key, self.split_heads(key)), dim=2)
        value = torch.cat((past_value, self.split_heads(value)), dim=2)

        total, past = key.size(2), past_key.size(2)
        scores = query @ key.transpose(-1, -2) / math.sqrt(self.width // self.heads)
        scores = torch.where(self.causal[:, :, past:total, :total], scores, torch.full((), -1e4))
        weights = torch.softmax(scores + mask, dim=-1)
        merged = (weights @ value).transpose(1, 2).reshape(x.size(0), x.size(1), self.width)
        return self.c_proj(merged), key, value


class DecoderLayer(nn.Module):
    """Pre-norm transformer layer of GPT-2: attention and a four times wider feed-forward part."""

    def __init__(self, width: int, heads: int, positions: int) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = FusedAttention(width, heads, positions)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x: Tensor, mask: Tensor, past_key: Tensor, past_value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        attended, key, value = self.attn(self.ln_1(x), mask, past_key, past_value)
        x = x + attended
        return x + self.mlp(self.ln_2(x)), key, value


class Gpt2(nn.Module):
    """GPT-2-style decoder with two layers that takes past keys and values and returns the present ones."""

    def __init__(self, vocabulary: int = 48, width: int = 24, heads: int = 3, positions: int = 32) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.h = nn.ModuleList(DecoderLayer(width, heads, positions) for _ in range(2))
        self.ln_f = nn.LayerNorm(width)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, key_0: Tensor, value_0: Tensor, key_1: Tensor, value_1: Tensor
    ) -> tuple[Tensor, ...]:
        past = key_0.size(2)
        position_ids = torch.arange(past, past + input_ids.size(1))
        x = self.wte(input_ids) + self.wpe(position_ids)
        mask = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * -1e4
        x, present_key_0, present_value_0 = self.h[0](x, mask, key_0, value_0)
        x, present_key_1, present_value_1 = self.h[1](x, mask, key_1, value_1)
        logits = self.ln_f(x) @ self.wte.weight.t()
        return logits, present_key_0, present_value_0, present_key_1, present_value_1


class ConvUnit(nn.Module):
    """Convolution, batch normalisation and SiLU, as in YOLO."""

    def __init__(self, channels_in: int, channels_out: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, kernel, padding=kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(channels_out)

    def forward(self, x: Tensor) -> Tensor:
        return functional.silu(self.bn(self.conv(x)))


class Bottleneck(nn.Module):
    """Two 3×3 convolutions with a shortcut."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.cv1, self.cv2 = ConvUnit(channels, channels, 3), ConvUnit(channels, channels, 3)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.cv2(self.cv1(x))


class C2f(nn.Module):
    """YOLOv8's C2f block: halves of the channels, bottlenecks chained on the second half, all of them concatenated."""

    def __init__(self, channels: int = 16, depth: int = 2) -> None:
        super().__init__()
        self.half = channels // 2
        self.cv1 = ConvUnit(channels, 2 * self.half, 1)
        self.cv2 = ConvUnit((2 + depth) * self.half, channels, 1)
        self.m = nn.ModuleList(Bottleneck(self.half) for _ in range(depth))

    def halves(self, x: Tensor) -> list[Tensor]:
        return list(x.chunk(2, 1))

    def forward(self, x: Tensor) -> Tensor:
        parts = self.halves(self.cv1(x))
        for bottleneck in self.m:
            parts.append(bottleneck(parts[-1]))
        return self.cv2(torch.cat(parts, 1))


class C2fSplit(C2f):
    """C2f with `split` for `chunk`: the TorchScript exporter writes Slice nodes for `chunk`, and Split for `split`."""

    def halves(self, x: Tensor) -> list[Tensor]:
        return list(x.split((self.half, self.half), 1))


class ShuffleNetUnit(nn.Module):
    """ShuffleNet v2's unit of stride 1: one half of the channels passes, the other is convolved, all are shuffled."""

    def __init__(self, channels: int = 16, groups: int = 2) -> None:
        super().__init__()
        self.half = half = channels // 2
        self.groups = groups
        self.branch = nn.Sequential(
            nn.Conv2d(half, half, 1, bias=False),
            nn.BatchNorm2d(half),
            nn.ReLU(),
            nn.Conv2d(half, half, 3, padding=1, groups=half, bias=False),
            nn.BatchNorm2d(half),
            nn.Conv2d(half, half, 1, bias=False),
            nn.BatchNorm2d(half),
            nn.ReLU(),
        )

    def halves(self, x: Tensor) -> tuple[Tensor, ...]:
        return x.chunk(2, dim=1)

    def forward(self, x: Tensor) -> Tensor:
        kept, convolved = self.halves(x)
        joined = torch.cat((kept, self.branch(convolved)), dim=1)
        batch, channels, height, width = joined.size()
        grouped = joined.view(batch, self.groups, channels // self.groups, height, width)
        return grouped.transpose(1, 2).reshape(batch, channels, height, width)


class ShuffleNetUnitSplit(ShuffleNetUnit):
    """The same unit with `split` for `chunk`, for the TorchScript exporter."""

    def halves(self, x: Tensor) -> tuple[Tensor, ...]:
        return x.split(self.half, dim=1)


class LstmCell(nn.Module):
    """One LSTM step whose four gates come from one projection, by `gates.chunk(4, 1)`."""

    def __init__(self, features: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.input_gates, self.hidden_gates = nn.Linear(features, 4 * hidden), nn.Linear(hidden, 4 * hidden)

    def four(self, gates: Tensor) -> list[Tensor]:
        return gates.chunk(4, 1)

    def forward(self, x: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        admit, forget, candidate, emit = self.four(self.input_gates(x) + self.hidden_gates(hidden))
        cell = torch.sigmoid(forget) * cell + torch.sigmoid(admit) * torch.tanh(candidate)
        return torch.sigmoid(emit) * torch.tanh(cell), cell


class LstmCellSplit(LstmCell):
    """The same step with `split` for `chunk`, for the TorchScript exporter."""

    def four(self, gates: Tensor) -> list[Tensor]:
        return gates.split(self.hidden, 1)


class LstmUnrolled(nn.Module):
    """Three LSTM steps written out one after the other by tracing."""

    def __init__(self, cell: LstmCell, steps: int = 3) -> None:
        super().__init__()
        self.cell, self.steps = cell, steps

    def forward(self, x: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        outputs = []
        for step in range(self.steps):
            hidden, cell = self.cell(x[:, step], hidden, cell)
            outputs.append(hidden)
        return torch.stack(outputs, dim=1), hidden, cell


class LstmLoop(nn.Module):
    """The same LSTM over a sequence of any length: scripted, so that the loop and the split in it stay in the model."""

    def __init__(self, cell: LstmCell) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        for step in range(x.size(1)):
            hidden, cell = self.cell(x[:, step], hidden, cell)
        return hidden, cell


class LstmScan(nn.Module):
    """The same LSTM by torch's `scan` over the first axis, which the dynamo exporter writes as Scan."""

    def __init__(self, cell: LstmCell) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        def step(carry: tuple[Tensor, Tensor], frame: Tensor) -> tuple[tuple[Tensor, Tensor], Tensor]:
            present = self.cell(frame, *carry)
            return present, present[0].clone()  # scan refuses an output that is also carried

        (hidden, cell), outputs = scan(step, (hidden, cell), x, dim=0)
        return outputs, hidden, cell


class Glu(nn.Module):
    """Gated linear unit, once by `functional.glu` and once by hand on uneven parts (8 into 3, 3 and 2)."""

    def __init__(self, features: int = 6, hidden: int = 8) -> None:
        super().__init__()
        self.widen, self.mix = nn.Linear(features, 2 * hidden), nn.Linear(5, features)

    def forward(self, x: Tensor) -> Tensor:
        gated = functional.glu(self.widen(x), dim=-1)
        value, gate, rest = torch.split(gated, 3, dim=-1)
        return self.mix(torch.cat((value * torch.sigmoid(gate), rest), dim=-1))


class SegmentMeans(nn.Module):
    """Mean of each stretch of four frames (the last may be shorter), over a sequence of any length: scripted."""

    def __init__(self, features: int = 6) -> None:
        super().__init__()
        self.project = nn.Linear(features, features)

    def forward(self, x: Tensor) -> Tensor:
        means = []
        for segment in torch.split(self.project(x), 4, dim=1):
            means.append(segment.mean(dim=1))
        return torch.stack(means, dim=1)


class PrefixSplit(nn.Module):
    """Prompt and continuation treated apart, cut where a second input ends: lengths of run time, scripted."""

    def __init__(self, features: int = 6) -> None:
        super().__init__()
        self.prompt, self.continuation = nn.Linear(features, features), nn.Linear(features, features)

    def forward(self, x: Tensor, prefix: Tensor) -> Tensor:
        length = prefix.size(1)
        parts = torch.split(x, [length, x.size(1) - length], dim=1)
        return torch.cat((self.continuation(parts[1]), self.prompt(parts[0]) + prefix), dim=1)


class BranchedGate(nn.Module):
    """One of two ways to narrow, chosen by the sign of the input's mean: scripted, so that both branches stay."""

    def __init__(self, features: int = 6) -> None:
        super().__init__()
        self.features = features
        self.widen = nn.Linear(features, 2 * features)

    def gated(self, wide: Tensor) -> Tensor:
        value, gate = torch.split(wide, self.features, dim=1)
        return value * torch.sigmoid(gate)

    def crossed(self, wide: Tensor) -> Tensor:
        first, second, _ = torch.split(wide, [4, 2, 6], dim=1)
        return torch.cat((second, first), dim=1)

    def forward(self, x: Tensor) -> Tensor:
        wide = self.widen(x)
        return self.gated(wide) if bool(x.mean() > 0) else self.crossed(wide)


class BranchedGateCond(BranchedGate):
    """The same choice by `torch.cond`, which the dynamo exporter writes as If."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.mean() > 0, self.gated, self.crossed, (self.widen(x),))
