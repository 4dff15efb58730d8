"""Standard forms of the operators that prepare features: what onnxruntime's kernels compute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.machine_learning.tables import (
    looked_up,
    position_of,
    read_classes,
    read_table,
)
from splitgraph.conversion.operators.standard import standard, without_form
from splitgraph.model.deferred import np
from splitgraph.model.scopes import MACHINE_LEARNING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

_NUMBERS = ("float32", "float64", "int64", "int32")

_MAPS = "it gives maps, which ai.onnx does not have; convert --drop-zipmap (Python: drop_zipmap) gives their numbers"

without_form("ZipMap", _MAPS, domain=MACHINE_LEARNING)
without_form("CastMap DictVectorizer", "it takes a map, which ai.onnx does not have", domain=MACHINE_LEARNING)
without_form("CategoryMapper", "it maps strings, which few runtimes have", domain=MACHINE_LEARNING)


def numeric_input(node: NodeAtBoundary, index: int = 0) -> str:
    """Return the element type of an input of numbers. Raises Inexact for strings and for what has no kernel."""
    dtype = node.known_dtype(index)
    if dtype not in _NUMBERS:
        raise Inexact(f"its input is {dtype}, for which it has no form")
    return dtype


def floats_of(node: NodeAtBoundary, name: str) -> Array:
    """Return the numbers of an attribute."""
    return np.array(node.known_value(name, ()), np.float32)


def table_of(node: NodeAtBoundary, f: Formula, index: int = 0) -> Term:
    """Return an input of rows [N, C]; a vector is one row. Raises Inexact for another rank."""
    rank = node.known_rank(index)
    if rank not in (1, 2):
        raise Inexact(f"its input has {rank} dimensions, and rows have one or two")
    return f.input(index).unsqueezed(0) if rank == 1 else f.input(index)


def _of_features(node: NodeAtBoundary, numbers: Array) -> Array:
    """Return one number for all features, or one for each. Raises Inexact where it is not certain which axis has the
    features: beyond two axes, kernels and the specification disagree.
    """
    if len(numbers) > 1 and node.known_rank() > 2:
        raise Inexact("it has a number for each feature, and its input has more than two dimensions")
    if not len(numbers):
        raise Inexact("its attributes are empty")
    return numbers if len(numbers) > 1 else numbers[0]


@standard("Scaler", domain=MACHINE_LEARNING)
def scaler(node: NodeAtBoundary) -> None:
    """(x - offset) * scale, in float64 for float64; the result is float32."""
    f, given = Formula(node), numeric_input(node)
    dtype = "float64" if given == "float64" else "float32"
    offset, scale = (f.number(_of_features(node, floats_of(node, name)), dtype) for name in ("offset", "scale"))
    f.give(((f.input(0).cast(dtype) - offset) * scale).cast("float32"))


@standard("Normalizer", domain=MACHINE_LEARNING, norm="MAX")
def normalizer(node: NodeAtBoundary) -> None:
    """Divide each row by its norm; MAX is the greatest number with its sign. A row of norm 0 stays as it is."""
    f, given = Formula(node), numeric_input(node)
    dtype, norm = "float64" if given == "float64" else "float32", node.known_value_or_default("norm")
    data, rank = f.input(0).cast(dtype), node.known_rank()
    if rank not in (1, 2):
        raise Inexact(f"its input has {rank} dimensions, and rows have one or two")
    axes = [rank - 1]
    if norm == "MAX":
        size = data.reduced("ReduceMax", axes, keepdims=True)
    elif norm in ("L1", "L2"):
        size = (abs(data) if norm == "L1" else data * data).reduced("ReduceSum", axes, keepdims=True)
        size = size.sqrt() if norm == "L2" else size
    else:
        raise Inexact(f"its norm is {norm!r}, which does not exist")
    f.give((data / f.where(size.equals(0.0), 1.0, size)).cast("float32"))


@standard("Binarizer", domain=MACHINE_LEARNING, threshold=0.0)
def binarizer(node: NodeAtBoundary) -> None:
    """1 where the number is greater than the threshold, 0 elsewhere. The kernel refuses NaN."""
    f, given = Formula(node), numeric_input(node)
    if given != "float32":
        raise Inexact(f"its input is {given}, for which onnxruntime has no kernel")
    f.give((f.input(0) > node.known_value_or_default("threshold")).cast(given))


@standard("Imputer", domain=MACHINE_LEARNING, replaced_value_float=0.0, replaced_value_int64=0)
def imputer(node: NodeAtBoundary) -> None:
    """Put another number in place of one number, or of NaN."""
    f, given = Formula(node), numeric_input(node)
    if given not in ("float32", "int64"):
        raise Inexact(f"its input is {given}, for which onnxruntime has no kernel")
    kind = "float" if given == "float32" else "int64"
    values = np.array(node.known_value(f"imputed_value_{kind}s", ()), given)
    replaced = node.known_value_or_default(f"replaced_value_{kind}")
    data = f.input(0)
    is_missing = f.apply("IsNaN", data, gives="bool") if np.isnan(replaced) else data.equals(replaced)
    f.give(f.where(is_missing, f.number(_of_features(node, values), given), data))


@standard("OneHotEncoder", domain=MACHINE_LEARNING, zeros=1)
def one_hot_encoder(node: NodeAtBoundary) -> None:
    """1 for the category of each element, 0 for the others. Numbers are cut to integers. What is no category has zeros;
    without `zeros`, the kernel fails there.
    """
    f, categories = Formula(node), node.known_value("cats_int64s", ())
    numeric_input(node)
    if not categories or len(set(categories)) < len(categories):
        raise Inexact("it has no integer categories, or one twice")
    f.give(f.input(0).cast("int64").unsqueezed(-1).equals(f.number(list(categories))).cast("float32"))


@standard("ArrayFeatureExtractor", domain=MACHINE_LEARNING)
def array_feature_extractor(node: NodeAtBoundary) -> None:
    """Take elements of the last axis by their positions; a vector is one row."""
    f, rank = Formula(node), node.known_rank()
    if not rank:
        raise Inexact("its input is a scalar")
    data = f.input(0).unsqueezed(0) if rank == 1 else f.input(0)
    places = f.given(1, "int64")
    f.give(data.take(places.cast("int64").reshape(-1), max(1, rank - 1)))


@standard("FeatureVectorizer", domain=MACHINE_LEARNING)
def feature_vectorizer(node: NodeAtBoundary) -> None:
    """Put columns side by side, as many of each input as `inputdimensions` says; what is missing is 0."""
    f, counts = Formula(node), node.known_value("inputdimensions", ())
    if len(counts) != len(node.inputs) or not all(node.inputs):
        raise Inexact("it has another number of inputs than inputdimensions")
    parts = []
    for index, count in enumerate(counts):
        numeric_input(node, index)
        shape = node.input_type(index).shape
        data = table_of(node, f, index).cast("float32")
        if shape is not None and shape[-1] != count:
            data = f.apply("Pad", data, f.number([0, 0, 0, count])).sliced(0, count, 1)
        parts.append(data)
    f.give(f.joined(parts, 1))


@standard("LabelEncoder", domain=MACHINE_LEARNING)
def label_encoder(node: NodeAtBoundary) -> None:
    """Look numbers up in a table of numbers."""
    f = Formula(node)
    table = read_classes(node) if node.from_opset < 2 else read_table(node, node.from_opset)
    if "string" in (table.key_dtype, table.value_dtype):
        raise Inexact("it maps strings, which few runtimes have")
    f.give(looked_up(f, position_of(f, f.input(0, table.key_dtype), table), table))
