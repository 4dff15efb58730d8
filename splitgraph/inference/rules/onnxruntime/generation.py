"""Operators of onnxruntime (domain com.microsoft) that generate text, align it, and hash it.

Source: the documents of the operators in onnxruntime.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from splitgraph.dim import DimLike
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.onnx.matmul import product_dims, transposed
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    dims_of,
    int_attribute,
    known_dtype,
    operator,
    ranked_dims,
    scalar_dim,
)
from splitgraph.inference.rules.signatures import shaped, shapes
from splitgraph.model.value_type import DTYPE_NAMES, ValueType, tensor

DOMAIN = "com.microsoft"

# The path through a matrix of costs: two numbers for each point.
shaped("DynamicTimeWarping", "input: ? ? | 1 ? ?", gives="int32 2 L", domain=DOMAIN)
# Predicted tokens after the current ones, and where they stand in the source.
shaped("BifurcationDetector", "", "", "prev_suffix_match_idx: ...", gives=("0 T", "0 ..."), domain=DOMAIN)
_RECURRENT = ("X: T B I", "W: D ? ?", "R: D ? H", "", "sequence_lens: B", "initial_h: D B H", "initial_c: D B H")
shaped("AttnLSTM", *_RECURRENT, gives=("0 T D B H", "0 D B H", "0 D B H"), domain=DOMAIN)


@operator("BeamSearch", "WhisperBeamSearch", gives=("int32", None, None, None, None), domain=DOMAIN)
def beam_search(ctx: NodeContext) -> Sequence[ValueType]:
    """Search for the best sequences of tokens, and return them with their scores. The last two outputs are those of
    WhisperBeamSearch; the axes of the first of them depend on its decoder.
    """
    dims, longest, dtype = dims_of(ctx, 0), scalar_dim(ctx, 1), _dtype_of_scores(ctx)
    beams, returned = scalar_dim(ctx, 3), scalar_dim(ctx, 4)
    batch = None if not dims else dims[0]
    # An encoder reads what is no text, so that the number of steps depends on the decoder.
    scores = (None, batch, beams, _vocabulary(ctx))
    return [
        tensor("int32", (batch, returned, longest)),
        tensor(dtype, (batch, returned)),
        tensor(dtype, scores),
        tensor(dtype, None),
        tensor(dtype, (batch,)),
    ]


@operator("GreedySearch", "Sampling", gives=("int32", None), domain=DOMAIN)
def greedy_search(ctx: NodeContext) -> Sequence[ValueType]:
    """Generate one sequence of tokens for each text. Sampling returns the numbers of the last step, too."""
    sizes = {"L": scalar_dim(ctx, 1), "V": _vocabulary(ctx)}
    return shapes(ctx, "input_ids: B ?", sizes=sizes, gives=("int32 B L", f"{_dtype_of_scores(ctx)} B V"))


def _dtype_of_scores(ctx: NodeContext) -> str:
    """Return the element type of scores, which is that of the penalties; float32 without any."""
    places = (5, 6) if ctx.node.op_type.endswith("BeamSearch") else (3,)
    return known_dtype(ctx, [place for place in places if ctx.has_input(place)]) or "float32"


def _vocabulary(ctx: NodeContext) -> DimLike | None:
    """Return the number of tokens; None where the decoder tells it."""
    size = int_attribute(ctx, "vocab_size", -1)
    return size if size > 0 else None


@operator("SparseToDenseMatMul", gives=(1,), domain=DOMAIN)
def sparse_product(ctx: NodeContext) -> Sequence[ValueType]:
    """Multiply a sparse matrix by a dense one."""
    # Other operators take no sparse tensor, and refuse one.
    sparse = cast("Dims | None", ctx.input(0).shape)
    a = transposed(sparse, bool(int_attribute(ctx, "transA", 0)), False)
    b = transposed(dims_of(ctx, 1), bool(int_attribute(ctx, "transB", 0)), False)
    return [tensor(ctx.input(1).dtype, product_dims(ctx, a, b))]


@operator("GatherPacked", domain=DOMAIN, gives=(None,))
def gather_packed(ctx: NodeContext) -> Sequence[ValueType]:
    """Take rows of a packed table, each of K numbers."""
    size = int_attribute(ctx, "K", 0)
    if size < 1:
        raise InvalidNode(f"K is {size}; it must be at least 1")
    dtype = DTYPE_NAMES.get(int_attribute(ctx, "output_dtype", 16), "?")
    return shapes(ctx, "", "indices: ...", gives=f"{dtype} ... {size}")


@operator("VarlenNGramHashMapping", gives=(0, 0, "int32", 0), domain=DOMAIN)
def hash_of_packed_ngrams(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute numbers for the tokens that end at each one, of sequences that lie one after the other."""
    longest, heads = int_attribute(ctx, "max_ngram_size", 0), int_attribute(ctx, "n_head_per_ngram", 0)
    bounds = ranked_dims(ctx, 3, 1)[0]
    sizes = {
        "H": (longest - 1) * heads,
        "P": longest - 1,
        "C": int_attribute(ctx, "state_update_capacity", 0),
        "B": None if bounds is None else bounds - 1,
    }
    inputs = ("input_ids: T", "", "vocab_sizes: H", "", "past_ids: B P", "head_offsets: H")
    return shapes(ctx, *inputs, sizes=sizes, gives=("0 T H", "0 B P", "int32 B P", "0 B C P"))
