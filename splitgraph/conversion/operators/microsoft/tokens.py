"""Operators of com.microsoft on tokens and words: hashes, repetitions, embeddings of characters."""

from __future__ import annotations

from functools import reduce

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.standard import standard, without_form

_WORD = 2**32
_STRINGS = "it cuts strings by characters and regular expressions, which no operator of ai.onnx does alike"
_SEARCH = "it runs a whole model in a loop of its own, with rules of search that no operator of ai.onnx has"

without_form("Tokenizer", _STRINGS)
without_form("BeamSearch GreedySearch Sampling WhisperBeamSearch", _SEARCH)
without_form("BifurcationDetector", "the length of its result depends on where two lists of tokens begin to differ")
without_form("VarlenNGramHashMapping", "its sequences lie one after the other, and their lengths are data")
without_form("AttnLSTM", "an attention over a memory runs within each step of its recurrence")

# MurmurHash3 --------------------------------------------------------------------------------------------------------


@standard("MurmurHash3", opset=18, seed=0, positive=1)
def write_murmur_hash(node: NodeAtBoundary) -> None:
    """Compute the hash of each integer, in int64: products keep the low 64 bits, of which 32 count."""
    f = Formula(node)
    words = _words(node, f)
    result = f.number(node.known_value_or_default("seed") % _WORD)
    for word in words:
        mixed = _times(_rotated(_times(word, 0xCC9E2D51), 15), 0x1B873593)
        result = (_rotated(_xor(mixed, result), 13) * 5 + 0xE6546B64) % _WORD
    result = _xor(result, f.number(4 * len(words)))
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        result = _times(_xor(result, result / (1 << shift)), factor)
    result = _xor(result, result / 2**16)
    if node.known_value_or_default("positive"):
        f.give(result.cast("uint32"))
    else:
        f.give(f.where(result > 2**31 - 1, result - _WORD, result).cast("int32"))


def _words(node: NodeAtBoundary, f: Formula) -> list[Term]:
    """Return the words of 32 bits of each element, the low one first, in int64."""
    data, dtype = f.input(0), node.known_dtype(0)
    if dtype in ("float32", "float64") and f.opset >= 26:
        bits = "int32" if dtype == "float32" else "int64"
        data = f.apply("BitCast", data, gives=bits, to=6 if bits == "int32" else 7)
        dtype = bits
    if dtype in ("int32", "uint32"):
        return [data.cast("int64") % _WORD]
    if dtype == "int64":
        low = data % _WORD
        return [low, ((data - low) / _WORD) % _WORD]
    if dtype == "uint64":
        width = f.number(32, "uint64")
        low = f.apply("BitShift", f.apply("BitShift", data, width, direction="LEFT"), width, direction="RIGHT")
        return [low.cast("int64"), f.apply("BitShift", data, width, direction="RIGHT").cast("int64")]
    help = "give opset 26, whose BitCast reads them" if dtype in ("float32", "float64") else ""
    raise Inexact(f"it hashes the bytes of {dtype}, which no operator of ai.onnx reads here", help)


def _times(number: Term, factor: int) -> Term:
    """Multiply, and keep the low 32 bits."""
    return (number * factor) % _WORD


def _rotated(number: Term, count: int) -> Term:
    """Move 32 bits to the left; those that leave come in on the right."""
    return _times(number, 1 << count) + number / (1 << (32 - count))


def _xor(one: Term, other: Term) -> Term:
    return one.formula.apply("BitwiseXor", one, other)


# Tokens -------------------------------------------------------------------------------------------------------------


@standard("NGramHashMapping", opset=18, reset_on_eos=0)
def write_hash_of_ngrams(node: NodeAtBoundary) -> None:
    """Join each token with those before it, scaled, by exclusive or; give remainders by the sizes of the tables."""
    if node.uses_input(5) or node.uses_input(6) or node.known_is_set("reset_on_eos"):
        raise Inexact("tokens that end a text or a segment hide the tokens before them")
    f, longest = Formula(node), node.known_value("max_ngram_size")
    heads, dtype = node.known_value("n_head_per_ngram"), node.known_dtype(0)
    before, ids = longest - 1, f.input(0)
    if node.uses_input(3):
        past = f.input(3)
    else:
        shape = f.joined([f.size(0, 0).reshape(1), f.number([before])])
        past = f.number(node.known_value("pad_id"), dtype).expanded(shape)
    tokens, count = f.joined([past, ids], 1), f.size(0, 1)
    scaled = []
    for age in range(longest):
        begin = before - age
        part = tokens.sliced(f.number([begin]), (count + begin).reshape(1), 1)
        scaled.append(part * f.input(1).take(age))
    mixed: list[Term] = [reduce(_xor, scaled[: order + 1]) for order in range(1, longest)]
    rows = f.joined([each.unsqueezed(2) for each in mixed for _ in range(heads)], 2)
    hashes = rows % f.input(2)
    hashes = hashes + f.input(4) if node.uses_input(4) else hashes
    f.give(*([hashes, tokens.sliced(-before, axis=1)] if node.uses_output(1) else [hashes]))


@standard("NGramRepeatBlock")
def write_ngram_repeat_block(node: NodeAtBoundary) -> None:
    """Find the places where the last tokens stand before, and set the scores of the tokens behind them to -infinity.

    All other tokens go to a place behind the scores, which is cut off.
    """
    f, size = Formula(node), node.known_value("ngram_size")
    if size < 1:
        raise Inexact("onnxruntime runs an ngram_size of at least 1")
    ids, scores = f.input(0), f.input(1)
    repeated = None
    for place in range(size - 1):
        window = ids.sliced(place, place - size + 1, 1)
        behind = place - size + 2
        last = ids.sliced(behind - 1, behind, 1) if behind < 0 else ids.sliced(-1, axis=1)
        same = window.equals(last)
        repeated = same if repeated is None else repeated & same
    following = ids.sliced(size - 1, axis=1)
    if repeated is not None:
        following = f.where(repeated, following, f.size(1, 1))
    none = f.number([[float("-inf")]], node.known_dtype(1))
    beyond = none.expanded(f.joined([f.size(1, 0).reshape(1), f.number([1])]))
    updates = none.expanded(following.shape())
    marked = f.apply("ScatterElements", f.joined([scores, beyond], 1), following, updates, axis=1)
    f.give(marked.sliced(0, -1, 1))


@standard("WordConvEmbedding")
def write_word_embedding(node: NodeAtBoundary) -> None:
    """Write a convolution over the embeddings of the characters of each word, and the largest activation.

    Characters of 0 fill a word up. Windows that only they reach do not count, but for the first one. The result is
    undefined for words that begin with one.
    """
    window = (node.shape(1) or (None,) * 4)[2]
    if not isinstance(window, int):
        raise Inexact("the size of the window is unknown", "declare the shape of the weights")
    f = Formula(node)
    characters = f.input(3).take(f.input(0)).unsqueezed(1)
    active = f.apply("Tanh", f.apply("Conv", characters, f.input(1), f.input(2)).squeezed(3))
    length = (f.input(0) > 0).cast("int64").reduced("ReduceSum", [1], keepdims=True)
    last = (length - window).at_least(0).unsqueezed(2)
    places = f.counting(f.size(0, 1) - (window - 1)).reshape(1, 1, -1)
    # Less than any hyperbolic tangent.
    counted = f.where(places > last, -2.0, active)
    f.give(counted.reduced("ReduceMax", [2]))
