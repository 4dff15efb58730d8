"""The post transforms of scores, as onnxruntime's kernels compute them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import sqrt

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.node_at_boundary import Inexact

# The kernels of PROBIT have these numbers in the formula of Winitzki.
_WINITZKI, _PI = 0.147, 3.14159
# What SOFTMAX_ZERO takes for 0.
_NEAR_ZERO = 1e-7


def transformed(f: Formula, scores: Term, post: str) -> Term:
    """Transform scores, [N, C]."""
    if post not in _TRANSFORMS:
        raise Inexact(f"its post_transform is {post!r}, which does not exist")
    return _TRANSFORMS[post](f, scores)


def _probit(f: Formula, scores: Term) -> Term:
    """Return what has this probability: NaN outside of 0 to 1."""
    x = scores * 2.0 - 1.0
    log = f.apply("Log", (-x + 1.0) * (x + 1.0))
    v = log * 0.5 + 2 / (_PI * _WINITZKI)
    root = ((v * v - log * (1 / _WINITZKI)).sqrt() - v).sqrt()
    return f.where(x < 0.0, -root, root) * sqrt(2)


def _softmax_zero(f: Formula, scores: Term) -> Term:
    """Return a softmax in which scores of about 0 count with themselves."""
    most = scores.reduced("ReduceMax", [1], keepdims=True)
    counted = f.where(abs(scores) > _NEAR_ZERO, (scores - most).exp(), scores * (-most).exp())
    return counted / counted.reduced("ReduceSum", [1], keepdims=True)


_TRANSFORMS: Mapping[str, Callable[[Formula, Term], Term]] = {
    "NONE": lambda f, scores: scores,
    "LOGISTIC": lambda f, scores: f.apply("Sigmoid", scores),
    "SOFTMAX": lambda f, scores: f.apply("Softmax", scores, axis=1),
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": _probit,
}
