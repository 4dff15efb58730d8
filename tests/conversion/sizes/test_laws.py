"""The laws of new sizes: what they refuse, what they let through, and what is said of it."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import parser

import splitgraph


def model(graph: str) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {graph}')


def asked(made: onnx.ModelProto, shape: list[Any]) -> list[tuple[str, str, str]]:
    """Return what is said of a request: the refusals, or the notes about the result."""
    try:
        found = splitgraph.reshape(made, {"x": shape}).diagnostics
    except splitgraph.ConversionError as error:
        found = error.diagnostics
    return [(each.code, each.location, each.message) for each in found]


PAIRS = model("""g (float[batch, 6, 2] x) => (float[batch, 3, 4] y) <int64[3] s = {0, -1, 4}> { y = Reshape (x, s) }""")
MERGED = model("""g (float[batch, 6] x) => (float[n, 4] y) <int64[2] s = {-1, 4}> { y = Reshape (x, s) }""")
UNET = model("""g (float[1, 1, 8, 8] x) => (float[1, 2, 8, 8] y) <float[4] f = {1, 1, 2, 2}> {
    a = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)
    b = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (a)
    c = Resize <mode = "nearest"> (b, , f) d = Concat <axis = 1> (a, c)
    e = Resize <mode = "nearest"> (a, , f) y = Concat <axis = 1> (x, e) }""")
POOLED = model("""g (float[1, 1, 28] x) => (float[1, 1, 14] y) <float[1, 1, 14] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
    11, 12, 13, 15}> { a = MaxPool <kernel_shape = [2], strides = [2]> (x) y = Mul (a, w) }""")
BOUND = model("""g (float[6, 5] x) => (float[30] y, float[6, 4] z) <int64[1] s = {-1}, int64[2] t = {5, -1}> {
    y = Reshape (x, s) z = Reshape (x, t) }""")

TABLE = model("""g (float[2, 6, 3] x, float[9, 3] w) => (float[2, 6, 3] y) <int64[1] a = {0}, int64[1] b = {6}> {
    t = Slice (w, a, b) y = Add (x, t) }""")
# With a mask, as in generating transformers. Where the number of rows says no size, the rows of the table do.
MASKED = model("""g (float[2, 6, 6] x, bool[9, 9] w) => (float[2, 6, 6] y)
    <float f = {-1}, int64[2] a = {0, 0}, int64[2] b = {6, 6}> {
    t = Slice (w, a, b) m = Where (t, x, f) y = Softmax (m) }""")


POOLED_PAIRS = model("""g (float[1, 1, 8] x) => (float[1, 2, 2] y) <int64[3] s = {1, -1, 2}> {
    a = MaxPool <kernel_shape = [2], strides = [2]> (x) y = Reshape (a, s) }""")
# What goes in is the first two, or fewer; what a step carries on is two.
FIRST_TWO = model("""g (float[6] x, float[4, 2] k) => (float[2] y) <int64[1] a = {0}, int64[1] b = {2}> {
    t = Slice (x, a, b)
    y = Scan <num_scan_inputs = 1, body = b (float[n] s, float[2] each) => (float[2] r) { r = Identity (each) }> (t, k)
    }""")


@pytest.mark.parametrize(
    ("made", "shape", "said"),
    [
        # What the model needed is no new condition; a length may have one.
        (MERGED, ["batch", "C"], []),
        (PAIRS, ["batch", 8, 2], []),
        (PAIRS, ["batch", "T", 2], [("SG423", "main/Reshape#0", "needs T to be a multiple of 2")]),
        # Conditions on one name are put together.
        (UNET, [1, 1, "H", 8], [("SG423", "main/Concat#5", "needs H to be a multiple of 4")]),
        (POOLED_PAIRS, [1, 1, "T"], [("SG423", "main/Reshape#1", "needs T % 4 to be 0 or 1, and T at least 4")]),
        (FIRST_TWO, ["T"], [("SG423", "main/Scan#1", "needs T to be at least 2")]),
        # A table has so many rows, and so it has for the numbers below.
        (TABLE, [2, "T", 3], [("SG423", "main/Add#1", "needs T to be at most 9")]),
        (TABLE, [2, 9, 3], []),
        (TABLE, [2, 1, 3], []),
        (MASKED, [2, "T", "T"], [("SG423", "main/Where#1", "needs T to be at most 9")]),
        (MASKED, ["N", 8, 8], []),
    ],
)
def test_what_is_let_through(made: onnx.ModelProto, shape: list[Any], said: list[tuple[str, str, str]]) -> None:
    assert asked(made, shape) == said


@pytest.mark.parametrize(
    ("made", "shape", "location", "said"),
    [
        # 28 and 29, and no other size.
        (POOLED, [1, 1, "T"], "main/Mul#1", "needs 'w' to be"),
        # A size of one depends on the other.
        (BOUND, ["N", "T"], "main/Reshape#1", "needs (N*T) % 5 == 0"),
        (BOUND, [8, 10], "main/Reshape#1", "needs (x[0]*x[1]) % 5 == 0"),
        # Beyond the last row of a table.
        (TABLE, [2, 10, 3], "main/Add#1", "needs 9 >= x[1]"),
        (MASKED, [2, 10, 10], "main/Where#1", "needs 9 >= x[1]"),
    ],
)
def test_what_is_refused(made: onnx.ModelProto, shape: list[Any], location: str, said: str) -> None:
    found = asked(made, shape)
    assert any(code == "SG420" and where == location and said in text for code, where, text in found), found
