"""Layers of OpenVINO's operator sets for dimensions of any kind: fixed, dynamic or an interval.

`LAYERS` maps a name to a function that builds the layer. The function gets a source of inputs: `given(4, "3")` is an
input whose first dimension is of the kind that is tried, and whose second one is always 3.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import layer_models
import numpy as np
import openvino as ov
from layer_models import F32, I64, const
from openvino import PartialShape, opset1, opset3, opset4, opset5, opset8, opset17
from openvino import opset16 as op

KINDS = ("fixed", "dynamic", "interval", "least", "mixed")
I32 = np.int32
Given = Callable[..., Any]
LAYERS: dict[str, Callable[[Given], Any]] = {}


def source(kind: str, seed: int) -> Given:
    """Inputs whose dimensions are of this kind; of kinds picked at random for "mixed"."""
    choice = random.Random(f"{kind}{seed}")

    def dim(size: int | str) -> Any:
        if isinstance(size, str):
            return int(size)
        picked = choice.choice(KINDS[:-1]) if kind == "mixed" else kind
        return {"fixed": size, "dynamic": -1, "interval": (max(size - 2, 1), size + 3), "least": (size, -1)}[picked]

    return lambda *sizes, dtype=F32: layer_models.given(*map(dim, sizes), dtype=dtype)


def layer(build: Callable[[Given], Any]) -> Callable[[Given], Any]:
    """Register a layer."""
    LAYERS[build.__name__] = build
    return build


def built(name: str, kind: str, seed: int = 0) -> dict[str, Any] | None:
    """The outputs of a layer by name; None where OpenVINO refuses such dimensions."""
    try:
        node = LAYERS[name](source(kind, seed))
    except RuntimeError:
        return None
    if isinstance(node, dict):
        return {f"{name}.{key}": output for key, output in node.items()}
    outputs = node.outputs()
    return {name if len(outputs) == 1 else f"{name}.{index}": each for index, each in enumerate(outputs)}


def _simple(**builders: Callable[[Given], Any]) -> None:
    LAYERS.update(builders)


PROPOSAL = {
    "base_size": np.uint32(16),
    "pre_nms_topn": np.uint32(20),
    "post_nms_topn": np.uint32(10),
    "nms_thresh": np.float32(0.5),
    "feat_stride": np.uint32(16),
    "min_size": np.uint32(1),
    "ratio": np.ones(1, F32),
    "scale": np.ones(3, F32),
}

_simple(
    abs=lambda g: op.abs(g(4, 5)),
    add=lambda g: op.add(g(4, 5), g(5)),
    batch_to_space=lambda g: op.batch_to_space(g(12, 5, 6), const([1, 2, 3]), const([0, 0, 1]), const([0, 1, 0])),
    space_to_batch=lambda g: op.space_to_batch(g(3, 6, 6), const([1, 2, 3]), const([0, 0, 1]), const([0, 0, 2])),
    broadcast=lambda g: op.broadcast(g(4, 1), const([2, 1, 5]), broadcast_spec="BIDIRECTIONAL"),
    bucketize=lambda g: op.bucketize(g(4, 5), g(3)),
    concat=lambda g: op.concat([g(4, 5), g(3, 5), g(2, 5)], 0),
    convolution=lambda g: op.convolution(
        g(2, "3", 9, 8), const(np.ones((4, 3, 3, 2)), F32), [2, 1], [1, 0], [0, 1], [1, 2]
    ),
    group_convolution=lambda g: op.group_convolution(
        g(2, "4", 9), const(np.ones((2, 3, 2, 3)), F32), [2], [1], [1], [1]
    ),
    binary_convolution=lambda g: op.binary_convolution(
        g(2, "3", 9, 8),
        ov.op.Constant(ov.Type.u1, ov.Shape([4, 3, 3, 3]), [1] * 108),
        [2, 1],
        [1, 0],
        [0, 1],
        [1, 1],
        "xnor-popcount",
        0.0,
    ),
    deformable_convolution=lambda g: op.deformable_convolution(
        g(2, "3", 9, 8), g(2, "18", 4, 7), const(np.ones((4, 3, 3, 3)), F32), [2, 1], [1, 0], [0, 1], [1, 1]
    ),
    convolution_backprop=lambda g: op.convolution_backprop_data(
        g(2, "3", 9, 8), const(np.ones((3, 4, 3, 2)), F32), [2, 1]
    ),
    avg_pool=lambda g: op.avg_pool(g(2, 3, 9, 8), [2, 2], [0, 0], [0, 0], [2, 3], True, "ceil", "explicit"),
    max_pool=lambda g: op.max_pool(g(2, 3, 9, 8), [2, 2], [1, 1], [0, 0], [0, 0], [2, 3], "floor", "explicit"),
    adaptive=lambda g: op.adaptive_avg_pool(g(2, 3, 9, 8), const([3, 4])),
    adaptive_max=lambda g: op.adaptive_max_pool(g(2, 3, 9, 8), const([3, 4])),
    cum_sum=lambda g: op.cum_sum(g(4, 5), const(1)),
    depth_to_space=lambda g: op.depth_to_space(g(2, 8, 3, 4), "blocks_first", 2),
    space_to_depth=lambda g: op.space_to_depth(g(2, 3, 4, 6), "blocks_first", 2),
    einsum=lambda g: op.einsum([g(4, 5), g(5, 3)], "ab,bc->ac"),
    einsum_diagonal=lambda g: op.einsum([g(4, 5, 6), g(4, 6)], "abc,ac->b"),
    erfinv=lambda g: opset17.erfinv(g(4, 5)),
    gather=lambda g: op.gather(g(4, 5, 6), g(2, 3, dtype=I64), const(1)),
    gather_elements=lambda g: op.gather_elements(g(4, 5), g(3, 5, dtype=I64), 0),
    gather_nd=lambda g: op.gather_nd(g(4, 5, 6), g(4, 3, "1", dtype=I64), 1),
    gather_tree=lambda g: op.gather_tree(g(4, 3, 2), g(4, 3, 2), g(3), const(0.0, F32)),
    grid_sample=lambda g: op.grid_sample(g(2, 3, 9, 8), g(2, 4, 5, "2"), {}),
    interpolate=lambda g: op.interpolate(g(2, 3, 9, 8), const([18, 4]), "nearest", "sizes", axes=const([2, 3])),
    interpolate_scales=lambda g: op.interpolate(
        g(2, 3, 9, 8), const([2.0, 0.5], F32), "nearest", "scales", axes=const([2, 3])
    ),
    matmul=lambda g: op.matmul(g(2, 4, 5), g(5, 3), False, False),
    normalize=lambda g: op.normalize_l2(g(4, 5), const([1]), 1e-5, "add"),
    one_hot=lambda g: op.one_hot(g(4, 5, dtype=I64), const(7), const(1.0, F32), const(0.0, F32), 1),
    pad=lambda g: op.pad(g(4, 5), const([1, 0]), const([2, 1]), "constant", const(0.0, F32)),
    pad_negative=lambda g: op.pad(g(4, 5), const([-1, 0]), const([2, -1]), "constant", const(0.0, F32)),
    prelu=lambda g: op.prelu(g(4, "5", 6), g("5")),
    range_=lambda g: op.range(const(0), const(7), const(2), "i64"),
    reduce_sum=lambda g: op.reduce_sum(g(4, 5, 6), const([0, 2]), True),
    reshape=lambda g: op.reshape(g(4, 6), const([0, 2, -1]), True),
    reverse_sequence=lambda g: op.reverse_sequence(g(4, 5), g(4, dtype=I64), 0, 1),
    roll=lambda g: op.roll(g(4, 5), const([1]), const([0])),
    scatter=lambda g: op.scatter_nd_update(g(4, 5), g(3, "1", dtype=I64), g(3, 5)),
    scatter_elements=lambda g: op.scatter_elements_update(g(4, 5), g(2, 5, dtype=I64), g(2, 5), const(0)),
    search_sorted=lambda g: op.search_sorted(g(4, 5), g(4, 3)),
    select=lambda g: op.select(g(4, 1, dtype=bool), g(4, 5), g(5)),
    shape_of=lambda g: op.shape_of(g(4, 5)),
    shuffle=lambda g: op.shuffle_channels(g(2, 6, 4), 1, 2),
    slice_=lambda g: op.slice(g(4, 9), const([1]), const([-1]), const([2]), const([1])),
    slice_scatter=lambda g: op.slice_scatter(g(4, 5), g(2, 5), const([0]), const([2]), const([1]), const([0])),
    split=lambda g: op.split(g(4, 6), const(1), 2),
    variadic_split=lambda g: op.variadic_split(g(4, 6), const(1), const([2, -1])),
    squeeze=lambda g: op.squeeze(g(4, "1", 5), const([1])),
    strided_slice=lambda g: op.strided_slice(g(4, 9), const([0, 1]), const([0, -1]), const([1, 2]), [1, 0], [1, 0]),
    tile=lambda g: op.tile(g(4, 5), const([2, 1, 3])),
    topk=lambda g: op.topk(g(4, 5), const(3), 1, "max", "value"),
    topk_unknown=lambda g: op.topk(g(4, 5), g(dtype=I64), 1, "max", "value"),
    transpose=lambda g: op.transpose(g(4, 5, 6), const([2, 0, 1])),
    unsqueeze=lambda g: op.unsqueeze(g(4, 5), const([0, 3])),
    non_zero=lambda g: op.non_zero(g(4, 5)),
    attention=lambda g: op.scaled_dot_product_attention(g(2, 4, 5), g(2, 3, 5), g(2, 3, 6)),
    random=lambda g: op.random_uniform(const([2, 3]), const(0.0, F32), const(1.0, F32), "f32"),
    eye=lambda g: op.eye(const(3), const(4), const(0), "f32"),
    lstm=lambda g: op.lstm_sequence(
        g(2, 5, "4"),
        g(2, "1", "3"),
        g(2, "1", "3"),
        g(2, dtype=I32),
        const(np.ones((1, 12, 4)), F32),
        const(np.ones((1, 12, 3)), F32),
        const(np.ones((1, 12)), F32),
        3,
        "forward",
    ),
    convert_promote_types=lambda g: op.convert_promote_types(g(4, 5, dtype=I32), g(5), True),
    ctc_greedy=lambda g: op.ctc_greedy_decoder(g(5, 2, 4), g(5, 2)),
    ctc_greedy_lengths=lambda g: op.ctc_greedy_decoder_seq_len(g(2, 5, 4), g(2, dtype=I32), const(1, I32)),
    ctc_loss=lambda g: op.ctc_loss(g(2, 5, 4), g(2, dtype=I32), g(2, 5, dtype=I32), g(2, dtype=I32)),
    col2im=lambda g: op.col2im(g(2, 12, 81), const([16, 16]), const([2, 2]), [2, 2], [1, 1], [1, 1], [1, 1]),
    col2im_no_batch=lambda g: op.col2im(g(12, 225), const([16, 16]), const([2, 2]), [1, 1], [1, 1], [0, 0], [0, 0]),
    col2im_sizes=lambda g: op.col2im(g(2, 12, 81), g("2", dtype=I64), const([2, 2]), [2, 2], [1, 1], [1, 1], [1, 1]),
    col2im_kernel=lambda g: op.col2im(g(2, 12, 81), const([16, 16]), g("2", dtype=I64), [2, 2]),
    dft=lambda g: op.dft(g(4, 5, 6, "2"), const([1, 2])),
    dft_sizes=lambda g: op.dft(g(4, 5, 6, "2"), const([1, 2]), const([7, -1])),
    dft_unknown_axes=lambda g: op.dft(g(4, 5, 6, "2"), g("2", dtype=I64)),
    dft_unknown_sizes=lambda g: op.dft(g(4, 5, 6, "2"), const([1, 2]), g("2", dtype=I64)),
    idft=lambda g: op.idft(g(4, 5, 6, "2"), const([-1, 0])),
    rdft=lambda g: op.rdft(g(4, 5, 6), const([1, 2])),
    rdft_sizes=lambda g: op.rdft(g(4, 5, 6), const([2, 1]), const([7, -1])),
    rdft_odd=lambda g: op.rdft(g(4, 5, 6), const([0, -2]), const([-1, 9])),
    rdft_unknown_sizes=lambda g: op.rdft(g(4, 5, 6), const([1, 2]), g("2", dtype=I64)),
    rdft_unknown_axes=lambda g: op.rdft(g(4, 5, 6), g("1", dtype=I64)),
    irdft=lambda g: op.irdft(g(4, 5, 6, "2"), const([1, 2])),
    irdft_sizes=lambda g: op.irdft(g(4, 5, 6, "2"), const([2, 1]), const([7, -1])),
    irdft_odd=lambda g: op.irdft(g(4, 5, 6, "2"), const([0, -2]), const([-1, 9])),
    irdft_unknown_sizes=lambda g: op.irdft(g(4, 5, 6, "2"), const([1, 2]), g("2", dtype=I64)),
    irdft_unknown_axes=lambda g: op.irdft(g(4, 5, 6, "2"), g("1", dtype=I64)),
    deformable_psroi=lambda g: op.deformable_psroi_pooling(g(2, 8, 9, 8), g(6, "5"), 2, 0.5, 2),
    psroi=lambda g: op.psroi_pooling(g(2, 8, 9, 8), g(6, "5"), 2, 2, 0.5, 1, 1, "average"),
    roi_pooling=lambda g: op.roi_pooling(g(2, 3, 9, 8), g(6, "5"), [2, 3], 0.5),
    roi_align=lambda g: op.roi_align(g(2, 3, 9, 8), g(6, "4"), g(6, dtype=I64), 2, 3, 2, 0.5, "avg"),
    roi_align_rotated=lambda g: op.roi_align_rotated(g(2, 3, 9, 8), g(6, "5"), g(6, dtype=I64), 2, 3, 2, 0.5, True),
    bag_offsets=lambda g: op.embedding_bag_offsets(g(5, 2), g(6, dtype=I64), g(4, dtype=I64)),
    bag_offsets_sum=lambda g: op.embedding_bag_offsets_sum(g(5, 2), g(6, dtype=I64), g(4, dtype=I64)),
    bag_packed=lambda g: op.embedding_bag_packed(g(5, 2), g(4, 3, dtype=I64)),
    bag_packed_sum=lambda g: op.embedding_bag_packed_sum(g(5, 2), g(4, 3, dtype=I64)),
    segments_sum=lambda g: op.embedding_segments_sum(g(5, 2), g(6, dtype=I64), g(6, dtype=I64), const(4)),
    segments_sum_unknown=lambda g: op.embedding_segments_sum(g(5, 2), g(6, dtype=I64), g(6, dtype=I64), g(dtype=I64)),
    segment_max=lambda g: op.segment_max(g(6, 2), g(6, dtype=I64), const(4), "ZERO"),
    segment_max_unknown=lambda g: op.segment_max(g(6, 2), g(6, dtype=I64), None, "ZERO"),
    patches=lambda g: op.extract_image_patches(g(2, 3, 10, 9), [3, 3], [5, 2], [1, 1], "valid"),
    patches_same=lambda g: op.extract_image_patches(g(2, 3, 10, 9), [3, 3], [4, 2], [2, 1], "same_upper"),
    generate_proposals=lambda g: op.generate_proposals(
        g(2, "3"), g(9, 8, 3, "4"), g(2, 12, 9, 8), g(2, 3, 9, 8), 1.0, 0.5, 20, 10
    ),
    matrix_nms=lambda g: op.matrix_nms(g(2, 6, "4"), g(2, 3, 6)),
    matrix_nms_kept=lambda g: op.matrix_nms(g(2, 6, "4"), g(2, 3, 6), nms_top_k=4, keep_top_k=5, background_class=0),
    multiclass_nms=lambda g: op.multiclass_nms(g(2, 6, "4"), g(2, 3, 6)),
    multiclass_nms_kept=lambda g: op.multiclass_nms(g(2, 6, "4"), g(2, 3, 6), nms_top_k=4, keep_top_k=5),
    multiclass_nms_rois=lambda g: op.multiclass_nms(g(3, 6, "4"), g(3, 6), g(2, dtype=I64)),
    nms=lambda g: op.non_max_suppression(g(2, 6, "4"), g(2, 3, 6), const(4)),
    nms_all=lambda g: op.non_max_suppression(g(2, 6, "4"), g(2, 3, 6)),
    nms_unknown=lambda g: op.non_max_suppression(g(2, 6, "4"), g(2, 3, 6), g(dtype=I64)),
    nms5=lambda g: opset5.non_max_suppression(g(2, 6, "4"), g(2, 3, 6), const(4)),
    nms4=lambda g: opset4.non_max_suppression(g(2, 6, "4"), g(2, 3, 6), const(4)),
    nms3=lambda g: opset3.non_max_suppression(g(2, 6, "4"), g(2, 3, 6), const(4)),
    nms1=lambda g: opset1.non_max_suppression(g(2, 6, "4"), g(2, 3, 6), const(4)),
    nms_rotated=lambda g: op.nms_rotated(g(2, 6, "5"), g(2, 3, 6), const(4), const(0.5, F32), const(0.1, F32)),
    proposal=lambda g: op.proposal(g(2, 6, 9, 8), g(2, 12, 9, 8), g("3"), PROPOSAL),
    i420=lambda g: op.i420_to_rgb(g(2, 9, 8, "1", dtype=np.uint8)),
    i420_planes=lambda g: op.i420_to_bgr(
        g(2, 8, 6, "1", dtype=np.uint8), g(2, 4, 3, "1", dtype=np.uint8), g(2, 4, 3, "1", dtype=np.uint8)
    ),
    nv12=lambda g: op.nv12_to_rgb(g(2, 9, 8, "1", dtype=np.uint8)),
    nv12_planes=lambda g: op.nv12_to_bgr(g(2, 8, 6, "1", dtype=np.uint8), g(2, 4, 3, "2", dtype=np.uint8)),
    multinomial=lambda g: op.multinomial(g(2, 5), const(4), "i32", True, False),
    multinomial_unknown=lambda g: op.multinomial(g(2, 5), g("1", dtype=I64), "i64", True, False),
    region_yolo=lambda g: op.region_yolo(g(2, 20, 4, 3), 4, 1, 4, True, [0, 1], 1, 3),
    region_yolo_plain=lambda g: op.region_yolo(g(2, 20, 4, 3), 4, 1, 4, False, [0, 1], 1, 3),
    reorg_yolo=lambda g: op.reorg_yolo(g(2, 8, 4, 6), [2]),
    stft=lambda g: op.stft(g(2, 48), g(8), const(8), const(3), True),
    stft_frames_last=lambda g: op.stft(g(2, 48), g(8), const(9), const(4), False),
    stft_vector=lambda g: op.stft(g(48), g(8), const(8), const(3), False),
    stft_unknown=lambda g: op.stft(g(2, 48), g(8), g(dtype=I64), const(3), False),
    istft=lambda g: op.istft(g(2, 5, 4, "2"), g(8), const(8), const(3), False, False),
    istft_center=lambda g: op.istft(g(5, 4, "2"), g(8), const(8), const(3), True, False),
    istft_length=lambda g: op.istft(g(2, 5, 4, "2"), g(8), const(8), const(3), True, False, const(19)),
    unique=lambda g: op.unique(g(4, 5)),
    unique_axis=lambda g: op.unique(g(4, 5), const(1)),
    unique_axis_counts=lambda g: op.unique(g(4, 5), const(-2), True, "i32", "i32"),
    unique_unknown_axis=lambda g: op.unique(g(4, 5), g(dtype=I64)),
    softmax=lambda g: op.softmax(g(4, 5), 1),
    softmax1=lambda g: opset1.softmax(g(4, 5), 1),
    logical_xor=lambda g: op.logical_xor(g(4, 1, dtype=bool), g(4, 5, dtype=bool)),
    sparse_fill=lambda g: op.sparse_fill_empty_rows(g(6), const([4, 5]), g(6, "2", dtype=I64), const(0.0, F32)),
)


@layer
def prior_box(g: Given) -> Any:
    sizes = {"min_size": np.array([2.0], F32), "aspect_ratio": np.array([2.0], F32)}
    attributes = {"offset": 0.5, "step": 4.0, "flip": True, **sizes}
    shape = op.convert(op.slice(op.shape_of(g(2, 3, 4, 5)), const([2]), const([4]), const([1])), "i64")
    return op.prior_box(shape, const([16, 16]), attributes)


@layer
def prior_box_clustered(g: Given) -> Any:
    attributes = {"offset": 0.5, "width": np.ones(3, F32), "height": np.ones(3, F32), "step": 4.0}
    return op.prior_box_clustered(const([4, 5]), const([16, 16]), attributes)


def _body(result_shape: Any, make: Callable[[Any], Any]) -> tuple[Any, Any]:
    parameter = opset1.parameter(PartialShape(result_shape), F32)
    return ov.Model([make(parameter)], [parameter], "body"), parameter


def _iterator(g: Given, start: int, stride: int, part: int, end: int, axis: int) -> dict[str, Any]:
    data, state = g(6, 8), g(6)
    shape = [-1, -1]
    shape[axis] = part
    piece, now = opset1.parameter(PartialShape(shape), F32), opset1.parameter(PartialShape([-1]), F32)
    body = ov.Model([opset1.relu(piece), opset1.abs(now)], [piece, now], "body")
    node = opset1.tensor_iterator()
    node.set_body(body)
    node.set_sliced_input(piece, data.output(0), start, stride, part, end, axis)
    node.set_merged_input(now, state.output(0), body.results[1].output(0))
    return {
        "last": node.get_iter_value(body.results[1].output(0), -1),
        "all": node.get_concatenated_slices(body.results[0].output(0), start, stride, part, end, axis),
        "states": node.get_concatenated_slices(body.results[1].output(0), 0, 1, 1, -1, 0),
        "piece": node.get_iter_value(body.results[0].output(0), -1),
    }


_simple(
    iterator=lambda g: _iterator(g, 0, 1, 1, -1, 0),
    iterator_columns=lambda g: _iterator(g, 0, 2, 2, -1, 1),
    iterator_backward=lambda g: _iterator(g, -1, -2, 2, 0, 1),
    iterator_from_the_second=lambda g: _iterator(g, 1, 1, 1, -1, 0),
    iterator_to_the_last_but_one=lambda g: _iterator(g, 0, 1, 1, -2, 0),
    iterator_of_a_few=lambda g: _iterator(g, 0, 1, 1, 3, 0),
    iterator_with_gaps=lambda g: _iterator(g, 0, 3, 2, -1, 1),
)


def _loop(g: Given, trips: Any, goes_on: Any, grows: bool) -> dict[str, Any]:
    data = g(4, 5)
    now, step = opset1.parameter(PartialShape([-1, -1]), F32), opset1.parameter(PartialShape([]), I64)
    changed = opset1.concat([now, now], 0) if grows else opset1.relu(now)
    test = goes_on if goes_on is not None else opset1.less(step, const(5))
    results = [opset1.result(each) for each in (test, changed, opset1.unsqueeze(changed, const([0])))]
    body = ov.Model(results, [step, now], "body")
    node = opset5.loop(trips, const(True, bool))
    node.set_function(body)
    node.set_special_body_ports([0, 0])
    node.set_merged_input(now, data.output(0), body.results[1].output(0))
    return {
        "last": node.get_iter_value(body.results[1].output(0), -1),
        "all": node.get_concatenated_slices(body.results[2].output(0), 0, 1, 1, -1, 0),
        "joined": node.get_concatenated_slices(body.results[1].output(0), 0, 1, 1, -1, 1),
    }


_simple(
    loop=lambda g: _loop(g, const(3), const(True, bool), False),
    loop_that_grows=lambda g: _loop(g, const(3), const(True, bool), True),
    loop_that_may_stop=lambda g: _loop(g, const(3), None, False),
    loop_of_any_length=lambda g: _loop(g, g(dtype=I64), const(True, bool), False),
    loop_without_end=lambda g: _loop(g, const(-1), None, False),
    loop_that_stops_at_once=lambda g: _loop(g, const(3), const(False, bool), False),
)


def _if(g: Given, then: Callable[[Any], Any], other: Callable[[Any], Any], condition: Any = None) -> dict[str, Any]:
    chosen, data = g(dtype=bool) if condition is None else condition, g(4, 5)
    bodies = [_body([-1, -1], then), _body([-1, -1], other)]
    node = opset8.if_op(chosen)
    node.set_then_body(bodies[0][0])
    node.set_else_body(bodies[1][0])
    node.set_input(data.output(0), bodies[0][1], bodies[1][1])
    return {"out": node.set_output(bodies[0][0].results[0], bodies[1][0].results[0])}


_simple(
    if_equal=lambda g: _if(g, opset1.relu, opset1.abs),
    if_sizes=lambda g: _if(g, lambda x: const(np.ones((1, 3)), F32), lambda x: const(np.ones((2, 3)), F32)),
    if_constant=lambda g: _if(g, opset1.relu, lambda x: const(np.ones((2, 3)), F32), const(True, bool)),
    if_one=lambda g: _if(g, opset1.relu, lambda x: opset1.concat([x, x], 0)),
    if_ranks=lambda g: _if(g, opset1.relu, lambda x: opset1.reshape(x, const([-1]), True)),
)


def _every(kind: str) -> Callable[[], dict[str, Any]]:
    def outputs() -> dict[str, Any]:
        return {key: output for name in LAYERS for key, output in (built(name, kind) or {}).items()}

    return outputs


# Each kind is one model; what the layers compute at run time is recorded for the other groups.
NOT_RUN = {f"every_{kind}": _every(kind) for kind in ("interval", "mixed")}
layer_models.GROUPS.update(NOT_RUN)
