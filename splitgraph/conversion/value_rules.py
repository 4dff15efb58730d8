"""Rules of boundaries that are about values and modes: attributes respelt, defaults changed, training and inference.

A predicate looks at the node alone: its attributes, which inputs and outputs it has, and what is known of their types
and shapes. It returns True when the node, after the edits that the predicate made to its attributes, provably means
the same.
"""

from __future__ import annotations

from splitgraph.attribute_values import CONSTANT_DTYPES, UNRESOLVED
from splitgraph.conversion.boundary_crossing import Crossing, Predicate
from splitgraph.deferred import helper
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import DTYPE_NUMBERS

_INTEGERS = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})


# Training and inference ------------------------------------------------------------------------------------------


def _outputs_after_first(c: Crossing) -> int:
    return sum(c.uses_output(index) for index in range(1, len(c.facts.node.output)))


def dropout_test_mode(c: Crossing) -> bool:
    """Dropout 6|7: in test mode and without mask it copies its input."""
    if c.uses_output(1) or (c.upward and not c.is_set("is_test")):
        return False
    if c.upward:
        c.drop("is_test", why="from opset 7 on inference is the mode of a Dropout without mask")
    else:
        c.set("is_test", 1, "below opset 7 Dropout is in training mode unless is_test is set")
    return True


def mask_unused(c: Crossing) -> bool:
    """Nobody reads Dropout's mask."""
    return not c.uses_output(1)


def dropout_without_ratio(c: Crossing) -> bool:
    """Dropout 10|12: no mask, and the ratio is the default on both sides."""
    if c.uses_output(1):
        return False
    if c.upward:
        return bool(c.value("ratio", 0.5) == 0.5)
    if c.uses_input(1) or c.uses_input(2):
        return False
    c.drop("seed", why="without training_mode nothing is drawn at random")
    return True


def batch_normalization_mode(c: Crossing) -> bool:
    """BatchNormalization 6|7: test mode with one output, or training with all five; one scale for each channel."""
    others = _outputs_after_first(c)
    if c.value("spatial", 1) != 1 or others not in (0, 4):
        return False
    if not c.upward:
        if others == 0:
            c.set("is_test", 1, "below opset 7 BatchNormalization is in training mode unless is_test is set")
        return True
    if c.value("is_test", 0) is UNRESOLVED or c.is_set("is_test") != (others == 0):
        return False
    c.drop("is_test", why="from opset 7 on the number of outputs tells inference from training")
    return True


def batch_normalization_inference(c: Crossing) -> bool:
    """BatchNormalization 9|14: inference, which has one output on both sides."""
    return _outputs_after_first(c) == 0 and c.value("training_mode", 0) == 0


def batch_statistics_in_float(c: Crossing) -> bool:
    """BatchNormalization 14|15: no statistics are computed, or they are computed in the type of the input anyway."""
    return c.value("training_mode", 0) == 0 or c.dtype(0) in ("float32", "float64")


def sequence_output(c: Crossing) -> bool:
    """RNN, LSTM, GRU at 7: without output_sequence, Y is optional, so it is given where it is named."""
    if not c.upward:
        if c.uses_output(0):
            c.set("output_sequence", 1, "below opset 7 Y is only given when it is asked for")
        return True
    c.drop("output_sequence", why="from opset 7 on Y is given whenever the node names it")
    return True


def gru_direction(c: Crossing) -> bool:
    """GRU 1|3, upward: the first schema misspelt "forward"."""
    c.accept_default("direction")
    if c.value("direction") is UNRESOLVED:
        return False
    if c.value("direction") == "foward":
        c.set("direction", "forward", "the spelling of GRU-1's schema was corrected")
    return True


def mean_variance_axes(c: Crossing) -> bool:
    """MeanVarianceNormalization 9|13, upward: the function body that onnx infers types by refers to axes, also where a
    node leaves it out; its default is written out.
    """
    if not c.has("axes"):
        c.set("axes", [0, 2, 3], "onnx infers no types from opset 13 on unless axes is written")
    return True


# Values ----------------------------------------------------------------------------------------------------------


def cast_target_spelling(c: Crossing) -> bool:
    """Cast 1|6: the target type is a name below opset 6 and a number from then on."""
    to = c.value("to")
    types = TensorProto.DataType
    if c.upward and to in list(types.keys()):
        c.set("to", types.Value(to), "from opset 6 on the type is a number")
        return True
    if not c.upward and isinstance(to, int) and to in types.values():
        c.set("to", types.Name(to), "below opset 6 the type is a name")
        return True
    return False


def float8_infinity_unaffected(c: Crossing) -> bool:
    """Cast, CastLike at 24: the target is known and not one of the FNUZ types, or saturation is off."""
    if c.value("saturate", 1) == 0:
        return True
    to = c.value("to")
    fnuz = (TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2FNUZ)
    if isinstance(to, int):
        return to not in fnuz
    dtype = c.dtype(1)
    return c.lower.op == "CastLike" and dtype is not None and not dtype.endswith("fnuz")


def clip_bounds_agree(c: Crossing) -> bool:
    """Clip 1|6: both bounds are written, or the limits of float32 are the limits of the type."""
    bounds = [c.value("min"), c.value("max")]
    if all(bound is not None and bound is not UNRESOLVED for bound in bounds):
        return True
    c.accept_default("min", "max")
    return UNRESOLVED not in bounds and c.dtype(0) == "float32"


def clip_without_bounds(c: Crossing) -> bool:
    """Clip 6|11: no bounds, and the limits of float32, the defaults below 11, are the limits of the type."""
    if c.dtype(0) != "float32":
        return False
    if not c.upward:
        return not c.uses_input(1) and not c.uses_input(2)
    defaults = c.lower.attributes
    return all(c.value(name, defaults[name].default_value) == defaults[name].default_value for name in ("min", "max"))


def constant_as_tensor(c: Crossing) -> bool:
    """Constant 11|12, downward: numbers and strings are written as the tensor that they mean."""
    name = next((name for name in c.attributes if name.startswith("value_")), None)
    if name is None:
        return True
    if c.value(name) is UNRESOLVED:
        return False
    value = helper.get_attribute_value(c.attributes[name])
    elements = value if name.endswith("s") else [value]
    dims = [len(elements)] if name.endswith("s") else []
    c.drop(name, why="below opset 12 a constant is a tensor")
    held = helper.make_tensor("", DTYPE_NUMBERS[CONSTANT_DTYPES[name]], dims, elements)
    c.set("value", held, f"what {name} means")
    return True


def value_in(name: str, default: str, *allowed: str) -> Predicate:
    """A string attribute has one of the values that the other version knows."""

    def predicate(c: Crossing) -> bool:
        return c.value(name, default) in allowed

    return predicate


def grid_sample_mode(c: Crossing) -> bool:
    """GridSample 16|20: images only, and "linear" and "cubic" are spelt "bilinear" and "bicubic" below 20."""
    if not c.upward and c.rank(0) != 4:
        return False
    new_names = {"bilinear": "linear", "bicubic": "cubic", "nearest": "nearest"}
    names = new_names if c.upward else {new: old for old, new in new_names.items()}
    c.accept_default("mode")
    mode = c.value("mode")
    if mode is None:
        return True
    if mode not in names:
        return False
    if names[mode] != mode:
        c.set("mode", names[mode], "the mode was renamed at opset 20")
    return True


def transposed_padding_is_explicit(c: Crossing) -> bool:
    """ConvTranspose 1|11: the padding is given, not worked out from an output shape."""
    return c.value("auto_pad", "NOTSET") in ("NOTSET", "VALID") and not c.has("output_shape")


def roi_pixel_shift(c: Crossing) -> bool:
    """RoiAlign 10|16: average pooling without the shift by half a pixel, which is the default from 16 on."""
    if c.value("mode", "avg") != "avg":
        return False
    name = "coordinate_transformation_mode"
    if c.upward:
        c.set(name, "output_half_pixel", "RoiAlign-10 does not shift by half a pixel")
        return True
    if c.value(name) != "output_half_pixel":
        return False
    c.drop(name, why="RoiAlign-10 does not shift by half a pixel")
    return True


def resize_mode_survives(c: Crossing) -> bool:
    """Resize 11|13, upward: the coordinate mode still exists, and scales (not sizes) tell the output's size."""
    mode = c.value("coordinate_transformation_mode", "half_pixel")
    return mode not in (UNRESOLVED, "tf_half_pixel_for_nn") and not c.uses_input(3)


def resize_mode_existed(c: Crossing) -> bool:
    """Resize 18|19, downward: the coordinate mode is not the one that opset 19 added."""
    return c.value("coordinate_transformation_mode", "half_pixel") not in (UNRESOLVED, "half_pixel_symmetric")


def modulus_of_integers(c: Crossing) -> bool:
    """Mod 13|28, downward: below 28 the remainder of floats has the sign of the dividend, and needs fmod=1."""
    return c.value("fmod", 0) == 1 or c.dtype(0) in _INTEGERS
