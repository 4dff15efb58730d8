"""Dropout: is_test disappeared (7), the mask became boolean (10), and ratio and training_mode became inputs (12)."""

from __future__ import annotations

from splitgraph.conversion.operators.registry import changed, downward, edited, exact, unchanged, upward
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.deferred import np
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import DTYPE_NUMBERS

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
    """Sets the input training_mode, which exists from 12 on. Below 7, a node is in training unless is_test is set.
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
    if node.target < 12:
        raise Inexact("from opset 7 to 11 nothing says that a node is in training", "go to opset 12 or above")
    node.dialect = 12
    cast_boolean_mask(node)
    inputs = [node.inputs[0], node.like_data(ratio, "ratio"), node.constant(True, "training", np.bool_)]
    node.replace("Dropout", inputs)


def _mask_is_read(node: NodeAtBoundary) -> bool:
    """True when anything reads the mask."""
    return node.uses_output(1) and node.is_read(node.outputs[1])


changed("Dropout", 10, "the mask became boolean")


@exact("Dropout", 10)
def has_no_mask(node: NodeAtBoundary) -> bool:
    """True when the node has no mask."""
    return not node.uses_output(1)


@upward("Dropout", 10)
def cast_boolean_mask(node: NodeAtBoundary) -> None:
    """Casts the mask to the type of the data. From 10 on the mask is boolean."""
    if not _mask_is_read(node):
        del node.outputs[1:]
        return
    number = DTYPE_NUMBERS[node.known_dtype(0)]
    old = node.redirect(1, "boolean_mask")
    node.write_after("Cast", [node.outputs[1]], old, to=number)


@downward("Dropout", 10)
def cast_mask_to_boolean(node: NodeAtBoundary) -> None:
    """Casts the mask to boolean. Below 10 the mask has the type of the data and holds 0 and 1."""
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
    """Turns the attribute ratio into a constant, which only training reads. Without training_mode the node copies the
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
    """Copies the data without training, with a mask that is all true. In training, compares uniform numbers from 0 to 1
    with the ratio, and multiplies the elements that stay by 1 / (1 - ratio).
    """
    node.require_types()
    training = np.zeros(1, bool) if not node.uses_input(2) else node.elements(2)
    if training is not None and not training.reshape(-1)[0]:
        _copy(node)
    else:
        _draw(node, training is None)


def _copy(node: NodeAtBoundary) -> None:
    """Copies the data."""
    data = node.inputs[0]
    if not _mask_is_read(node):
        del node.outputs[1:]
        node.replace("Dropout", [data])
        return
    mask = node.outputs[1]
    del node.outputs[1:]
    node.write_after("Expand", [node.constant(True, "true", np.bool_), node.write("Shape", [data], "shape")], mask)
    node.replace("Dropout", [data])


def _draw(node: NodeAtBoundary, is_optional: bool) -> None:
    """Drops elements at random. is_optional: training_mode decides at run time."""
    data, dtype = node.inputs[0], node.known_dtype(0)
    number = DTYPE_NUMBERS[dtype]
    seed = node.value("seed")
    if node.has("seed"):
        raise Inexact(f"the numbers that seed {seed} gives are not drawn again without it")
    ratio = node.inputs[1] if node.uses_input(1) else node.constant(0.5, "ratio", np.float32)
    ratio = node.write("Cast", [ratio], "ratio_as_data", to=number)
    drawn = node.write("RandomUniformLike", [data], "drawn", dtype=TensorProto.FLOAT)
    threshold = node.write("Cast", [ratio], "threshold", to=TensorProto.FLOAT)
    kept = node.write("Not", [node.write("Less", [drawn, threshold], "is_dropped")], "is_kept")
    one = node.like_data(1, "one")
    scale = node.write("Div", [one, node.write("Sub", [one, ratio], "share_kept")], "scale")
    if is_optional:
        scale = node.write("Where", [node.inputs[2], scale, one], "scale_in_training")
        kept = node.write("Or", [kept, node.write("Not", [node.inputs[2]], "is_inference")], "is_kept_in_training")
    if len(node.outputs) > 1 and node.outputs[1]:
        node.write_after("Identity", [kept], node.outputs[1])
    del node.outputs[1:]
    scaled = node.write("Mul", [data, scale], "scaled")
    node.replace("Where", [kept, scaled, node.like_data(0, "zero")])
