"""Dropout: what tells training from inference, and the type of its mask."""

from __future__ import annotations

from splitgraph.conversion.nodes.crossing import Crossing
from splitgraph.conversion.operators.registry import changed, downward, exact, unchanged, upward
from splitgraph.conversion.writing.adapter_context import Inexact, Step
from splitgraph.deferred import np
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import DTYPE_NUMBERS

unchanged("Dropout", 6, 13, 22)
changed("Dropout", 7, "below it, is_test tells inference from training, and inference fills in no mask")


@exact("Dropout", 7)
def dropout_test_mode(c: Crossing) -> bool:
    """Dropout 6|7: in test mode and without mask it copies its input."""
    if c.uses_output(1) or (c.upward and not c.is_set("is_test")):
        return False
    if c.upward:
        c.drop("is_test", why="from opset 7 on inference is the mode of a Dropout without mask")
    else:
        c.set("is_test", 1, "below opset 7 Dropout is in training mode unless is_test is set")
    return True


@upward("Dropout", 7)
def training_as_input(step: Step) -> None:
    """Below 7 a node is in training unless is_test is set, and then gives no mask; from 12 on training_mode says so,
    and between them nothing does.
    """
    step.require_types()
    ratio, is_test = step.known_value("ratio", 0.5), step.known_value("is_test", 0)
    if _mask_is_read(step) and is_test:
        raise Inexact("in test mode it gives no mask, and here the mask is read")
    step.drop("is_test", "consumed_inputs", why=f"it does not exist {step.side}")
    if is_test:
        del step.outputs[1:]
        return
    if step.facts.target < 12:
        raise Inexact("from opset 7 to 11 nothing says that a node is in training", "go to opset 12 or above")
    step.dialect = 12
    boolean_mask(step)
    inputs = [step.inputs[0], step.like_data(ratio, "ratio"), step.constant(True, "training", np.bool_)]
    step.replace("Dropout", inputs)


changed("Dropout", 10, "the mask became boolean")


@exact("Dropout", 10)
def mask_unused(c: Crossing) -> bool:
    """Nobody reads Dropout's mask."""
    return not c.uses_output(1)


@upward("Dropout", 10)
def boolean_mask(step: Step) -> None:
    """From 10 on the mask is boolean, cast to the type of the data, which it was; those of the data are the same."""
    if not _mask_is_read(step):
        del step.outputs[1:]
        return
    number = DTYPE_NUMBERS[step.known_dtype(0)]
    old = step.redirect(1, "boolean_mask")
    step.emit_after("Cast", [step.outputs[1]], old, to=number)


@downward("Dropout", 10)
def typed_mask(step: Step) -> None:
    """Below 10 the mask is of the type of the data, 0 or 1; those of the data are the same."""
    if not _mask_is_read(step):
        del step.outputs[1:]
        return
    old = step.redirect(1, "typed_mask")
    step.emit_after("Cast", [step.outputs[1]], old, to=TensorProto.BOOL)


changed(
    "Dropout", 12, "the attribute ratio became an input, training_mode was added, and the mask of inference is all ones"
)


@exact("Dropout", 12)
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


@upward("Dropout", 12)
def ratio_as_input(step: Step) -> None:
    """The attribute ratio becomes a constant, which only training reads; without training_mode the data is copied. The
    mask that inference gives below 12 is not specified.
    """
    step.require_types()
    if _mask_is_read(step):
        raise Inexact("what mask a node gives that does not drop is specified only from it on, and here it is read")
    del step.outputs[1:]
    if step.known_value("ratio", 0.5) != 0.5 and step.input_type(0).dtype is not None:
        step.inputs.append(step.like_data(step.known_value("ratio"), "ratio"))
    step.drop("ratio", why=f"it is an input {step.side}")


@downward("Dropout", 12)
def copy_or_draw(step: Step) -> None:
    """Without training the data is copied, and every element of the mask is true. In training, elements stay where a
    uniform number from 0 to 1 is not below the ratio, multiplied by 1 / (1 - ratio).
    """
    step.require_types()
    training = np.zeros(1, bool) if not step.uses_input(2) else step.elements(2)
    if training is not None and not training.reshape(-1)[0]:
        _copy(step)
    else:
        _draw(step, training is None)


def _copy(step: Step) -> None:
    data = step.inputs[0]
    if not _mask_is_read(step):
        del step.outputs[1:]
        step.replace("Dropout", [data])
        return
    mask = step.outputs[1]
    del step.outputs[1:]
    step.emit_after("Expand", [step.constant(True, "true", np.bool_), step.emit("Shape", [data], "shape")], mask)
    step.replace("Dropout", [data])


def _draw(step: Step, is_optional: bool) -> None:
    """Drop at random, if training_mode says so in this run."""
    data, dtype = step.inputs[0], step.known_dtype(0)
    number = DTYPE_NUMBERS[dtype]
    seed = step.value("seed")
    if step.has("seed"):
        raise Inexact(f"the numbers that seed {seed} gives are not drawn again without it")
    ratio = step.inputs[1] if step.uses_input(1) else step.constant(0.5, "ratio", np.float32)
    ratio = step.emit("Cast", [ratio], "ratio_as_data", to=number)
    drawn = step.emit("RandomUniformLike", [data], "drawn", dtype=TensorProto.FLOAT)
    threshold = step.emit("Cast", [ratio], "threshold", to=TensorProto.FLOAT)
    kept = step.emit("Not", [step.emit("Less", [drawn, threshold], "is_dropped")], "is_kept")
    one = step.like_data(1, "one")
    scale = step.emit("Div", [one, step.emit("Sub", [one, ratio], "share_kept")], "scale")
    if is_optional:
        scale = step.emit("Where", [step.inputs[2], scale, one], "scale_in_training")
        kept = step.emit("Or", [kept, step.emit("Not", [step.inputs[2]], "is_inference")], "is_kept_in_training")
    if len(step.outputs) > 1 and step.outputs[1]:
        step.emit_after("Identity", [kept], step.outputs[1])
    del step.outputs[1:]
    scaled = step.emit("Mul", [data, scale], "scaled")
    step.replace("Where", [kept, scaled, step.like_data(0, "zero")])


def _mask_is_read(step: Step) -> bool:
    return step.uses_output(1) and step.is_read(step.outputs[1])
