"""Classical machine learning (domain ai.onnx.ml): encoders, linear models, support vector machines, trees, maps.

Where a table of rows is expected, [C] is one row. Sources: the operators' schemas, and onnxruntime's kernels where
those say nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from splitgraph.dim import DimLike, product
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.indices import integer_range, require_indices
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    dims_of,
    dims_of_rank,
    expect,
    int_attribute,
    ints_attribute,
    merged_dim,
    operator,
    tolerate,
)
from splitgraph.inference.rules.signatures import shaped, shapes
from splitgraph.model.onnx_proto import TensorProto
from splitgraph.model.value_type import DTYPE_NAMES, ValueType, tensor

DOMAIN = "ai.onnx.ml"

_COLUMNS = {"strings": "string", "int64s": "int64", "floats": "float32"}
_SWAPPED = {"string": "int64", "int64": "string"}
_CAST_TO = {"TO_FLOAT": "float32", "TO_INT64": "int64", "TO_STRING": "string"}


def _length(ctx: NodeContext, name: str) -> int:
    """Return the number of elements of a list attribute, 0 if it is absent."""
    return len(ctx.attribute(name) or ())


def _labels(ctx: NodeContext, strings: str, integers: str) -> tuple[str, int]:
    """Return the element type and number of labels; of two lists, the strings. Raise InvalidNode if there are no
    labels.
    """
    for name, dtype in ((strings, "string"), (integers, "int64")):
        count = _length(ctx, name)
        if count:
            return dtype, count
    raise InvalidNode(f"{strings} and {integers} are empty; one must be given")


def _exactly_one(ctx: NodeContext, first: str, second: str) -> int:
    """Return the number of elements of the list that is given. Raise InvalidNode unless exactly one of two is given."""
    counts = _length(ctx, first), _length(ctx, second)
    if bool(counts[0]) == bool(counts[1]):
        raise InvalidNode(f"exactly one of the attributes {first} and {second} must be given")
    return max(counts)


def _with_axes(ctx: NodeContext) -> Dims | None:
    """Return the dimensions of the input; None if they are unknown. Raise InvalidNode for a scalar."""
    dims = dims_of(ctx, 0)
    if dims == ():
        raise InvalidNode("the input is a scalar; it must have at least one axis")
    return dims


def _table(ctx: NodeContext) -> Dims | None:
    """Return the dimensions of the input; None if they are unknown. Raise InvalidNode unless it is [C] or [N, C]."""
    dims = dims_of(ctx, 0)
    if dims is not None and len(dims) not in (1, 2):
        raise InvalidNode(f"the input has rank {len(dims)}; it must be [C] or [N, C]")
    return dims


def _tree_rows(ctx: NodeContext) -> DimLike:
    """Return the number of rows for trees, which take no single row from version 3 on. Require a column for each
    feature that a branch reads. Raise InvalidNode for another rank.
    """
    dims = _table(ctx) if ctx.since_version < 3 else dims_of_rank(ctx, 0, 2)
    if dims is None:
        return ctx.fresh()
    features, modes = ints_attribute(ctx, "nodes_featureids") or (), ctx.attribute("nodes_modes")
    is_leaf = [mode == "LEAF" for mode in modes] if isinstance(modes, tuple) else [False] * len(features)
    read = [feature for feature, leaf in zip(features, is_leaf, strict=False) if not leaf]
    if read:
        fault = partial("a branch reads feature {}; the input has {} columns".format, max(read), dims[-1])
        expect(ctx, dims[-1], ">=", max(read) + 1, fault)
    return dims[0] if len(dims) == 2 else 1


def _rows(ctx: NodeContext) -> DimLike:
    """Return the number of rows of the table. Raise InvalidNode unless it is [C] or [N, C]."""
    dims = _table(ctx)
    if dims is None:
        return ctx.fresh()
    return dims[0] if len(dims) == 2 else 1


@operator("ArrayFeatureExtractor", domain=DOMAIN)
def array_feature_extractor(ctx: NodeContext) -> Sequence[ValueType]:
    """Take elements of the last axis by position; those of a vector become a row."""
    dtype, dims, indices = ctx.input(0).dtype, _with_axes(ctx), dims_of(ctx, 1)
    if dims is None:
        return [tensor(dtype, None)]
    count = None if indices is None else product(indices)
    if dims:
        first, _ = integer_range(ctx, 1) or (0, 0)
        if first < 0:
            tolerate(ctx, f"Y has the index {first}; it must be at least 0", run_by="the reference evaluator")
        require_indices(ctx, 1, dims, len(dims) - 1)
    return [tensor(dtype, (*(dims[:-1] or (1,)), count))]


# 0 or 1 for each element.
shaped("Binarizer", "X: ...", gives="0 ...", domain=DOMAIN)


@operator("Imputer", domain=DOMAIN)
def imputer(ctx: NodeContext) -> Sequence[ValueType]:
    """Replace one value in the input, by one value or by one for each feature."""
    dims, count = _with_axes(ctx), _exactly_one(ctx, "imputed_value_floats", "imputed_value_int64s")
    axis = _feature_axis(dims, count)
    size = None if dims is None or axis is None else dims[axis]
    if size is not None and not (size == count or ctx.require_if_possible(size, "==", count)):
        fault = f"{count} imputed values for {size} features; one is required for each, or one for all"
        tolerate(ctx, fault, "with the first value for all", run_by="onnxruntime")
    return [tensor(ctx.input(0).dtype, dims)]


@operator("Scaler", gives=("float32",), domain=DOMAIN)
def scaler(ctx: NodeContext) -> Sequence[ValueType]:
    """Scale each feature by an offset and a factor, as floats."""
    offsets, factors = _length(ctx, "offset"), _length(ctx, "scale")
    if offsets != factors:
        raise InvalidNode(f"offset has {offsets} elements and scale {factors}; the numbers must be equal")
    dims = _with_axes(ctx)
    axis = _feature_axis(dims, factors)
    if dims and axis is not None:
        fault = partial("{} factors for {} features; one is required for each, or one for all".format, factors)
        expect(ctx, dims[axis], "==", factors, partial(fault, dims[axis]))
    return [tensor("float32", dims)]


def _feature_axis(dims: Dims | None, count: int) -> int | None:
    """Return the axis of the features that have a number each; None if one number is for all, or if no axis is
    certain: beyond two axes, the second one is in onnxruntime, and the last one in the reference evaluator.
    """
    if not dims or count < 2:
        return None
    axes = {min(1, len(dims) - 1), len(dims) - 1}
    fitting = [axis for axis in axes if not isinstance(dims[axis], int) or dims[axis] == count]
    return fitting[0] if len(fitting) == 1 else None if fitting else min(axes)


@operator("Normalizer", gives=("float32",), domain=DOMAIN)
def normalizer(ctx: NodeContext) -> Sequence[ValueType]:
    """Divide each row by its norm, as floats."""
    return [tensor("float32", _table(ctx))]


@operator("CategoryMapper", gives=(None,), domain=DOMAIN)
def category_mapper(ctx: NodeContext) -> Sequence[ValueType]:
    """Map strings to integers, or integers to strings."""
    integers, strings = _length(ctx, "cats_int64s"), _length(ctx, "cats_strings")
    if not integers or integers != strings:
        raise InvalidNode(
            f"cats_int64s has {integers} elements and cats_strings {strings}; the numbers must be equal and at least 1"
        )
    return [tensor(_SWAPPED.get(ctx.input(0).dtype or ""), dims_of(ctx, 0))]


@operator("LabelEncoder", gives=(None,), domain=DOMAIN)
def label_encoder(ctx: NodeContext) -> Sequence[ValueType]:
    """Map each element to another value, in the type of the values; before version 2 strings to integers or back."""
    if ctx.since_version == 1:
        return [tensor(_SWAPPED.get(ctx.input(0).dtype or ""), dims_of(ctx, 0))]
    keys, values = _column(ctx, "keys"), _column(ctx, "values")
    given = ctx.input(0).dtype
    if keys is not None and given is not None and keys[0] != given:
        raise InvalidNode(f"the input is {given} and the keys are {keys[0]}; the types must be equal")
    if keys is not None and values is not None and keys[1] != values[1]:
        raise InvalidNode(f"{keys[1]} keys for {values[1]} values; one is required for each")
    default = ctx.attribute("default_tensor")
    if isinstance(default, TensorProto) and values is not None:
        dtype = DTYPE_NAMES.get(default.data_type)
        if dtype != values[0] or list(default.dims) != [1]:
            text = f"default_tensor is {dtype or 'unknown'}{list(default.dims)}"
            raise InvalidNode(f"{text}; it must be {values[0]}[1], as the values are {values[0]}")
    return [tensor(None if values is None else values[0], dims_of(ctx, 0))]


def _column(ctx: NodeContext, base: str) -> tuple[str | None, int] | None:
    """Return element type and number of the keys or values of a table; None if there are none. Raise InvalidNode if
    there are two lists of them, or from version 4 on none.
    """
    columns: list[tuple[str | None, int]] = [
        (dtype, count) for kind, dtype in _COLUMNS.items() if (count := _length(ctx, f"{base}_{kind}"))
    ]
    values = ctx.attribute(f"{base}_tensor")
    if isinstance(values, TensorProto):
        columns.append((DTYPE_NAMES.get(values.data_type), prod(values.dims)))
    if len(columns) > 1:
        raise InvalidNode(f"more than one of the attributes {base}_* is given; exactly one is required")
    if not columns and ctx.since_version >= 4:
        raise InvalidNode(f"none of the attributes {base}_* is given; exactly one is required")
    return columns[0] if columns else None


@operator("OneHotEncoder", gives=("float32",), domain=DOMAIN)
def one_hot_encoder(ctx: NodeContext) -> Sequence[ValueType]:
    """Replace each element by a number for each category."""
    return shapes(ctx, "X: ...", gives=f"float32 ... {_exactly_one(ctx, 'cats_int64s', 'cats_strings')}")


@operator("FeatureVectorizer", gives=("float32",), domain=DOMAIN)
def feature_vectorizer(ctx: NodeContext) -> Sequence[ValueType]:
    """Put the columns of all inputs side by side, as many of each as `inputdimensions` says."""
    sizes = ints_attribute(ctx, "inputdimensions")
    if sizes is not None and len(sizes) != ctx.input_count:
        raise InvalidNode(f"{len(sizes)} inputdimensions for {ctx.input_count} inputs; one is required for each")
    rows: DimLike | None = None
    for index in range(ctx.input_count):
        dims = dims_of(ctx, index)
        if dims == ():
            raise InvalidNode(f"input {index} is a scalar; it must be [C] or [N, C]")
        if dims is None:
            continue
        height = dims[0] if len(dims) > 1 else 1
        rows = merged_dim(ctx, rows, height, "the numbers of rows")
    return [tensor("float32", (rows, None if sizes is None else sum(sizes)))]


@operator("LinearRegressor", gives=("float32",), domain=DOMAIN)
def linear_regressor(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute a number for each row and target."""
    targets = _targets(ctx, "targets", 1)
    _check_columns(ctx, _length(ctx, "coefficients"), targets)
    return [tensor("float32", (_rows(ctx), targets))]


def _check_columns(ctx: NodeContext, weights: int, parts: int | None) -> None:
    """Require a column of the input for each weight of a part. Weights that no columns fit are left alone, and so is a
    number of elements of a vector, which onnx's own tests take for rows.
    """
    dims = dims_of(ctx, 0)
    if not dims or not parts or not weights or weights % parts or (len(dims) == 1 and isinstance(dims[0], int)):
        return
    fault = partial("the input has {} columns; the attributes are for {}".format, dims[-1], weights // parts)
    expect(ctx, dims[-1], "==", weights // parts, fault)


def _targets(ctx: NodeContext, name: str, default: int | None) -> int | None:
    if not ctx.has_attribute(name):
        return default
    count = int_attribute(ctx, name, 1)
    if count < 1:
        raise InvalidNode(f"attribute {name!r} is {count}; it must be at least 1")
    return count


@operator("LinearClassifier", gives=(None, "float32"), domain=DOMAIN)
def linear_classifier(ctx: NodeContext) -> Sequence[ValueType]:
    """Find the label of each row, and its scores: one for each intercept. With one intercept and two labels there are
    two scores.
    """
    strings = _length(ctx, "classlabels_strings")
    labels, scores = strings or _length(ctx, "classlabels_ints"), _length(ctx, "intercepts")
    if strings and _length(ctx, "classlabels_ints"):
        raise InvalidNode("only one of the attributes classlabels_strings and classlabels_ints may be given")
    if scores and _length(ctx, "coefficients") % scores:
        given = _length(ctx, "coefficients")
        raise InvalidNode(f"{given} coefficients for {scores} intercepts; there must be as many for each")
    _check_columns(ctx, _length(ctx, "coefficients"), scores)
    if scores == 1 and labels == 2:
        scores = 2
    rows = _rows(ctx)
    return [tensor("string" if strings else "int64", (rows,)), tensor("float32", (rows, scores or None))]


@operator("SVMClassifier", gives=(None, "float32"), domain=DOMAIN)
def svm_classifier(ctx: NodeContext) -> Sequence[ValueType]:
    """Find the label of each row, and its scores: one for each class, or for each pair of classes if there are support
    vectors and no probabilities.
    """
    dtype, classes = _labels(ctx, "classlabels_strings", "classlabels_ints")
    scores, rows = classes, _rows(ctx)
    vectors = sum(ints_attribute(ctx, "vectors_per_class") or ())
    _check_columns(ctx, _length(ctx, "support_vectors" if vectors else "coefficients"), vectors or classes)
    if vectors > 0 and not _length(ctx, "prob_a"):
        scores = classes * (classes - 1) // 2 if classes > 2 else 2
    return [tensor(dtype, (rows,)), tensor("float32", (rows, scores))]


@operator("SVMRegressor", gives=("float32",), domain=DOMAIN)
def svm_regressor(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute a number for each row."""
    vectors = int_attribute(ctx, "n_supports", 0)
    _check_columns(ctx, _length(ctx, "support_vectors" if vectors else "coefficients"), vectors or 1)
    return [tensor("float32", (_rows(ctx), 1))]


@operator("TreeEnsembleClassifier", gives=(None, "float32"), domain=DOMAIN)
def tree_ensemble_classifier(ctx: NodeContext) -> Sequence[ValueType]:
    """Find the label of each row, and a score for each label."""
    dtype, classes = _labels(ctx, "classlabels_strings", "classlabels_int64s")
    _check_lists(ctx, "nodes_", "class_")
    rows = _tree_rows(ctx)
    return [tensor(dtype, (rows,)), tensor("float32", (rows, classes))]


@operator("TreeEnsembleRegressor", gives=("float32",), domain=DOMAIN)
def tree_ensemble_regressor(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute a number for each row and target."""
    _check_lists(ctx, "nodes_", "target_")
    return [tensor("float32", (_tree_rows(ctx), _targets(ctx, "n_targets", None)))]


# What trees may leave out, or give for some nodes only.
_OPTIONAL_LISTS = frozenset({"nodes_hitrates", "nodes_hitrates_as_tensor", "nodes_missing_value_tracks_true"})


def _check_lists(ctx: NodeContext, *prefixes: str) -> None:
    """Raise InvalidNode when the lists with one of these prefixes are not of one length, but for empty ones."""
    for prefix in prefixes:
        names = [name for name in ctx.attribute_names() if name.startswith(prefix) and name not in _OPTIONAL_LISTS]
        lists = {name: ctx.attribute(name) for name in names}
        lengths = {
            name: prod(value.dims) if isinstance(value, TensorProto) else len(value or ())
            for name, value in lists.items()
        }
        if len({length for length in lengths.values() if length}) > 1:
            listed = ", ".join(f"{name} has {length}" for name, length in sorted(lengths.items()))
            raise InvalidNode(f"attributes must have equal lengths: {listed}")


@operator("TreeEnsemble", domain=DOMAIN)
def tree_ensemble(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute a number for each row and target. Input, thresholds, weights and output have one type."""
    _check_tree(ctx)
    return [tensor(ctx.input(0).dtype, (_tree_rows(ctx), _targets(ctx, "n_targets", None)))]


def _check_tree(ctx: NodeContext) -> None:
    """Raise InvalidNode when the attributes of nodes, or those of leaves, are not of one length and of their type."""
    given = ctx.input(0).dtype
    lengths: dict[str, dict[str, int]] = {"nodes_": {}, "leaf_": {}}
    for name in ctx.attribute_names():
        value = ctx.attribute(name)
        if value is None:
            continue
        if isinstance(value, TensorProto):
            dtype = DTYPE_NAMES.get(value.data_type)
            wanted = "uint8" if name == "nodes_modes" else given
            if wanted is not None and dtype != wanted:
                raise InvalidNode(f"attribute {name!r} has the type {dtype}; it must be {wanted}")
        for prefix, counts in lengths.items():
            if name.startswith(prefix):
                counts[name] = prod(value.dims) if isinstance(value, TensorProto) else len(value)
    for counts in lengths.values():
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{name} has {length}" for name, length in sorted(counts.items()))
            raise InvalidNode(f"attributes must have equal lengths: {listed}")


@operator("CastMap", gives=(None,), domain=DOMAIN)
def cast_map(ctx: NodeContext) -> Sequence[ValueType]:
    """Return the values of a map. Their rank is not certain: the specification says 1, and onnxruntime gives 2."""
    _check_map(ctx)
    cast_to = ctx.attribute("cast_to", "TO_FLOAT")
    if cast_to not in _CAST_TO:
        raise InvalidNode(f"cast_to is {cast_to!r}; it must be one of {', '.join(_CAST_TO)}")
    return [tensor(_CAST_TO[cast_to], None)]


@operator("DictVectorizer", gives=(None,), domain=DOMAIN)
def dict_vectorizer(ctx: NodeContext) -> Sequence[ValueType]:
    """Make a row with the value of each word of the vocabulary."""
    _check_map(ctx)
    _, words = _labels(ctx, "string_vocabulary", "int64_vocabulary")
    values = ctx.input(0).element
    return [tensor(None if values is None else values.dtype, (1, words))]


def _check_map(ctx: NodeContext) -> None:
    if ctx.input(0).kind not in ("map", "unknown"):
        raise InvalidNode(f"input 0 is a {ctx.input(0).kind}, not a map")


@operator("ZipMap", gives=(), domain=DOMAIN)
def zip_map(ctx: NodeContext) -> Sequence[ValueType]:
    """Map labels to the numbers of each row."""
    dims = _table(ctx)
    dtype, labels = _labels(ctx, "classlabels_strings", "classlabels_int64s")
    _exactly_one(ctx, "classlabels_strings", "classlabels_int64s")
    if dims is not None:
        merged_dim(ctx, dims[-1], labels, "the numbers of columns and of labels")
    return [ValueType("sequence", None, None, ValueType("map", dtype, None, tensor("float32", None)))]
