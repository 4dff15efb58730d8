"""Operators of onnxruntime-extensions: the element types that tokenizers and operators of strings and images give.

Source: docs/custom_ops.md and docs/custom_text_ops.md of onnxruntime-extensions. How many elements there are depends on
the texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from splitgraph.inference.context import NodeContext, rule
from splitgraph.inference.rules.operands import dims_of
from splitgraph.value_type import ValueType, tensor

_DOMAINS = ("ai.onnx.contrib", "com.microsoft.extensions")

# The element type of each output; nothing is said of further ones.
_TYPES: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(
        ("BertTokenizer", "HfBertTokenizer", "GPT2Tokenizer", "CLIPTokenizer", "RobertaTokenizer", "HfJsonTokenizer"),
        ("int64", "int64", "int64"),
    ),
    **dict.fromkeys(("BertTokenizerDecoder", "BpeDecoder", "SentencepieceDecoder", "TrieDetokenizer"), ("string",)),
    **dict.fromkeys(("BasicTokenizer", "BlingFireSentenceBreaker"), ("string",)),
    "WordpieceTokenizer": ("string", "int32", "int64"),
    "SentencepieceTokenizer": ("int32", "int64"),
    "TrieTokenizer": ("int64",),
    "StringSplit": ("int64", "string", "int64"),
    "StringRegexSplitWithOffsets": ("string", "int64", "int64"),
    "StringECMARegexSplitWithOffsets": ("string", "int64", "int64"),
    **dict.fromkeys(("StringConcat", "StringJoin", "StringSlice", "VectorToString", "StringMapping"), ("string",)),
    **dict.fromkeys(("StringToVector", "RaggedTensorToDense"), ("int64",)),
    **dict.fromkeys(("DecodeImage", "EncodeImage", "DrawBoundingBoxes"), ("uint8",)),
    "AudioDecoder": ("float32",),
}
# Those that give one element for each of the first input.
_FOR_EACH: Mapping[str, str] = {
    **dict.fromkeys(("StringUpper", "StringLower", "StringStrip"), "string"),
    **dict.fromkeys(("StringRegexReplace", "StringECMARegexReplace"), "string"),
    **dict.fromkeys(("StringLength", "StringHash", "StringHashFast"), "int64"),
    **dict.fromkeys(("StringToHashBucket", "StringToHashBucketFast"), "int64"),
}


def _typed(ctx: NodeContext) -> Sequence[ValueType]:
    return [tensor(dtype, None) for dtype in _TYPES[ctx.node.op_type]]


def _for_each(ctx: NodeContext) -> Sequence[ValueType]:
    return [tensor(_FOR_EACH[ctx.node.op_type], dims_of(ctx, 0))]


for _domain in _DOMAINS:
    rule(*_TYPES, domain=_domain)(_typed)
    rule(*_FOR_EACH, domain=_domain)(_for_each)
