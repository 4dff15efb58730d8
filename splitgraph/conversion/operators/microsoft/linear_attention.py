"""Linear attention of com.microsoft: a state that each token decays, corrects and reads.

Kernels compute types of 16 bits in float32, and round once.
"""

from __future__ import annotations

from dataclasses import dataclass

from splitgraph.conversion.notation.formula import Formula, Term, has_no_zero
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.microsoft.normalizations import widened
from splitgraph.conversion.operators.microsoft.scaled_products import inverse_root
from splitgraph.conversion.operators.standard import standard
from splitgraph.dim import DimLike

# The opset from which on ai.onnx has LinearAttention.
_LINEAR_SINCE = 27
# What the kernel adds to the square of a length before it divides by the length.
_LEAST_SQUARE = 1e-12


def text_of(node: NodeAtBoundary, name: str) -> str:
    """Return the value of an attribute that is text; raise Inexact where only a call tells."""
    value: str | bytes = node.known_value_or_default(name)
    return value.decode() if isinstance(value, bytes) else value


def known_size(shape: tuple[DimLike | None, ...] | None, axis: int, what: str) -> int:
    """Return a size; raise Inexact where it is unknown."""
    size = shape[axis] if shape is not None else None
    if not isinstance(size, int):
        raise Inexact(f"{what} is unknown", "declare the shapes")
    return size


# The recurrence -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Recurrence:
    """The operands of linear attention as ai.onnx has them, in float32.

    query, key, value: (batch, length, heads * size). state: (batch, kept heads, key size, value size), None for zeros.
    decay: None unless the rule is gated; per head, or per element of a key. rate: None unless the rule is a delta.
    key_size, value_size: of a head. scale: None for 1 / sqrt(key size).
    """

    f: Formula
    heads: int
    kept: int
    query: Term
    key: Term
    value: Term
    state: Term | None
    decay: Term | None
    rate: Term | None
    key_size: int
    value_size: int
    scale: float | None

    def written(self, rule: str) -> list[Term]:
        """Return the output (batch, length, heads * value size), and the state after the last token."""
        if self.f.opset >= _LINEAR_SINCE:
            return self._by_operator(rule)
        query, key, value, decay, rate = self._by_head()
        state = self.state if self.state is not None else self._zeros()
        length = self._length()
        operands = [query, key, value, *(term for term in (decay, rate) if term is not None)]
        if length.elements is not None and int(length.elements) == 1:
            state, output = self._step(state, *(self._at(term, 0) for term in operands))
            output = output.unsqueezed(1)
        else:

            def step(number: Term, before: Term) -> list[Term]:
                return self._step(before, *(self._at(term, number) for term in operands))

            sizes = (None, self.kept, self.key_size, self.value_size)
            stacked = (None, self.kept, self.heads // self.kept, self.value_size)
            state, output = self.f.loop(length, [state], step, [sizes, stacked])
            output = output.transposed(1, 0, 2, 3, 4)
        scale = inverse_root(self.f.number(self.key_size)) if self.scale is None else self.scale
        return [self._by_token(output, length) * scale, state]

    def _by_token(self, output: Term, length: Term) -> Term:
        """Join the heads of a token. After no steps, Loop does not know the size of the batch."""
        width = self.heads * self.value_size
        if has_no_zero(self.f.node, self.query.name):
            return output.reshape(0, 0, width)
        return output.with_shape(self.f.vector([self._batch(), length, width]), dense=False)

    def _by_operator(self, rule: str) -> list[Term]:
        terms = [self.query, self.key, self.value, self.state, self.decay, self.rate]
        while terms[-1] is None:
            terms.pop()
        attributes = {"q_num_heads": self.heads, "kv_num_heads": self.kept, "update_rule": rule, "scale": self.scale}
        return self.f.write("LinearAttention", terms, "float32", "float32", **attributes)

    def _by_head(self) -> tuple[Term, Term, Term, Term | None, Term | None]:
        """Return rows of queries, columns of keys, rows of values, factors of the state, and factors of the rows."""
        query = self.query.reshape(0, 0, self.kept, self.heads // self.kept, self.key_size)
        key = self.key.reshape(0, 0, self.kept, self.key_size, 1)
        value = self.value.reshape(0, 0, self.kept, 1, self.value_size)
        decay = None
        if self.decay is not None:
            each = self.f.sizes(self.decay.name, 3)[2] / self.kept
            decay = self.decay.exp().shaped([0, 0, self.kept, each, 1])
        rate = None if self.rate is None else self.rate.unsqueezed(3, 4)
        return query, key, value, decay, rate

    def _step(self, state: Term, query: Term, key: Term, value: Term, *gates: Term) -> list[Term]:
        """Return the state after a token, and what its queries read."""
        given = list(gates)
        if self.decay is not None:
            state = state * given.pop(0)
        if self.rate is not None:
            value = (value - (key.transposed(0, 1, 3, 2) @ state)) * given.pop(0)
        state = state + key * value
        return [state, query @ state]

    def _at(self, data: Term, number: Term | int) -> Term:
        return data.take(number, 1)

    def _length(self) -> Term:
        return self.f.sizes(self.query.name, 3)[1]

    def _batch(self) -> Term:
        return self.f.sizes(self.query.name, 3)[0]

    def _zeros(self) -> Term:
        return self.f.filled(self.f.vector([self._batch(), self.kept, self.key_size, self.value_size]), 0, "float32")


def _repeated(data: Term, heads: int, wanted: int, size: int) -> Term:
    """Repeat each head of (batch, length, heads * size), so that there are as many as wanted."""
    if heads == wanted:
        return data
    f = data.formula
    apart = data.reshape(0, 0, heads, 1, size).expanded(f.number([1, 1, 1, wanted // heads, 1]))
    return apart.reshape(0, 0, wanted * size)


# LinearAttention ------------------------------------------------------------------------------------------------------


@standard("LinearAttention", update_rule="gated_delta", scale=0.0, state_window=0)
def write_linear_attention(node: NodeAtBoundary) -> None:
    """Write the recurrence. Queries and keys may have fewer heads than values, which share them."""
    if node.known_is_set("state_window"):
        raise Inexact("onnxruntime refuses state_window on a CPU, so that nothing can be compared with it")
    f, dtype, rule = Formula(node), node.known_dtype(), text_of(node, "update_rule")
    queries, kept = node.known_value("q_num_heads"), node.known_value("kv_num_heads")
    key_size = known_size(node.shape(0), 2, "the width of the queries") // queries
    value_size = known_size(node.shape(2), 2, "the width of the values") // kept
    query, key, value = (widened(f, index) for index in range(3))
    if kept > queries:
        query = _repeated(query, queries, kept, key_size)
        key = _repeated(key, known_size(node.shape(1), 2, "the width of the keys") // key_size, kept, key_size)
    given = [widened(f, index) if node.uses_input(index) else None for index in range(3, 6)]
    state, decay, rate = given[0], given[1] if "gated" in rule else None, given[2] if "delta" in rule else None
    heads, scale = max(queries, kept), node.known_value_or_default("scale") or None
    recurrence = _Recurrence(f, heads, kept, query, key, value, state, decay, rate, key_size, value_size, scale)
    output, after = recurrence.written(rule)
    f.give(output.cast(dtype), after.cast(node.dtype(3) or dtype))


# GatedDeltaNet --------------------------------------------------------------------------------------------------------

_QUERY, _KEY, _VALUE, _STARTS, _DECAY, _RATE, _STATE, _LOG_FACTOR, _SHIFT = range(9)


@dataclass(frozen=True, slots=True)
class _Net:
    """The sizes of a GatedDeltaNet. by_batch: the tokens of each sequence have an axis of their own."""

    f: Formula
    heads: int
    kept: int
    key_size: int
    value_size: int
    by_batch: bool

    def tokens(self, data: Term, *sizes: int) -> Term:
        """Return (batch, length, ...) of all tokens."""
        if self.by_batch:
            return data.reshape(0, 0, *sizes)
        return data.shaped([self.f.size(_STATE, 0), -1, *sizes])


@standard(
    "GatedDeltaNet",
    update_rule="gated_delta",
    gate_activation="none",
    beta_activation="none",
    scale=0.0,
    gate_lower_bound=-5.0,
    qk_l2_norm=0,
    state_update_capacity=0,
)
def write_gated_delta_net(node: NodeAtBoundary) -> None:
    """Write the recurrence of linear attention. Its state has values first, and is float32."""
    if node.uses_input(_STARTS):
        raise Inexact("its sequences lie behind each other with lengths of their own, which is not written")
    if node.known_is_set("state_update_capacity") or node.uses_output(2):
        raise Inexact("it gives updates of the state, which are not written")
    f, dtype, rule = Formula(node), node.known_dtype(), text_of(node, "update_rule")
    net, (query, key, value) = _net(f)
    query, key = (_repeated(data, net.heads, net.kept, net.key_size) for data in (query, key))
    state = f.input(_STATE).transposed(0, 1, 3, 2) if node.uses_input(_STATE) else None
    decay = _decay(net) if "gated" in rule else None
    rate = _rate(net) if "delta" in rule else None
    scale = node.known_value_or_default("scale") or None
    sizes = (net.key_size, net.value_size)
    recurrence = _Recurrence(f, net.kept, net.kept, query, key, value, state, decay, rate, *sizes, scale)
    output, after = recurrence.written(rule)
    leading = (0, 0) if net.by_batch else (-1,)
    f.give(output.reshape(*leading, net.kept, net.value_size).cast(dtype), after.transposed(0, 1, 3, 2))


def _net(f: Formula) -> tuple[_Net, list[Term]]:
    """Return the sizes, and queries, keys and values as (batch, length, heads * size)."""
    node, shapes, state = f.node, [f.node.shape(index) for index in range(3)], f.node.shape(_STATE)
    if not node.uses_input(_KEY):
        kept, value_size, key_size = (known_size(state, axis, "the shape of the state") for axis in (1, 2, 3))
        width = known_size(shapes[0], -1, "the width of queries, keys and values")
        heads = (width - kept * value_size) // (2 * key_size)
        net = _Net(f, heads, kept, key_size, value_size, node.known_rank() == 3)
        widths = [heads * key_size, heads * key_size, kept * value_size]
        packed = net.tokens(widened(f, _QUERY), width)
        parts = f.write("Split", [packed, f.number(widths)], *["float32"] * 3, axis=2)
    else:
        heads, key_size = (known_size(shapes[0], axis, "the shape of the queries") for axis in (-2, -1))
        kept, value_size = (known_size(shapes[2], axis, "the shape of the values") for axis in (-2, -1))
        net = _Net(f, heads, kept, key_size, value_size, node.known_rank() == 4)
        widths = [heads * key_size, heads * key_size, kept * value_size]
        parts = [net.tokens(widened(f, index), width) for index, width in enumerate(widths)]
    if node.known_value_or_default("qk_l2_norm"):
        parts[:2] = [_of_length_1(part, heads, key_size) for part in parts[:2]]
    return net, parts


def _of_length_1(data: Term, heads: int, size: int) -> Term:
    """Divide each head of (batch, length, heads * size) by its length."""
    apart = data.reshape(0, 0, heads, size)
    square = (apart * apart).reduced("ReduceSum", [-1], keepdims=True) + _LEAST_SQUARE
    return (apart / square.sqrt()).reshape(0, 0, heads * size)


def _decay(net: _Net) -> Term:
    """Return the logarithm of the decay, (batch, length, heads), or with an element for each of a key behind that."""
    f, node = net.f, net.f.node
    by_element = node.known_rank(_DECAY) == (4 if net.by_batch else 3)
    given, activation = widened(f, _DECAY), text_of(node, "gate_activation")
    if activation != "none":
        factor, shift = f.input(_LOG_FACTOR).exp(), f.input(_SHIFT)
        if by_element:
            factor = factor.reshape(net.kept, 1)
            length = known_size(node.shape(_SHIFT), 0, "the length of dt_bias")
            is_whole = node.known_rank(_SHIFT) == 2 or length == net.kept * net.key_size
            shift = shift.reshape(net.kept, net.key_size if is_whole else 1)
        if activation in ("softplus", "qwen"):
            given = -(factor * f.apply("Softplus", given + shift))
        elif activation in ("sigmoid", "kda"):
            bound = node.known_value_or_default("gate_lower_bound")
            given = f.apply("Sigmoid", factor * (given + shift)) * bound
        else:
            raise Inexact(f"onnxruntime knows no gate activation {activation!r}")
    return net.tokens(given, net.kept * net.key_size if by_element else net.kept)


def _rate(net: _Net) -> Term:
    f, rate, activation = net.f, widened(net.f, _RATE), text_of(net.f.node, "beta_activation")
    if activation not in ("none", "sigmoid"):
        raise Inexact(f"onnxruntime knows no activation {activation!r} of its rate")
    return net.tokens(f.apply("Sigmoid", rate) if activation == "sigmoid" else rate, net.kept)
