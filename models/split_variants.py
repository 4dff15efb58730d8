"""One hand-made model per split variant, in ONNX's text format, for `make_split_variants.py`."""

from __future__ import annotations

from collections.abc import Callable

from catalogue import Case, Entry

MODELS: list[tuple[Entry, str]] = []


def _weights(rows: int, columns: int) -> str:
    """The text of a matrix of small multiples of 1/64: exact in float32, the same on every machine."""
    return "{" + ", ".join(str(((7 * i) % 61 - 30) / 64) for i in range(rows * columns)) + "}"


def _model(
    name: str,
    about: str,
    *cases: Case,
    header: str,
    engines: tuple[str, ...] = ("onnxruntime", "reference"),
    valid: bool = True,
) -> Callable[[str], None]:
    def add(text: str) -> None:
        entry = Entry(f"{name}.onnx", about, "make_split_variants.py", "hand-made", cases, {}, engines, valid)
        MODELS.append((entry, f'<{header}, producer_name: "splitgraph">\n{text}'))

    return add


_model(
    "split1_attribute",
    "channels cut 2 and 4 by the `split` attribute, gated and joined",
    Case({"batch": 2}),
    Case({"batch": 5}),
    header='ir_version: 3, opset_import: ["": 1]',
    engines=(),
)("""split1_attribute (float[batch, 6] x) => (float[batch, 6] y) {
  [relu] positive = Relu (x)
  [split] head, tail = Split <axis = 1, split = [2, 4]> (positive)
  [sigmoid] gate = Sigmoid (head)
  [join] y = Concat <axis = 1> (tail, gate)
}""")

_model(
    "split1_input",
    "the same cut by Split-1's second input, which is float; IR 3 wants the initializer among the inputs",
    Case({"batch": 2}),
    Case({"batch": 5}),
    header='ir_version: 3, opset_import: ["": 1]',
    engines=(),
)("""split1_input (float[batch, 6] x, float[2] lengths = {2, 4}) => (float[batch, 6] y) {
  [relu] positive = Relu (x)
  [split] head, tail = Split <axis = 1> (positive, lengths)
  [sigmoid] gate = Sigmoid (head)
  [join] y = Concat <axis = 1> (tail, gate)
}""")

_model(
    "split2_attribute",
    "feature maps cut 1, 2 and 3 by attribute, at opset 9; each group pooled",
    Case({"batch": 2, "height": 4, "width": 5}),
    Case({"batch": 3, "height": 7, "width": 2}),
    header='ir_version: 4, opset_import: ["": 9]',
)("""split2_attribute (float[batch, 6, height, width] x) => (float[batch, 6, 1, 1] y) {
  [split] first, second, third = Split <axis = 1, split = [1, 2, 3]> (x)
  [mean] a = GlobalAveragePool (first)
  [peak] b = GlobalMaxPool (second)
  [relu] positive = Relu (third)
  [mean_positive] c = GlobalAveragePool (positive)
  [join] y = Concat <axis = 1> (c, b, a)
}""")

_model(
    "split2_equal",
    "halves of a symbolic batch (axis 0 by default), at opset 2: needs an even batch",
    Case({"batch": 2, "half": 1}),
    Case({"batch": 6, "half": 3}),
    header='ir_version: 3, opset_import: ["": 2]',
    engines=("reference",),
)("""split2_equal (float[batch, 6] x) => (float[half, 6] y) {
  [split] left, right = Split (x)
  [negate] opposite = Neg (right)
  [difference] apart = Sum (left, opposite)
  [distance] y = Abs (apart)
}""")

_model(
    "split11_attribute",
    "boxes from centre, size and score: a negative axis, lengths by attribute",
    Case({"batch": 2, "count": 3}),
    Case({"batch": 1, "count": 7}),
    header='ir_version: 6, opset_import: ["": 11]',
)("""split11_attribute (float[batch, count, 5] boxes) => (float[batch, count, 5] corners)
<float half = {0.5}>
{
  [split] centre, size, score = Split <axis = -1, split = [2, 2, 1]> (boxes)
  [extent] reach = Mul (size, half)
  [low] upper_left = Sub (centre, reach)
  [high] lower_right = Add (centre, reach)
  [confidence] probability = Sigmoid (score)
  [join] corners = Concat <axis = -1> (upper_left, lower_right, probability)
}""")

_model(
    "split13_initializer",
    "attention with query, key and value of 4, 4 and 2 channels out of one projection: lengths in an initializer",
    Case({"batch": 2, "seq": 3}),
    Case({"batch": 1, "seq": 6}),
    header='ir_version: 7, opset_import: ["": 13]',
)(f"""split13_initializer (float[batch, seq, 8] x) => (float[batch, seq, 2] y)
<float[8, 10] projection = {_weights(8, 10)}, int64[3] lengths = {{4, 4, 2}}>
{{
  [project] fused = MatMul (x, projection)
  [split] query, key, value = Split <axis = 2> (fused, lengths)
  [turn] key_turned = Transpose <perm = [0, 2, 1]> (key)
  [score] scores = MatMul (query, key_turned)
  [weigh] weights = Softmax <axis = -1> (scores)
  [attend] y = MatMul (weights, value)
}}""")

_model(
    "split13_computed",
    "first token and the rest of a sequence: lengths computed from Shape",
    Case({"batch": 2, "seq": 2}),
    Case({"batch": 3, "seq": 7}),
    header='ir_version: 7, opset_import: ["": 13]',
)("""split13_computed (float[batch, seq, 4] x) => (float[batch, 1, 4] y)
<int64[1] one = {1}>
{
  [shape] sizes = Shape (x)
  [pick] seq_size = Gather <axis = 0> (sizes, one)
  [less] rest_size = Sub (seq_size, one)
  [lengths] lengths = Concat <axis = 0> (one, rest_size)
  [split] first, rest = Split <axis = 1> (x, lengths)
  [pool] mean = ReduceMean <axes = [1], keepdims = 1> (rest)
  [mix] y = Add (first, mean)
}""")

_model(
    "split13_equal",
    "rotary embedding that turns the halves of a symbolic width: needs an even width",
    Case({"batch": 2, "seq": 3, "width": 4}),
    Case({"batch": 1, "seq": 5, "width": 10}),
    header='ir_version: 7, opset_import: ["": 13]',
)("""split13_equal (float[batch, seq, width] x, float[seq, width] angle) => (float[batch, seq, width] y) {
  [cosine] cos = Cos (angle)
  [sine] sin = Sin (angle)
  [split] left, right = Split <axis = -1> (x)
  [negate] opposite = Neg (right)
  [turn] turned = Concat <axis = -1> (opposite, left)
  [keep] kept = Mul (x, cos)
  [move] moved = Mul (turned, sin)
  [rotate] y = Add (kept, moved)
}""")

_model(
    "split13_reshape_rest",
    "a symbolic batch through Reshape with -1 and back, three heads cut 1, 1 and 2 on the last axis",
    Case({"batch": 2}),
    Case({"batch": 5}),
    header='ir_version: 7, opset_import: ["": 13]',
)("""split13_reshape_rest (float[batch, 12] x) => (float[batch, 9] y)
<int64[3] heads = {-1, 3, 4}, int64[2] flat = {0, -1}, int64[3] lengths = {1, 1, 2}>
{
  [unfold] by_head = Reshape (x, heads)
  [split] scale, shift, value = Split <axis = -1> (by_head, lengths)
  [scaled] product = Mul (value, scale)
  [shifted] affine = Add (product, shift)
  [join] joined = Concat <axis = -1> (affine, shift)
  [fold] y = Reshape (joined, flat)
}""")

_model(
    "split18_num_outputs",
    "uneven parts by `num_outputs`: 7 channels into 3, 3 and 1, and a symbolic length into two",
    Case({"batch": 2, "length": 4}),
    Case({"batch": 1, "length": 9}),
    header='ir_version: 8, opset_import: ["": 18]',
)("""split18_num_outputs (float[batch, 7, length] x) => (float[batch, 7, length] y) {
  [split_channels] a, b, c = Split <axis = 1, num_outputs = 3> (x)
  [tanh] bent = Tanh (a)
  [gate] gated = Mul (bent, b)
  [channels] joined = Concat <axis = 1> (b, gated, c)
  [split_length] early, late = Split <axis = -1, num_outputs = 2> (joined)
  [relu] positive = Relu (late)
  [length] y = Concat <axis = -1> (positive, early)
}""")

_model(
    "split18_lengths",
    "rows cut 2 and 5 by a Constant node's `value_ints`, both pooled",
    Case({"batch": 2, "width": 3}),
    Case({"batch": 4, "width": 1}),
    header='ir_version: 8, opset_import: ["": 18]',
)("""split18_lengths (float[batch, 7, width] x) => (float[batch, 2, width] y)
<int64[1] rows = {1}>
{
  [lengths] lengths = Constant <value_ints = [2, 5]> ()
  [split] few, many = Split <axis = 1> (x, lengths)
  [mean] a = ReduceMean <keepdims = 1> (few, rows)
  [peak] b = ReduceMax <keepdims = 1> (many, rows)
  [join] y = Concat <axis = 1> (a, b)
}""")

_model(
    "split18_neither",
    "INVALID on purpose: neither `split` nor `num_outputs`, as paddle2onnx wrote it (PaddlePaddle/Paddle2ONNX#1273)",
    header='ir_version: 8, opset_import: ["": 18]',
    engines=(),
    valid=False,
)("""split18_neither (float[batch, 8] x) => (float[batch, 4] y) {
  [split] value, gate = Split <axis = 1> (x)
  [sigmoid] open = Sigmoid (gate)
  [gated] y = Mul (value, open)
}""")

_model(
    "split_to_sequence11_scalar",
    "a signal in stretches of 4, the last one shorter: the first one's mean taken off the whole",
    Case({"batch": 2, "length": 8}),
    Case({"batch": 1, "length": 11}),
    header='ir_version: 6, opset_import: ["": 11]',
)("""split_to_sequence11_scalar (float[batch, length] x) => (float[batch, length] y, int64 count)
<int64 size = {4}, int64 start = {0}>
{
  [split] stretches = SplitToSequence <axis = 1> (x, size)
  [first] stretch = SequenceAt (stretches, start)
  [mean] level = ReduceMean <axes = [1], keepdims = 1> (stretch)
  [whole] signal = ConcatFromSequence <axis = 1> (stretches)
  [centre] y = Sub (signal, level)
  [count] count = SequenceLength (stretches)
}""")

_model(
    "split_to_sequence11_lengths",
    "columns cut 1, 3 and 2 into a sequence, read at known positions and put in another order",
    Case({"batch": 2}),
    Case({"batch": 5}),
    header='ir_version: 6, opset_import: ["": 11]',
)("""split_to_sequence11_lengths (float[batch, 6] x) => (float[batch, 6] y)
<int64[3] lengths = {1, 3, 2}, int64 zero = {0}, int64 one = {1}, int64 last = {-1}>
{
  [split] parts = SplitToSequence <axis = -1> (x, lengths)
  [read_0] a = SequenceAt (parts, zero)
  [read_1] b = SequenceAt (parts, one)
  [read_2] c = SequenceAt (parts, last)
  [scale] scaled = Mul (b, a)
  [join] y = Concat <axis = -1> (c, scaled, a)
}""")

_model(
    "split_to_sequence11_each",
    "no lengths and `keepdims=0`: each of three frames alone, without its axis, differences stacked",
    Case({"batch": 2, "width": 3}),
    Case({"batch": 4, "width": 1}),
    header='ir_version: 6, opset_import: ["": 11]',
)("""split_to_sequence11_each (float[batch, 3, width] x) => (float[batch, 2, width] y)
<int64 zero = {0}, int64 one = {1}, int64 two = {2}>
{
  [split] frames = SplitToSequence <axis = 1, keepdims = 0> (x)
  [frame_0] a = SequenceAt (frames, zero)
  [frame_1] b = SequenceAt (frames, one)
  [frame_2] c = SequenceAt (frames, two)
  [step_0] first = Sub (b, a)
  [step_1] second = Sub (c, b)
  [steps] steps = SequenceConstruct (first, second)
  [stack] y = ConcatFromSequence <axis = 1, new_axis = 1> (steps)
}""")

_model(
    "split_to_sequence24",
    "columns cut 2 and 4 into a sequence by int32 lengths, at opset 24",
    Case({"batch": 2}),
    Case({"batch": 5}),
    header='ir_version: 11, opset_import: ["": 24]',
)("""split_to_sequence24 (float[batch, 6] x) => (float[batch, 6] y)
<int32[2] lengths = {2, 4}, int64 zero = {0}, int64 one = {1}>
{
  [split] parts = SplitToSequence <axis = 1> (x, lengths)
  [read_0] head = SequenceAt (parts, zero)
  [read_1] tail = SequenceAt (parts, one)
  [relu] positive = Relu (tail)
  [join] y = Concat <axis = 1> (positive, head)
}""")

_model(
    "split_to_sequence24_bfloat16",
    "bfloat16, which version 24 adds: the sequence is the output, as SequenceAt and its like take no bfloat16",
    Case({"batch": 2}),
    Case({"batch": 5}),
    header='ir_version: 11, opset_import: ["": 24]',
    engines=("reference",),
)("""split_to_sequence24_bfloat16 (float[batch, 6] x) => (seq(bfloat16[batch, 3]) parts)
<int64 size = {3}>
{
  [relu] positive = Relu (x)
  [narrow] short = Cast <to = 16> (positive)
  [split] parts = SplitToSequence <axis = 1> (short, size)
}""")

_model(
    "string_split20",
    "lines of text cut at commas, at most twice; fields marked, fields counted",
    Case({"lines": 2, "fields": 3}, {"text": ["a,b,c,d", "one"]}),
    Case({"lines": 3, "fields": 2}, {"text": ["x,y", "plain", "left,"]}),
    header='ir_version: 9, opset_import: ["": 20]',
)("""string_split20 (string[lines] text) => (string[lines, fields] marked, int64 total)
<string mark = {"#"}>
{
  [split] parts, counts = StringSplit <delimiter = ",", maxsplit = 2> (text)
  [mark] marked = StringConcat (mark, parts)
  [count] total = ReduceSum <keepdims = 0> (counts)
}""")

_model(
    "split_in_if",
    "Split-13 in both branches of If, on a captured value: halves in one, lengths 2 and 6 in the other",
    Case({"batch": 2}, {"gated": True}),
    Case({"batch": 5}, {"gated": False}),
    header='ir_version: 7, opset_import: ["": 13]',
)("""split_in_if (float[batch, 8] x, bool gated) => (float[batch, 4] y) {
  [relu] positive = Relu (x)
  [choose] y = If (gated) <
    then_branch = halves () => (float[batch, 4] product) {
      [split_equal] value, gate = Split <axis = 1> (positive)
      [sigmoid] open = Sigmoid (gate)
      [gate] product = Mul (value, open)
    },
    else_branch = lengths () => (float[batch, 4] widened) {
      [sizes] sizes = Constant <value_ints = [2, 6]> ()
      [split_lengths] few, many = Split <axis = 1> (positive, sizes)
      [thirds] one, two, three = Split <axis = 1> (many)
      [sum] added = Add (one, two)
      [join] widened = Concat <axis = 1> (few, added)
    }
  >
}""")

_model(
    "split_in_loop",
    "Split-13 in Loop: halves of a carried state exchanged at each of `steps` turns, lengths captured from outside",
    Case({"batch": 2, "turns": 1}, {"steps": 1}),
    Case({"batch": 3, "turns": 4}, {"steps": 4}),
    header='ir_version: 7, opset_import: ["": 13]',
    # onnx 1.23.2's reference evaluator joins a Loop's scan outputs along their first axis instead of stacking them.
    engines=("onnxruntime",),
)("""split_in_loop (float[batch, 6] x, int64 steps) => (float[batch, 6] y, float[turns, batch, 4] trace)
<int64[2] lengths = {2, 4}, bool always = {1}>
{
  [turn] y, trace = Loop (steps, always, x) <
    body = exchange (int64 step, bool go, float[batch, 6] state)
        => (bool go_on, float[batch, 6] next, float[batch, 4] kept) {
      [split] head, tail = Split <axis = 1> (state, lengths)
      [tanh] bent = Tanh (head)
      [exchange] next = Concat <axis = 1> (tail, bent)
      [keep] kept = Identity (tail)
      [continue] go_on = Identity (go)
    }
  >
}""")

_model(
    "split_in_scan",
    "Split-18 in Scan: a gated recurrent step, input and gate out of one frame by `num_outputs`",
    Case({"seq": 2, "batch": 2}),
    Case({"seq": 5, "batch": 3}),
    header='ir_version: 8, opset_import: ["": 18]',
)("""split_in_scan (float[seq, batch, 8] x, float[batch, 4] start) => (float[batch, 4] last, float[seq, batch, 4] all)
{
  [scan] last, all = Scan (start, x) <
    num_scan_inputs = 1,
    body = step (float[batch, 4] state, float[batch, 8] frame) => (float[batch, 4] next, float[batch, 4] seen) {
      [split] value, gate = Split <axis = -1, num_outputs = 2> (frame)
      [sigmoid] open = Sigmoid (gate)
      [decay] kept = Mul (state, open)
      [update] next = Add (kept, value)
      [emit] seen = Identity (next)
    }
  >
}""")

_model(
    "split_in_function",
    "Split-18 in a model-local function whose axis is an attribute reference, called on two axes",
    Case({"batch": 2, "seq": 4, "half": 2}),
    Case({"batch": 3, "seq": 6, "half": 3}),
    header='ir_version: 8, opset_import: ["": 18, "local": 1]',
)("""split_in_function (float[batch, seq, 8] x) => (float[batch, half, 4] y) {
  [gate_channels] narrow = local.Gate <axis = 2> (x)
  [gate_sequence] y = local.Gate <axis = 1> (narrow)
}
<domain: "local", opset_import: ["": 18]>
Gate <axis> (x) => (y) {
  [split] value, gate = Split <axis: int = @axis, num_outputs = 2> (x)
  [sigmoid] open = Sigmoid (gate)
  [product] y = Mul (value, open)
}""")

_model(
    "variadic_split_rest",
    "OpenVINO's VariadicSplit as a model-local function: lengths 1, -1 (the rest) and 2 on a symbolic length",
    Case({"batch": 2, "length": 3}),
    Case({"batch": 3, "length": 8}),
    header='ir_version: 8, opset_import: ["": 18, "org.splitgraph": 1]',
)("""variadic_split_rest (float[batch, length] x) => (float[batch, length] y)
<int64 axis = {1}, int64[3] split_lengths = {1, -1, 2}>
{
  [split] first, rest, last = org.splitgraph.VariadicSplit_3 (x, axis, split_lengths)
  [relu] positive = Relu (rest)
  [join] y = Concat <axis = 1> (last, positive, first)
}
<domain: "org.splitgraph", opset_import: ["": 18]>
VariadicSplit_3 (data, axis, split_lengths) => (part_0, part_1, part_2) {
  minus_one = Constant <value = int64[1] minus_one {-1}> ()
  one = Constant <value = int64[1] one {1}> ()
  axis_int64 = Cast <to = 7> (axis)
  axes = Reshape (axis_int64, one)
  given = Cast <to = 7> (split_lengths)
  shape = Shape (data)
  dim = Gather <axis = 0> (shape, axes)
  sum = ReduceSum <keepdims = 0> (given)
  difference = Sub (dim, sum)
  rest = Sub (difference, one)
  is_rest = Equal (given, minus_one)
  lengths = Where (is_rest, rest, given)
  bound_0 = Constant <value = int64[1] bound_0 {0}> ()
  from_0 = Constant <value = int64[1] from_0 {0}> ()
  to_0 = Constant <value = int64[1] to_0 {1}> ()
  length_0 = Slice (lengths, from_0, to_0)
  bound_1 = Add (bound_0, length_0)
  part_0 = Slice (data, bound_0, bound_1, axes)
  from_1 = Constant <value = int64[1] from_1 {1}> ()
  to_1 = Constant <value = int64[1] to_1 {2}> ()
  length_1 = Slice (lengths, from_1, to_1)
  bound_2 = Add (bound_1, length_1)
  part_1 = Slice (data, bound_1, bound_2, axes)
  from_2 = Constant <value = int64[1] from_2 {2}> ()
  to_2 = Constant <value = int64[1] to_2 {3}> ()
  length_2 = Slice (lengths, from_2, to_2)
  bound_3 = Add (bound_2, length_2)
  part_2 = Slice (data, bound_2, bound_3, axes)
}""")
