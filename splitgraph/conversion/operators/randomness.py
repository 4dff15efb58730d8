"""Dropout: is_test disappeared (7), the mask became boolean (10), and ratio and training_mode became inputs (12).

Bernoulli: written with RandomUniformLike below its first opset, and for bfloat16 below 22; the other random operators
do not change.
"""

from __future__ import annotations

from splitgraph.conversion.nodes.crossing import Crossing
from splitgraph.conversion.operators.registry import changed, downward, exact, unchanged, upward
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact
from splitgraph.conversion.writing.formula import Formula, wide_float
from splitgraph.deferred import np
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import DTYPE_NAMES, DTYPE_NUMBERS

# Dropout ------------------------------------------------------------------------------------------------------------

unchanged("Dropout", 6, 13, 22)
changed("Dropout", 7, "below it, is_test tells inference from training, and inference fills in no mask")


@exact("Dropout", 7)
def copies_its_input(crossing: Crossing) -> bool:
    """True when the node is in test mode and has no mask: it copies its input. Sets or drops is_test."""
    if crossing.uses_output(1) or (crossing.upward and not crossing.is_set("is_test")):
        return False
    if crossing.upward:
        crossing.drop("is_test", why="from opset 7 on inference is the mode of a Dropout without mask")
    else:
        crossing.set("is_test", 1, "below opset 7 Dropout is in training mode unless is_test is set")
    return True


@upward("Dropout", 7)
def make_training_an_input(context: AdapterContext) -> None:
    """Sets the input training_mode, which exists from 12 on. Below 7, a node is in training unless is_test is set.
    Between 7 and 11, no attribute tells.
    """
    context.require_types()
    ratio, is_test = context.known_value_or_default("ratio"), context.known_value_or_default("is_test")
    if _mask_is_read(context) and is_test:
        raise Inexact("in test mode it gives no mask, and here the mask is read")
    context.drop("is_test", "consumed_inputs", why=f"it does not exist {context.side}")
    if is_test:
        del context.outputs[1:]
        return
    if context.facts.target < 12:
        raise Inexact("from opset 7 to 11 nothing says that a node is in training", "go to opset 12 or above")
    context.dialect = 12
    cast_boolean_mask(context)
    inputs = [context.inputs[0], context.like_data(ratio, "ratio"), context.constant(True, "training", np.bool_)]
    context.replace("Dropout", inputs)


def _mask_is_read(context: AdapterContext) -> bool:
    """True when anything reads the mask."""
    return context.uses_output(1) and context.is_read(context.outputs[1])


changed("Dropout", 10, "the mask became boolean")


@exact("Dropout", 10)
def has_no_mask(crossing: Crossing) -> bool:
    """True when the node has no mask."""
    return not crossing.uses_output(1)


@upward("Dropout", 10)
def cast_boolean_mask(context: AdapterContext) -> None:
    """Casts the mask to the type of the data. From 10 on the mask is boolean."""
    if not _mask_is_read(context):
        del context.outputs[1:]
        return
    number = DTYPE_NUMBERS[context.known_dtype(0)]
    old = context.redirect(1, "boolean_mask")
    context.emit_after("Cast", [context.outputs[1]], old, to=number)


@downward("Dropout", 10)
def cast_mask_to_boolean(context: AdapterContext) -> None:
    """Casts the mask to boolean. Below 10 the mask has the type of the data and holds 0 and 1."""
    if not _mask_is_read(context):
        del context.outputs[1:]
        return
    old = context.redirect(1, "typed_mask")
    context.emit_after("Cast", [context.outputs[1]], old, to=TensorProto.BOOL)


changed(
    "Dropout", 12, "the attribute ratio became an input, training_mode was added, and the mask of inference is all ones"
)


@exact("Dropout", 12)
def ratio_is_the_default(crossing: Crossing) -> bool:
    """True when the node has no mask and its ratio is the default, which is the same on both sides."""
    if crossing.uses_output(1):
        return False
    if crossing.upward:
        return bool(crossing.value("ratio", 0.5) == 0.5)
    if crossing.uses_input(1) or crossing.uses_input(2):
        return False
    crossing.drop("seed", why="without training_mode nothing is drawn at random")
    return True


@upward("Dropout", 12)
def make_ratio_an_input(context: AdapterContext) -> None:
    """Turns the attribute ratio into a constant, which only training reads. Without training_mode the node copies the
    data. Below 12 the document does not say what mask inference gives.
    """
    context.require_types()
    if _mask_is_read(context):
        raise Inexact("what mask a node gives that does not drop is specified only from it on, and here it is read")
    del context.outputs[1:]
    if context.known_value_or_default("ratio") != 0.5 and context.input_type(0).dtype is not None:
        context.inputs.append(context.like_data(context.known_value("ratio"), "ratio"))
    context.drop("ratio", why=f"it is an input {context.side}")


@downward("Dropout", 12)
def copy_or_draw(context: AdapterContext) -> None:
    """Copies the data without training, with a mask that is all true. In training, compares uniform numbers from 0 to 1
    with the ratio, and multiplies the elements that stay by 1 / (1 - ratio).
    """
    context.require_types()
    training = np.zeros(1, bool) if not context.uses_input(2) else context.elements(2)
    if training is not None and not training.reshape(-1)[0]:
        _copy(context)
    else:
        _draw(context, training is None)


def _copy(context: AdapterContext) -> None:
    """Copies the data."""
    data = context.inputs[0]
    if not _mask_is_read(context):
        del context.outputs[1:]
        context.replace("Dropout", [data])
        return
    f = Formula(context)
    f.give(f.node("Dropout", f.input(0)), f.number(True, "bool").expanded(f.shape(data)))


def _draw(context: AdapterContext, is_optional: bool) -> None:
    """Drops elements at random. is_optional: training_mode decides at run time."""
    dtype, f = context.known_dtype(0), Formula(context)
    if context.has("seed"):
        raise Inexact(f"the numbers that seed {context.value('seed')} gives are not drawn again without it")
    ratio = (f.input(1) if context.uses_input(1) else f.number(0.5, "float32")).cast(dtype)
    drawn = f.node("RandomUniformLike", f.input(0), gives="float32", dtype=TensorProto.FLOAT)
    kept = ~(drawn < ratio.cast("float32"))
    scale = 1 / (1 - ratio)
    if is_optional:
        training = f.input(2, "bool")
        scale, kept = f.where(training, scale, 1), kept | ~training
    f.give(f.where(kept, f.input(0) * scale, 0), kept)


# Bernoulli and other random operators -------------------------------------------------------------------------------

unchanged("Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike", 22)
unchanged("Bernoulli", 22)


@downward("Bernoulli", 15, 22)
def draw_bernoulli_from_uniform(context: AdapterContext) -> None:
    """Gives 1 where a number from [0, 1) is less than the probability. The distribution is exact; the document leaves
    open which numbers a seed gives. The function body compares the other way round.
    """
    dtype, f = context.known_dtype(), Formula(context)
    wide, seed = wide_float(dtype), context.known_value("seed")
    drawn = f.node("RandomUniformLike", f.input(0), gives=wide, dtype=DTYPE_NUMBERS[wide], seed=seed)
    chances = f.input(0).cast(wide)
    f.give((drawn < chances).cast(DTYPE_NAMES[context.known_value("dtype", DTYPE_NUMBERS[dtype])]))
