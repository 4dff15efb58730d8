"""Operators of ai.onnx on strings. Sources: the schemas, and onnxruntime's kernels where those say nothing."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import DimLike, dim_max
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.broadcasting import broadcast_dims
from splitgraph.inference.rules.operands import InvalidNode, dims_of, ints_attribute, merged_dim, operator
from splitgraph.inference.rules.signatures import shaped
from splitgraph.model.value_type import ValueType, tensor


@operator("StringConcat", gives=("string",))
def string_concat(ctx: NodeContext) -> Sequence[ValueType]:
    """Join the strings of both inputs one by one."""
    return [tensor("string", broadcast_dims(ctx, (dims_of(ctx, 0), dims_of(ctx, 1))))]


shaped("RegexFullMatch", "X: ...", gives="bool ...")
# The parts of each string, padded to the most parts on a new last axis, and their numbers.
shaped("StringSplit", "X: ...", gives=("string ... P", "int64 ..."))


@operator("StringNormalizer", gives=("string",))
def string_normalizer(ctx: NodeContext) -> Sequence[ValueType]:
    """Remove stop words; if no string is left, the output is one empty string."""
    dims = dims_of(ctx, 0)
    if dims is None:
        return [tensor("string", None)]
    if len(dims) not in (1, 2):
        raise InvalidNode(f"the input has rank {len(dims)}; it must be [C] or [1, C]")
    if len(dims) == 2:
        merged_dim(ctx, dims[0], 1, "the first dimension of two and 1")
    count: DimLike | None = None if ctx.attribute("stopwords") else dim_max(1, dims[-1])
    return [tensor("string", (count,) if len(dims) == 1 else (1, count))]


@operator("TfIdfVectorizer", gives=("float32",))
def tf_idf_vectorizer(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute a count or weight for each n-gram, for each row of the input."""
    dims, indexes = dims_of(ctx, 0), ints_attribute(ctx, "ngram_indexes")
    if not indexes:
        raise InvalidNode("attribute 'ngram_indexes' is empty")
    if dims is None:
        return [tensor("float32", None)]
    if len(dims) not in (1, 2):
        raise InvalidNode(f"the input has rank {len(dims)}; it must be [C] or [N, C]")
    return [tensor("float32", (*dims[:-1], max(indexes) + 1))]
