"""The keywords of the functions of the API, for type checkers: none makes them from the records of `options`.

A test compares them with the records. Nothing imports this module at run time.
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


class LeewayOptions(TypedDict, total=False):
    """The keywords of `check`, which all other functions have, too."""

    accept: Sequence[str]
    assume_defaults: bool


class InferOptions(LeewayOptions, total=False):
    """The keywords of `infer`."""

    bind: Mapping[str, int] | None
    input_shapes: Mapping[str, Sequence[int | str | Dim | None]] | None
    empty_chunks: Literal["clamp", "error"]


class VerifiedOptions(LeewayOptions, total=False):
    """The keywords that all rewriting functions have."""

    read_by_form: bool
    fix_defaults: bool
    bind: Mapping[str, int] | None
    verify: bool
    inputs: GivenInputs | None
    custom_ops: StrPath | Sequence[StrPath]
    providers: str | Sequence[str]
    samples: int
    seed: int
    engine: Engine
    rtol: float | None
    atol: float | None
    timeout: float | None


class RewriteOptions(VerifiedOptions, total=False):
    """The keywords of `upgrade` and `downgrade`, which `convert` has, too."""

    ir_version: IRVersion
    try_sizes: Mapping[str, int] | None


class ReshapeOptions(VerifiedOptions, total=False):
    """The keywords of `reshape`."""

    batch: int | str | None
    follow: Sequence[str]
    keep: Sequence[str]


class ConvertOptions(RewriteOptions, total=False):
    """The keywords of `convert`."""

    opset: Opset | None
    target: str | None
    explicit_lengths: bool
    fold: bool
    standard: bool
    drop_zipmap: bool
    runtime_python: StrPath | Sequence[StrPath]


class MapOptions(TypedDict, total=False):
    """The keywords of `map_models` for the verbs, all of them: each verb refuses those that it does not have."""

    accept: Sequence[str]
    assume_defaults: bool
    read_by_form: bool
    fix_defaults: bool
    bind: Mapping[str, int] | None
    input_shapes: Mapping[str, Sequence[int | str | Dim | None]] | None
    empty_chunks: Literal["clamp", "error"]
    opset: Opset | None
    to: Form | None
    target: str | Sequence[str] | None
    run: bool
    explicit_lengths: bool
    fold: bool
    standard: bool
    drop_zipmap: bool
    ir_version: IRVersion
    shapes: InputShapes | None
    batch: int | str | None
    follow: Sequence[str]
    keep: Sequence[str]
    verify: bool
    try_sizes: Mapping[str, int] | None
    inputs: GivenInputs | None
    custom_ops: StrPath | Sequence[StrPath]
    providers: str | Sequence[str]
    samples: int
    seed: int
    engine: Engine
    rtol: float | None
    atol: float | None
    between: Sequence[str]
    runtime_python: StrPath | Sequence[StrPath]
    force: bool
    external_data: ExternalData | None
    skip_newer: bool
