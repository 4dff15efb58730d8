"""GPT-2 as Hugging Face's model was exported under torch 1.x: each layer asks for sizes again and again, and slices the
causal bias by what it computes of them.
"""

from __future__ import annotations

import numpy as np
import onnx
from exported_graph import ExportedGraph, declare, make_model
from onnx import TensorProto

# As in the published models, so that the slice of the causal bias has min(1024, P + T) columns.
POSITIONS = 1024
HEADS, HEAD_SIZE, VOCABULARY = 2, 4, 16
WIDTH = HEADS * HEAD_SIZE
# What a slice without an end has for one.
_TO_THE_END = 2**63 - 1


class _Gpt2(ExportedGraph):
    def random_weight(self, name: str, *shape: int) -> str:
        # Layers of a trained model differ in their weights.
        noise = np.random.default_rng(len(self.weights)).standard_normal(shape)
        return self.weight(name, noise.astype(np.float32))

    def embedded(self, past: str) -> str:
        """Tokens and their positions, which begin where the past ends."""
        columns = self.scalar_size("input_ids", 1)
        tokens = self.node("Reshape", ["input_ids", self.shape(self.constant([-1]), self.one(columns))])
        first = self.scalar_size(past, -2)
        last = self.node("Add", [self.scalar_size("input_ids", 1), first])
        positions = self.unsqueeze(self.node("Range", [first, last, self.constant(1)]), 0)
        positions = self.node("Reshape", [positions, self.shape(self.constant([-1]), self.one(columns))])
        table = self.random_weight("wte.weight", VOCABULARY, WIDTH)
        held = self.random_weight("wpe.weight", POSITIONS, WIDTH)
        return self.node("Add", [self.node("Gather", [table, tokens]), self.node("Gather", [held, positions])])

    def shape(self, *parts: str) -> str:
        return self.node("Concat", list(parts), axis=0)

    def penalty(self, mask: str) -> str:
        """What is added to the scores: -10000 where the mask is 0."""
        flat = self.node("Reshape", [mask, self.shape(self.size("input_ids", 0), self.constant([-1]))])
        wide = self.unsqueeze(self.unsqueeze(flat, 1), 2)
        whole = self.slice(wide, self.constant([0]), self.constant([_TO_THE_END]), 3)
        as_float = self.node("Cast", [whole], to=TensorProto.FLOAT)
        inverted = self.node("Sub", [self.constant(1.0, np.float32), as_float])
        return self.node("Mul", [inverted, self.constant(-10000.0, np.float32)])

    def normalized(self, value: str, name: str) -> str:
        return self.normal(value, *(self.random_weight(f"{name}.{kind}", WIDTH) for kind in ("weight", "bias")))

    def projected(self, value: str, name: str, given: int, made: int) -> str:
        """transformers' Conv1D: a Gemm of the value as a matrix, between two reshapes."""
        sizes = [self.size(value, axis) for axis in (0, 1)]
        flat = self.node("Reshape", [value, self.shape(self.constant([-1]), self.size(value, -1))])
        weights = [self.random_weight(f"{name}.weight", given, made), self.random_weight(f"{name}.bias", made)]
        result = self.node("Gemm", [flat, *weights], alpha=1.0, beta=1.0)
        return self.node("Reshape", [result, self.shape(*sizes, self.constant([made]))])

    def causal(self, scores: str, query: str, key: str) -> str:
        """The scores, and -10000 where a token would look at later ones."""
        length, end = self.scalar_size(query, -2), self.scalar_size(key, -2)
        start = self.node("Sub", [end, length])
        rows = self.slice("bias", self.one(start), self.one(end), 2)
        shown = self.slice(rows, self.constant([0]), self.one(end), 3)
        return self.node("Where", [self.node("Cast", [shown], to=TensorProto.BOOL), scores, "masked_bias"])

    def attention(self, value: str, layer: int, penalty: str) -> str:
        name = f"h.{layer}.attn"
        parts = [f"{name}.{part}" for part in ("query", "key", "value")]
        self.split(self.projected(value, f"{name}.c_attn", WIDTH, 3 * WIDTH), [WIDTH] * 3, 2, parts)
        query, key, held = (
            self.node("Transpose", [self.view(part, part, HEADS, HEAD_SIZE)], perm=[0, 2, 1, 3]) for part in parts
        )
        key = self.node("Concat", [f"past_key_values.{layer}.key", key], f"present.{layer}.key", axis=2)
        held = self.node("Concat", [f"past_key_values.{layer}.value", held], f"present.{layer}.value", axis=2)
        scores = self.node("MatMul", [query, self.node("Transpose", [key], perm=[0, 1, 3, 2])])
        size = self.node("Cast", [self.scalar_size(held, -1)], to=TensorProto.FLOAT)
        scores = self.node("Div", [scores, self.node("Pow", [size, self.constant(0.5, np.float32)])])
        masked = self.node("Add", [self.causal(scores, query, key), penalty])
        weights = self.node("Softmax", [masked], axis=3)
        mixed = self.node("Transpose", [self.node("MatMul", [weights, held])], perm=[0, 2, 1, 3])
        return self.projected(self.view(mixed, mixed, WIDTH), f"{name}.c_proj", WIDTH, WIDTH)

    def gelu(self, value: str) -> str:
        """transformers' gelu_new."""
        half = self.node("Mul", [value, self.constant(0.5, np.float32)])
        cubed = self.node("Pow", [value, self.constant(3.0, np.float32)])
        bent = self.node("Add", [value, self.node("Mul", [cubed, self.constant(0.044715, np.float32)])])
        risen = self.node("Tanh", [self.node("Mul", [bent, self.constant(0.7978846, np.float32)])])
        return self.node("Mul", [half, self.node("Add", [risen, self.constant(1.0, np.float32)])])

    def block(self, value: str, layer: int, penalty: str) -> str:
        mixed = self.attention(self.normalized(value, f"h.{layer}.ln_1"), layer, penalty)
        value = self.node("Add", [mixed, value])
        risen = self.projected(self.normalized(value, f"h.{layer}.ln_2"), f"h.{layer}.mlp.c_fc", WIDTH, 4 * WIDTH)
        return self.node("Add", [value, self.projected(self.gelu(risen), f"h.{layer}.mlp.c_proj", 4 * WIDTH, WIDTH)])


def classic_gpt2(layers: int, opset: int = 11, *, own_symbols: bool = False) -> onnx.ModelProto:
    """Batch `B`, tokens `T`, a past of `P` and a mask of `TT`, which nothing says to be P + T.

    own_symbols: each layer has a past and a mask with symbols of its own (`P0`, `TT0`, `P1`, ...).
    """
    graph = _Gpt2(opset)
    pasts = [f"P{layer}" if own_symbols else "P" for layer in range(layers)]
    masks = {f"attention_mask.{i}": ["B", f"TT{i}"] for i in range(layers)} if own_symbols else {}
    masks = masks or {"attention_mask": ["B", "TT"]}
    given, outputs = {}, {"logits": ["B", "T", VOCABULARY]}
    for layer, past in enumerate(pasts):
        for kind in ("key", "value"):
            given[f"past_key_values.{layer}.{kind}"] = ["B", HEADS, past, HEAD_SIZE]
            outputs[f"present.{layer}.{kind}"] = ["B", HEADS, f"{past} + T", HEAD_SIZE]
    # The exporter keeps one of equal initializers: the causal bias of all layers is one.
    graph.weight("bias", np.tri(POSITIONS, dtype=np.uint8)[None, None])
    graph.weight("masked_bias", np.float32(-10000.0))
    value = graph.embedded("past_key_values.0.key")
    penalties = [graph.penalty(mask) for mask in masks]
    for layer in range(layers):
        value = graph.block(value, layer, penalties[layer % len(penalties)])
    value = graph.normalized(value, "ln_f")
    value = graph.node(
        "Reshape", [value, graph.shape(*(graph.size("input_ids", i) for i in (0, 1)), graph.size(value, -1))]
    )
    graph.node("MatMul", [value, graph.random_weight("lm_head.weight", WIDTH, VOCABULARY)], "logits")
    inputs = [*declare({"input_ids": ["B", "T"], **masks}, TensorProto.INT64), *declare(given)]
    return make_model(graph.nodes, inputs, declare(outputs), graph.weights, opset)
