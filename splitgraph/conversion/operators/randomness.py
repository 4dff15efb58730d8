"""Dropout: is_test disappeared (7), the mask became boolean (10), and ratio and training_mode became inputs (12).

Bernoulli: written with RandomUniformLike below its first opset, and for bfloat16 below 22; the other random operators
do not change.
"""

from __future__ import annotations

from splitgraph.conversion.notation.formula import Formula, wide_float
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.registry import changed, downward, edited, exact, unchanged, upward
from splitgraph.model.deferred import np
from splitgraph.model.onnx_proto import TensorProto
from splitgraph.model.value_type import DTYPE_NAMES, DTYPE_NUMBERS

# Dropout ------------------------------------------------------------------------------------------------------------

unchanged("Dropout", 6, 13, 22)
changed("Dropout", 7, "below it, is_test tells inference from training, and inference fills in no mask")


@edited("Dropout", 7)
def copies_its_input(node: NodeAtBoundary) -> None:
    """Keep a node when it is in test mode and has no mask: it copies its input. Sets or drops is_test."""
    if node.uses_output(1) or (node.upward and not node.is_set("is_test")):
        raise Inexact
    if node.upward:
        node.drop("is_test", why="from opset 7 on inference is the mode of a Dropout without mask")
    else:
        node.set("is_test", 1, "below opset 7 Dropout is in training mode unless is_test is set")


@upward("Dropout", 7)
def make_training_an_input(node: NodeAtBoundary) -> None:
    """Set the input training_mode, which exists from 12 on. Below 7, a node is in training unless is_test is set.
    Between 7 and 11, no attribute tells.
    """
    node.require_types()
    ratio, is_test = node.known_value_or_default("ratio"), node.known_value_or_default("is_test")
    if _mask_is_read(node) and is_test:
        raise Inexact("in test mode it gives no mask, and here the mask is read")
    node.drop("is_test", "consumed_inputs", why=f"it does not exist {node.side}")
    if is_test:
        del node.outputs[1:]
        return
    if node.to_opset < 12:
        raise Inexact("from opset 7 to 11 nothing says that a node is in training", "go to opset 12 or above")
    node.dialect = 12
    cast_boolean_mask(node)
    inputs = [node.inputs[0], node.like_data(ratio, "ratio"), node.constant(True, "training", np.bool_)]
    node.replace("Dropout", inputs)


def _mask_is_read(node: NodeAtBoundary) -> bool:
    """Return True when anything reads the mask."""
    return node.uses_output(1) and node.is_read(node.outputs[1])


changed("Dropout", 10, "the mask became boolean")


@exact("Dropout", 10)
def has_no_mask(node: NodeAtBoundary) -> bool:
    """Return True when the node has no mask."""
    return not node.uses_output(1)


@upward("Dropout", 10)
def cast_boolean_mask(node: NodeAtBoundary) -> None:
    """Cast the mask to the type of the data. From 10 on the mask is boolean."""
    if not _mask_is_read(node):
        del node.outputs[1:]
        return
    number = DTYPE_NUMBERS[node.known_dtype(0)]
    old = node.redirect(1, "boolean_mask")
    node.write_after("Cast", [node.outputs[1]], old, to=number)


@downward("Dropout", 10)
def cast_mask_to_boolean(node: NodeAtBoundary) -> None:
    """Cast the mask to boolean. Below 10 the mask has the type of the data and holds 0 and 1."""
    if not _mask_is_read(node):
        del node.outputs[1:]
        return
    old = node.redirect(1, "typed_mask")
    node.write_after("Cast", [node.outputs[1]], old, to=TensorProto.BOOL)


changed(
    "Dropout", 12, "the attribute ratio became an input, training_mode was added, and the mask of inference is all ones"
)


@edited("Dropout", 12)
def ratio_is_the_default(node: NodeAtBoundary) -> None:
    """Keep a node when it has no mask and its ratio is the default, which is the same on both sides."""
    if node.uses_output(1):
        raise Inexact
    if node.upward:
        if not (bool(node.value("ratio", 0.5) == 0.5)):
            raise Inexact
        return
    if node.uses_input(1) or node.uses_input(2):
        raise Inexact
    node.drop("seed", why="without training_mode nothing is drawn at random")


@upward("Dropout", 12)
def make_ratio_an_input(node: NodeAtBoundary) -> None:
    """Turn the attribute ratio into a constant, which only training reads. Without training_mode the node copies the
    data. Below 12 the document does not say what mask inference gives.
    """
    node.require_types()
    if _mask_is_read(node):
        raise Inexact("what mask a node gives that does not drop is specified only from it on, and here it is read")
    del node.outputs[1:]
    if node.known_value_or_default("ratio") != 0.5 and node.input_type(0).dtype is not None:
        node.inputs.append(node.like_data(node.known_value("ratio"), "ratio"))
    node.drop("ratio", why=f"it is an input {node.side}")


@downward("Dropout", 12)
def copy_or_draw(node: NodeAtBoundary) -> None:
    """Copy the data without training, with a mask that is all true. In training, compares uniform numbers from 0 to 1
    with the ratio, and multiplies the elements that stay by 1 / (1 - ratio).
    """
    node.require_types()
    training = np.zeros(1, bool) if not node.uses_input(2) else node.elements(2)
    if training is not None and not training.reshape(-1)[0]:
        _copy(node)
    else:
        _draw(node, training is None)


def _copy(node: NodeAtBoundary) -> None:
    """Copy the data."""
    data = node.inputs[0]
    if not _mask_is_read(node):
        del node.outputs[1:]
        node.replace("Dropout", [data])
        return
    f = Formula(node)
    f.give(f.apply("Dropout", f.input(0)), f.number(True, "bool").expanded(f.shape(data)))


def _draw(node: NodeAtBoundary, is_optional: bool) -> None:
    """Drop elements at random. is_optional: training_mode decides at run time."""
    dtype, f = node.known_dtype(0), Formula(node)
    if node.has("seed"):
        raise Inexact(f"the numbers that seed {node.value('seed')} gives are not drawn again without it")
    ratio = (f.input(1) if node.uses_input(1) else f.number(0.5, "float32")).cast(dtype)
    drawn = f.apply("RandomUniformLike", f.input(0), gives="float32", dtype=TensorProto.FLOAT)
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
def draw_bernoulli_from_uniform(node: NodeAtBoundary) -> None:
    """Give 1 where a number from [0, 1) is less than the probability. The distribution is exact; the document leaves
    open which numbers a seed gives. The function body compares the other way round.
    """
    dtype, f = node.known_dtype(), Formula(node)
    wide, seed = wide_float(dtype), node.known_value("seed")
    drawn = f.apply("RandomUniformLike", f.input(0), gives=wide, dtype=DTYPE_NUMBERS[wide], seed=seed)
    chances = f.input(0).cast(wide)
    f.give((drawn < chances).cast(DTYPE_NAMES[node.known_value("dtype", DTYPE_NUMBERS[dtype])]))
