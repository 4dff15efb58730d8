"""The keywords of the functions of the API, for type checkers: each of them once, in a group that functions share.

A type checker reads no records of `options`, and sees other types than they have: `accept` is a list of texts for a
caller. A test compares the keywords with the signatures and the records. Nothing imports this module at run time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from splitgraph.dim import Dim
from splitgraph.options import (
    Engine,
    ExternalData,
    Form,
    GivenInputs,
    InputShapes,
    IRVersion,
    Opset,
    StrPath,
)

# The groups have no keyword in common: type checkers allow no more.


class _Leeway(TypedDict, total=False):
    accept: Sequence[str]
    assume_defaults: bool


class _Bound(TypedDict, total=False):
    bind: Mapping[str, int] | None


class _Inferring(TypedDict, total=False):
    input_shapes: Mapping[str, Sequence[int | str | Dim | None]] | None
    empty_chunks: Literal["clamp", "error"]


class _Rewriting(TypedDict, total=False):
    read_by_form: bool
    fix_defaults: bool
    verify: bool
    inputs: GivenInputs | None
    custom_ops: StrPath | Sequence[StrPath]
    providers: str | Sequence[str]
    samples: int
    seed: int
    engine: Engine
    rtol: float | None
    atol: float | None


class _Timed(TypedDict, total=False):
    timeout: float | None


class _ToOpset(TypedDict, total=False):
    ir_version: IRVersion
    try_sizes: Mapping[str, int] | None


class _Reshaping(TypedDict, total=False):
    batch: int | str | None
    follow: Sequence[str]
    keep: Sequence[str]


class _Converting(TypedDict, total=False):
    opset: Opset | None
    explicit_lengths: bool
    fold: bool
    standard: bool
    drop_zipmap: bool
    runtime_python: StrPath | Sequence[StrPath]


class InferOptions(_Leeway, _Bound, _Inferring, total=False):
    """The keywords of `infer`."""


class RewriteOptions(_Leeway, _Bound, _Rewriting, _Timed, _ToOpset, total=False):
    """The keywords of `upgrade` and `downgrade`."""


class ReshapeOptions(_Leeway, _Bound, _Rewriting, _Timed, _Reshaping, total=False):
    """The keywords of `reshape`."""


class ConvertOptions(_Leeway, _Bound, _Rewriting, _Timed, _ToOpset, _Converting, total=False):
    """The keywords of `convert`."""

    target: str | None


class MapOptions(_Leeway, _Bound, _Inferring, _Rewriting, _ToOpset, _Reshaping, _Converting, total=False):
    """The keywords of `map_models` for the verbs, all of them: each verb refuses those that it does not have.

    `map_models` has a timeout of its own. Several targets are for `check`.
    """

    target: str | Sequence[str] | None
    to: Form | None
    shapes: InputShapes | None
    run: bool
    between: Sequence[str]
    force: bool
    external_data: ExternalData | None
    skip_newer: bool
