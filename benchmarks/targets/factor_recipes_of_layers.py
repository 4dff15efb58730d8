"""How operators of layers stand in models of exporters: convolutions, normalization, recurrent ones, images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from case_graph import CaseGraph
from factor_recipes import FLOATS, OPEN, Change, Recipe, axes_given, changes, ways

# Convolutions and pools -----------------------------------------------------------------------------------------------


def _conv(g: CaseGraph, shape: Any = (2, 4, 9, 9), out: int = 6, kernel: Any = (3, 3), group: Any = 1,
          bias: str = "init", W: str = "init", strides: Any = (1, 1), pads: Any = (1, 1, 1, 1),
          dilations: Any = (1, 1), auto: Any = None,
          T: str = "float32", open: Any = (), kernel_shape: bool = True, returned: bool = False) -> None:  # fmt: skip
    spatial = len(shape) - 2
    kernel, strides, dilations = (
        (tuple(each) * 3)[:spatial] if each else None for each in (kernel, strides, dilations)
    )
    pads = None if pads is None else (tuple(pads) if len(pads) == 2 * spatial else (1,) * 2 * spatial)
    weights = g.given(g.numbers(out, shape[1] // (group or 1), *kernel, dtype=T), W)
    held = {"strides": strides, "pads": pads, "dilations": dilations, "group": group, "auto_pad": auto}
    if kernel_shape:
        held["kernel_shape"] = kernel
    third = "" if bias == "absent" else g.given(g.numbers(out, dtype=T), bias)
    made = g.put("Conv", [g.data(shape, T, open=open), weights, third], **held)
    if returned:
        g.outputs += made
    else:
        g.use(made, T)


_CONV = changes(
    [
        {"group": 4, "out": 4},
        {"group": 2},
        {"group": None},
        {"kernel": (1, 1), "pads": (0, 0, 0, 0)},
        {"kernel": (3, 1)},
    ],
    [{"strides": (2, 2)}, {"strides": (2, 1)}, {"strides": None}, {"dilations": (2, 2)}, {"dilations": None}],
    [{"pads": (0, 0, 0, 0)}, {"pads": None}, {"pads": (0, 1, 1, 2)}, {"kernel_shape": False}],
    [{"kernel": (3, 1), "pads": (1, 0, 1, 0)}, {"kernel": (1, 3), "pads": (0, 1, 0, 1)}],
    [{"pads": None, "auto": "SAME_UPPER"}, {"pads": None, "auto": "SAME_LOWER"}, {"pads": None, "auto": "VALID"}],
    [{"auto": "NOTSET"}, {"pads": None, "auto": "SAME_UPPER", "strides": (2, 2)}, {"dilations": (1, 2)}],
    ways("bias", "absent", "node", "computed", "folded"),
    ways("W", "node", "computed", "folded"),
    [
        {"shape": (2, 4, 9)},
        {"shape": (2, 4, 9), "returned": True},
        {"shape": (2, 4, 5, 5, 5)},
        # Causal convolutions pad at one end.
        {"shape": (2, 4, 9), "pads": (2, 0)},
        {"shape": (2, 4, 9), "pads": (2, 0), "open": (2,)},
        {"shape": (2, 4, 9), "pads": (2, 0), "returned": True},
        {"shape": (2, 4, 5, 5, 5), "pads": (2, 0, 1, 0, 1, 0)},
        *OPEN,
        {"open": (2, 3)},
        {"open": (0, 2, 3)},
        *FLOATS,
    ],
)


def _conv_transpose(g: CaseGraph, shape: Any = (2, 4, 5, 5), out: int = 3, kernel: Any = (3, 3), group: Any = 1,
                    bias: str = "init", W: str = "init", strides: Any = (2, 2), pads: Any = (1, 1, 1, 1),
                    dilations: Any = (1, 1), output_padding: Any = None, output_shape: Any = None, auto: Any = None,
                    T: str = "float32", open: Any = (), kernel_shape: bool = True,
                    returned: bool = False) -> None:  # fmt: skip
    spatial = len(shape) - 2
    kernel, strides, dilations = (
        (tuple(each) * 3)[:spatial] if each else None for each in (kernel, strides, dilations)
    )
    pads = None if pads is None else (tuple(pads) if len(pads) == 2 * spatial else (1,) * 2 * spatial)
    weights = g.given(g.numbers(shape[1], out // (group or 1), *kernel, dtype=T), W)
    third = "" if bias == "absent" else g.given(g.numbers(out, dtype=T), bias)
    held = {
        "strides": strides,
        "pads": pads,
        "dilations": dilations,
        "group": group,
        "auto_pad": auto,
        "kernel_shape": kernel if kernel_shape else None,
    }
    held |= {"output_padding": output_padding, "output_shape": output_shape}
    made = g.put("ConvTranspose", [g.data(shape, T, open=open), weights, third], **held)
    if returned:
        g.outputs += made
    else:
        g.use(made, T)


_CONV_TRANSPOSE = changes(
    [{"group": 2, "out": 4}, {"group": 4, "out": 4}, {"group": None}, {"kernel": (2, 2), "pads": (0, 0, 0, 0)}],
    [{"strides": (1, 1)}, {"strides": (2, 1)}, {"strides": None}, {"dilations": (2, 2)}, {"dilations": None}],
    [{"pads": (0, 0, 0, 0)}, {"pads": None}, {"pads": (0, 1, 1, 0)}, {"output_padding": (1, 1)}],
    [{"output_padding": (0, 0)}, {"pads": None, "output_shape": (10, 10)}, {"pads": None, "auto": "SAME_UPPER"}],
    [{"pads": None, "auto": "SAME_LOWER"}, {"pads": None, "auto": "VALID"}, {"auto": "NOTSET"}],
    ways("bias", "absent", "node", "computed"),
    ways("W", "node", "computed"),
    [
        {"shape": (2, 4, 5)},
        {"shape": (2, 4, 5), "returned": True},
        {"shape": (2, 4, 3, 3, 3)},
        *OPEN,
        {"open": (2, 3)},
        *FLOATS,
        {"kernel_shape": False},
    ],
)


def _pool(operator: str) -> Callable[..., None]:
    def build(g: CaseGraph, shape: Any = (2, 3, 8, 8), kernel: Any = (2, 2), strides: Any = (2, 2),
              pads: Any = (0, 0, 0, 0), ceil: Any = None, dilations: Any = None, count: Any = None, auto: Any = None,
              order: Any = None, used: str = "1", T: str = "float32", open: Any = ()) -> None:  # fmt: skip
        spatial = len(shape) - 2
        kernel, strides, dilations = (
            (tuple(each) * 3)[:spatial] if each else None for each in (kernel, strides, dilations)
        )
        pads = None if pads is None else (tuple(pads) if len(pads) == 2 * spatial else tuple(pads[:1]) * 2 * spatial)
        held = {
            "kernel_shape": kernel,
            "strides": strides,
            "pads": pads,
            "ceil_mode": ceil,
            "auto_pad": auto,
            "dilations": dilations,
        }
        if operator == "AveragePool":
            held["count_include_pad"] = count
        else:
            held["storage_order"] = order
        made = g.put(operator, [g.data(shape, T, open=open)], used, **held)
        g.use(made[:1], T)
        g.use(made[1:], "int64")

    return build


_POOL = changes(
    [{"kernel": (3, 3), "pads": (1, 1, 1, 1)}, {"kernel": (3, 2)}, {"strides": (1, 1)}, {"strides": None}],
    [{"strides": (2, 1)}, {"pads": None}, {"kernel": (3, 3), "pads": (0, 0, 1, 1)}, {"auto": "NOTSET"}],
    [{"pads": None, "auto": "SAME_UPPER", "kernel": (3, 3)}, {"pads": None, "auto": "SAME_LOWER", "kernel": (3, 3)}],
    [
        {"pads": None, "auto": "VALID"},
        {"shape": (2, 3, 8)},
        {"shape": (2, 3, 6, 6, 6)},
        *OPEN,
        {"open": (2, 3)},
        *FLOATS,
    ],
)
_CEIL = [{"ceil": 0}, {"ceil": 1, "kernel": (3, 3)}, {"ceil": 1, "kernel": (3, 3), "pads": (1, 1, 1, 1)}]
_COUNT = changes(
    [{"count": 0}, {"count": 1}, {"count": 1, "kernel": (3, 3), "pads": (1, 1, 1, 1)}],
    [{"count": 1, "kernel": (3, 3), "strides": (1, 1), "pads": (1, 1, 1, 1), "open": open} for open in ((), (0, 2, 3))],
)


def _global_pool(operator: str) -> Callable[..., None]:
    def build(g: CaseGraph, shape: Any = (2, 3, 8, 8), T: str = "float32", open: Any = ()) -> None:
        g.use(g.put(operator, [g.data(shape, T, open=open)]), T)

    return build


_GLOBAL = changes([{"shape": (2, 3, 8)}, {"shape": (2, 3, 4, 4, 4)}, *OPEN, {"open": (2, 3)}, *FLOATS])

# Normalization --------------------------------------------------------------------------------------------------------


def _batch_norm(g: CaseGraph, shape: Any = (2, 3, 4, 5), given: str = "init", epsilon: Any = 1e-5, momentum: Any = 0.9,
                training: Any = None, T: str = "float32", open: Any = ()) -> None:  # fmt: skip
    lists = [g.given(np.abs(g.numbers(shape[1], dtype=T)) + np.array(0.5, T), given) for _ in range(4)]
    held = {"epsilon": epsilon, "momentum": momentum} | ({"training_mode": training} if g.opset >= 14 else {})
    g.use(g.put("BatchNormalization", [g.data(shape, T, open=open), *lists], **held), T)


_BATCH_NORM = changes(
    [
        {"epsilon": None},
        {"epsilon": 1e-3},
        {"momentum": None},
        {"momentum": 0.1},
        {"shape": (2, 3)},
        {"shape": (2, 3, 5)},
    ],
    [{"shape": (2, 3, 4, 4, 4)}, *ways("given", "node", "computed", "folded"), *OPEN, *FLOATS],
)


def _instance_norm(g: CaseGraph, shape: Any = (2, 3, 4, 5), given: str = "init", epsilon: Any = 1e-5,
                   T: str = "float32", open: Any = ()) -> None:  # fmt: skip
    lists = [g.given(g.numbers(shape[1], dtype=T), given) for _ in range(2)]
    g.use(g.put("InstanceNormalization", [g.data(shape, T, open=open), *lists], epsilon=epsilon), T)


def _layer_norm(g: CaseGraph, shape: Any = (2, 3, 8), axis: Any = -1, size: Any = None, scale: str = "init",
                bias: str = "init", epsilon: Any = 1e-5, stash: Any = None, used: str = "1", T: str = "float32",
                open: Any = ()) -> None:  # fmt: skip
    rank = len(shape)
    own = tuple(shape[(-1 if axis is None else axis) % rank :]) if size is None else size
    lists = [g.given(g.numbers(*own, dtype=T), scale), g.given(g.numbers(*own, dtype=T), bias)]
    made = g.put(
        "LayerNormalization", [g.data(shape, T, open=open), *lists], used, axis=axis, epsilon=epsilon, stash_type=stash
    )
    g.use(made[:1], T)
    g.use(made[1:])


_LAYER_NORM = changes(
    [{"axis": 1}, {"axis": 2}, {"axis": None}, {"axis": -2}, {"bias": "absent"}, {"epsilon": None}, {"epsilon": 1e-3}],
    [{"used": "111"}, {"used": "11"}, {"used": "101"}, {"used": "1uu"}, {"stash": 1}, {"shape": (3, 8)}, {"axis": 0}],
    [{"shape": (2, 3, 4, 8)}, {"shape": (2, 3, 4, 8), "axis": 2}],
    ways("scale", "node", "computed", "folded"),
    ways("bias", "node", "computed", "folded"),
    [{"scale": "folded", "bias": "folded"}],
    OPEN,
    FLOATS,
)


def _group_norm(g: CaseGraph, shape: Any = (2, 4, 5, 5), groups: int = 2, open: Any = ()) -> None:
    count = groups if g.opset < 21 else shape[1]
    lists = [g.given(g.numbers(count)) for _ in range(2)]
    g.use(g.put("GroupNormalization", [g.data(shape, open=open), *lists], num_groups=groups))


def _dropout(g: CaseGraph, shape: Any = (2, 3, 8), ratio: str = "absent", mode: str = "absent", used: str = "1",
             training: bool = False, open: Any = ()) -> None:  # fmt: skip
    data = g.data(shape, open=open)
    # With a ratio of 0, training drops nothing, and numbers are no others.
    dropped = 0.0 if training else 0.5
    if g.opset < 12:
        made = g.put("Dropout", [data], used)
    else:
        made = g.put("Dropout", [data, g.given(dropped, ratio, "float32"), g.given(training, mode, "bool")], used)
    g.use(made[:1])
    g.use(made[1:], "bool")


# Recurrent ------------------------------------------------------------------------------------------------------------


def _recurrent(operator: str, gates: int) -> Callable[..., None]:
    def build(g: CaseGraph, direction: Any = None, bias: str = "init", lens: str = "absent", h: str = "init",
              c: str = "init", P: str = "absent", used: str = "111" if operator == "LSTM" else "11", layout: Any = None,
              clip: Any = None, reset: Any = 1, forget: Any = None, acts: Any = None, W: str = "init",
              T: str = "float32", open: Any = ()) -> None:  # fmt: skip
        seq, batch, size, hidden = 5, 2, 3, 4
        both = 2 if direction == "bidirectional" else 1
        turned = bool(layout)
        shape = (batch, seq, size) if turned else (seq, batch, size)
        state = (batch, both, hidden) if turned else (both, batch, hidden)
        names = [g.data(shape, T, open=open)]
        names += [g.given(g.numbers(both, gates * hidden, each, dtype=T), W) for each in (size, hidden)]
        names.append("" if bias == "absent" else g.given(g.numbers(both, 2 * gates * hidden, dtype=T), bias))
        names.append("" if lens == "absent" else g.given([seq] * batch, lens, "int32"))

        def start(how: str) -> str:
            if how == "data":
                return g.data(state, T, open=(0 if turned else 1,) if open else ())
            return "" if how == "absent" else g.given(g.numbers(*state, dtype=T), how)

        names.append(start(h))
        held = {"hidden_size": hidden, "direction": direction, "layout": layout, "clip": clip, "activations": acts}
        if operator == "LSTM":
            names += [start(c), "" if P == "absent" else g.given(g.numbers(both, 3 * hidden, dtype=T), P)]
            held["input_forget"] = forget
        if operator == "GRU":
            held["linear_before_reset"] = reset
        made = g.put(operator, names, used, **held)
        if used[0] == "1":
            made[0] = read_states(g, made[0], both, turned=turned)
        g.use(made, T)

    return build


def read_states(g: CaseGraph, states: str, directions: int, *, turned: bool = False) -> str:
    """All states of a recurrent layer as exporters read them: without the directions, or with these side by side."""
    if directions == 1:
        inputs, held = axes_given(g, (2 if turned else 1,), "init", 13)
        return g.add("Squeeze", [states, *inputs], **held)
    order = [0, 1, 2, 3] if turned else [0, 2, 1, 3]
    return g.add("Reshape", [g.add("Transpose", [states], perm=order), g.constant(np.array([0, 0, -1]))])


_STATES = [{"h": how, "c": how} for how in ("absent", "data", "node")]
_RECURRENT: list[Change] = changes(
    [{"direction": each} for each in ("forward", "reverse", "bidirectional")],
    [{"bias": "absent"}, {"bias": "node"}, {"lens": "init"}, {"lens": "input"}, *_STATES, {"clip": 3.0}],
    [{"used": "1"}, {"used": "01"}, {"used": "1u"}, {"used": "u1"}, {"used": "11"}],
    [{"W": "node"}, {"W": "computed"}, {"h": "absent", "c": "absent", "used": "1"}],
    [
        {"h": "absent", "c": "absent", "open": (0,)},
        {"h": "absent", "c": "absent", "open": (1,)},
        {"h": "data", "c": "data", "open": (1,)},
    ],
    [{"open": (0,)}, {"T": "float16"}, {"T": "float64"}, {"direction": "bidirectional", "h": "absent", "c": "absent"}],
    [{"direction": "bidirectional", "used": "1"}],
)
_LSTM = [
    {"h": "absent"},
    {"c": "absent"},
    {"P": "init"},
    {"forget": 1},
    {"used": "1uu"},
    {"used": "011"},
    {"used": "001"},
]
_LSTM += [{"used": "u11"}, {"acts": ["Sigmoid", "Tanh", "Tanh"]}, {"acts": ["Sigmoid", "Relu", "Relu"]}]
_GRU = [{"reset": 0}, {"reset": None}, {"acts": ["Sigmoid", "Tanh"]}]
_LAYOUT = [{"layout": 1}, {"layout": 0}, {"layout": 1, "h": "absent", "c": "absent"}]

# Images ---------------------------------------------------------------------------------------------------------------


def _resize(g: CaseGraph, shape: Any = (2, 3, 4, 4), mode: str = "nearest", scales: Any = (1, 1, 2, 2),
            sizes: Any = None, given: str = "init", way: Any = "asymmetric", rounding: Any = "floor",
            roi: str = "absent", exclude: Any = None, coefficient: Any = None, antialias: Any = None, axes: Any = None,
            T: str = "float32", open: Any = ()) -> None:  # fmt: skip
    data = g.data(shape, T, open=open)
    if g.opset < 11:
        g.use(g.put("Resize", [data, g.given(list(scales), given, "float32")], mode=mode), T)
        return
    box = g.given(np.zeros((0,)), "init", "float32") if roi == "absent" and g.opset < 13 else ""
    if roi == "init":
        box = g.given([0.0] * len(shape) + [1.0] * len(shape), "init", "float32")
    inputs = [data, box]
    if sizes is None:
        inputs.append(g.given(list(scales), given, "float32"))
    else:
        inputs.append(g.given(np.zeros((0,)), "init", "float32") if g.opset < 13 else "")
        inputs.append(g.given(list(sizes), given, "int64"))
    held = {
        "mode": mode,
        "coordinate_transformation_mode": way,
        "exclude_outside": exclude,
        "cubic_coeff_a": coefficient,
    }
    held["nearest_mode"] = rounding
    if g.opset >= 18:
        held |= {"antialias": antialias, "axes": axes}
    g.use(g.put("Resize", inputs, **held), T)


_RESIZE = changes(
    ({"scales": each} for each in ((1, 1, 0.5, 0.5), (1, 1, 1.5, 1.5), (1, 1, 2, 1), (1, 1, 3, 0.5))),
    ways("given", "node", "folded"),
    [
        {"sizes": (2, 3, 8, 8)},
        *({"sizes": (2, 3, 8, 8), "given": how} for how in ("shape", "sized", "node", "folded")),
        {"sizes": (2, 3, 2, 2)},
        {"sizes": (2, 3, 6, 6)},
    ],
    ({"way": each} for each in ("half_pixel", "pytorch_half_pixel", "align_corners", None)),
    [{"way": "half_pixel", "sizes": (2, 3, 7, 9)}, {"way": "tf_half_pixel_for_nn"}, {"roi": "init"}],
    OPEN,
    [{"open": (2, 3)}, {"open": (0, 2, 3)}, {"T": "float16"}, {"T": "float64"}],
    [{"shape": (2, 3, 6), "scales": (1, 1, 2)}, {"shape": (1, 2, 3, 3, 3), "scales": (1, 1, 2, 2, 2)}],
)
_NEAREST = [{"rounding": each} for each in ("ceil", "round_prefer_floor", "round_prefer_ceil", None)]
_RESIZE_18 = [{"antialias": 1, "scales": (1, 1, 0.5, 0.5)}, {"antialias": 0}, {"axes": (2, 3), "scales": (2, 2)}]


def _mode(mode: str, changed: list[Change]) -> list[Change]:
    return [{"way": "half_pixel", **change, "mode": mode} for change in ({}, *changed)]


def _upsample(g: CaseGraph, shape: Any = (2, 3, 4, 4), scales: Any = (1, 1, 2, 2), mode: str = "nearest",
              given: str = "init", open: Any = ()) -> None:  # fmt: skip
    data = g.data(shape, open=open)
    if g.opset < 9:
        g.use(g.put("Upsample", [data], mode=mode, scales=[float(each) for each in scales]))
    else:
        g.use(g.put("Upsample", [data, g.given(list(scales), given, "float32")], mode=mode))


def _grid_sample(g: CaseGraph, shape: Any = (2, 3, 5, 6), mode: Any = "linear", padding: Any = "zeros",
                 corners: Any = 0, grid: str = "data", T: str = "float32", open: Any = (),
                 open_grid: Any = ()) -> None:  # fmt: skip
    old = {"linear": "bilinear", "cubic": "bicubic"}
    kind = old.get(mode, mode) if g.opset < 20 else mode
    points = g.numbers(shape[0], *((4,) * (len(shape) - 2)), len(shape) - 2, dtype=T)
    held = (
        g.data(points.shape, T, array=points - np.array(0.5, T), open=open_grid) if grid == "data" else g.given(points)
    )
    data = g.data(shape, T, open=open)
    g.use(g.put("GridSample", [data, held], mode=kind, padding_mode=padding, align_corners=corners), T)


_GRID = changes(
    [{"mode": "nearest"}, {"mode": "cubic"}, {"mode": None}, {"padding": "border"}, {"padding": "reflection"}],
    [
        {"corners": 1},
        {"corners": None},
        {"grid": "init"},
        {"open": (0,), "open_grid": (0,)},
        {"open": (2, 3)},
        {"T": "float64"},
    ],
    [{"open_grid": (1, 2)}, {"open": (0, 2, 3), "open_grid": (0, 1, 2)}],
)


def _depth(operator: str) -> Callable[..., None]:
    def build(g: CaseGraph, shape: Any = (2, 8, 4, 4), mode: Any = None, open: Any = ()) -> None:
        held = {"mode": mode} if operator == "DepthToSpace" and g.opset >= 11 else {}
        g.use(g.put(operator, [g.data(shape, open=open)], blocksize=2, **held))

    return build


LAYERS = [
    Recipe("Conv", _conv, _CONV),
    Recipe("ConvTranspose", _conv_transpose, _CONV_TRANSPOSE),
    Recipe("MaxPool", _pool("MaxPool"), [*_POOL, {"used": "1u"}], until=9),
    Recipe(
        "MaxPool",
        _pool("MaxPool"),
        [*_POOL, *_CEIL, {"used": "1u"}, {"used": "11"}, {"order": 0}, {"dilations": (1, 1)}, {"dilations": (2, 2)}],
        since=10,
    ),
    Recipe("AveragePool", _pool("AveragePool"), [*_POOL, *_COUNT], until=9),
    Recipe("AveragePool", _pool("AveragePool"), [*_POOL, *_COUNT, *_CEIL], since=10),
    *(Recipe(name, _global_pool(name), _GLOBAL) for name in ("GlobalAveragePool", "GlobalMaxPool")),
    Recipe("BatchNormalization", _batch_norm, _BATCH_NORM, until=13),
    Recipe("BatchNormalization", _batch_norm, [*_BATCH_NORM, {"training": 0}], since=14),
    Recipe(
        "InstanceNormalization",
        _instance_norm,
        [{"shape": (2, 3, 8)}, {"epsilon": None}, {"given": "node"}, *OPEN, *FLOATS],
    ),
    Recipe("LayerNormalization", _layer_norm, _LAYER_NORM, since=17),
    Recipe("GroupNormalization", _group_norm, [{"shape": (2, 4, 6)}, *OPEN], since=18),
    Recipe(
        "Dropout",
        _dropout,
        [{"used": "1u"}, *OPEN, {"shape": (4, 6)}, {"shape": (2, 3, 4, 6)}, {"used": "11"}],
        until=11,
    ),
    Recipe(
        "Dropout",
        _dropout,
        [
            {"used": "1u"},
            {"ratio": "init"},
            {"ratio": "init", "mode": "init"},
            {"ratio": "init", "mode": "init", "training": True},
            *OPEN,
            {"shape": (4, 6)},
            {"shape": (2, 3, 4, 6)},
            {"used": "11"},
        ],
        since=12,
    ),
    Recipe("LSTM", _recurrent("LSTM", 4), [*_RECURRENT, *_LSTM], until=13),
    Recipe("LSTM", _recurrent("LSTM", 4), [*_RECURRENT, *_LSTM, *_LAYOUT], since=14),
    Recipe("GRU", _recurrent("GRU", 3), [*_RECURRENT, *_GRU], until=13),
    Recipe("GRU", _recurrent("GRU", 3), [*_RECURRENT, *_GRU, *_LAYOUT], since=14),
    Recipe("RNN", _recurrent("RNN", 1), _RECURRENT, until=13),
    Recipe("RNN", _recurrent("RNN", 1), [*_RECURRENT, *_LAYOUT], since=14),
    Recipe("Resize", _resize, [*_RESIZE[:1], *OPEN, {"mode": "linear"}], since=10, until=10),
    Recipe("Resize", _resize, [*_RESIZE, *_NEAREST], since=11, until=17, family="nearest"),
    Recipe("Resize", _resize, _mode("linear", _RESIZE), since=11, until=17, family="linear"),
    Recipe(
        "Resize",
        _resize,
        _mode(
            "cubic",
            [{"coefficient": -0.5}, {"exclude": 1}, *_RESIZE[:2], {"way": "align_corners"}, {"sizes": (2, 3, 8, 8)}],
        ),
        since=11,
        until=17,
        family="cubic",
    ),
    Recipe("Resize", _resize, [*_RESIZE, *_NEAREST, *_RESIZE_18], since=18, family="nearest"),
    Recipe("Resize", _resize, _mode("linear", [*_RESIZE, *_RESIZE_18]), since=18, family="linear"),
    Recipe(
        "Resize",
        _resize,
        _mode("cubic", [{"coefficient": -0.5}, {"exclude": 1}, *_RESIZE[:2], {"sizes": (2, 3, 8, 8)}]),
        since=18,
        family="cubic",
    ),
    Recipe("Upsample", _upsample, [{"mode": "linear"}, {"scales": (1, 1, 1.5, 1.5)}, *OPEN], until=8),
    Recipe(
        "Upsample",
        _upsample,
        [{"mode": "linear"}, {"given": "node"}, {"scales": (1, 1, 1.5, 1.5)}, *OPEN],
        since=9,
        until=9,
    ),
    Recipe("GridSample", _grid_sample, _GRID, since=16),
    Recipe("DepthToSpace", _depth("DepthToSpace"), [{"mode": "CRD"}, {"mode": "DCR"}, *OPEN]),
    Recipe("SpaceToDepth", _depth("SpaceToDepth"), OPEN),
]
