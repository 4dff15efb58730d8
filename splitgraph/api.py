"""The functions of the Python API: the commands of the command line. No function changes the model that it takes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from splitgraph.checks import checked, verify_in
from splitgraph.findings.diagnostics import SplitgraphError
from splitgraph.formats import load, open_model
from splitgraph.open_models import compared, diff_opened, inferred
from splitgraph.options import Converting, Engine, Form, NewSizes, Opset, Running, Sizes, leeway_of, paths_of
from splitgraph.processes.this_process import collection_paused
from splitgraph.results import save_result
from splitgraph.rewrites import find_blockers, rewritten
from splitgraph.verbs import in_steps, to_opset, to_sizes

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from splitgraph.conversion.opset import Blockers
    from splitgraph.conversion.rewrite import Rewrite
    from splitgraph.differences import ModelDifference
    from splitgraph.dim import Dim
    from splitgraph.formats import Model
    from splitgraph.formats.kinds import InMemory, M, Source
    from splitgraph.inference.analysis import Analysis
    from splitgraph.keywords import ConvertOptions, InferOptions, ReshapeOptions, RewriteOptions
    from splitgraph.options import GivenInputs, InputShapes, StrPath
    from splitgraph.runtimes.target import Target
    from splitgraph.runtimes.target_findings import TargetFindings
    from splitgraph.verification.verification import Verification

# Each function imports the modules that only this function needs: infer must not import conversion or execution.
# Each function has two overloads: for a model in memory, and for a path, which may have either format.


@overload
def infer(model: M, **options: Unpack[InferOptions]) -> Analysis[M]: ...
@overload
def infer(model: StrPath, **options: Unpack[InferOptions]) -> Analysis[Model]: ...
@collection_paused()
def infer(
    model: Any,
    *,
    bind: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, Sequence[int | str | Dim | None]] | None = None,
    empty_chunks: Literal["clamp", "error"] = "clamp",
    assume_defaults: bool = False,
    accept: Sequence[str] = (),
) -> Analysis:
    """Infer the types and shapes of all values of a model, and report every split and every error.

    model: onnx.ModelProto, path to either format, OpenVINOModel, ov.Model, onnx_graphsurgeon.Graph, or onnx_ir.Model;
    not changed. bind: values for symbols. input_shapes: shapes that replace the declared ones, each dimension an int,
    an expression ("N + 2"), or None. The inputs of `Analysis.model` have these sizes, too. empty_chunks: num_outputs
    chunks beyond the dimension are empty ("clamp", as in the reference evaluator) or an error ("error").
    assume_defaults: treat initializers that are also inputs as constants, although a caller of the model may replace
    them; an IR has none. accept: errors to accept by name, as "SG302" or "SG302@main/node"; a location that ends in
    "/*" stands for all below it. `Analysis.accepted` has them, and nothing is concluded from their nodes. Which codes
    can be accepted: docs/diagnostics.md. No configuration file is read.

    Does not raise for a wrong model. Raises ModelError for a file that cannot be read, SplitgraphError for wrong
    arguments.
    """
    sizes, leeway = Sizes(bind, input_shapes), leeway_of(accept, assume_defaults, empty_chunks)
    return inferred(open_model(model, weights="leave"), sizes, leeway)


@overload
def upgrade(model: M, opset: Opset, **options: Unpack[RewriteOptions]) -> Rewrite[M]: ...
@overload
def upgrade(model: StrPath, opset: Opset, **options: Unpack[RewriteOptions]) -> Rewrite[Model]: ...
def upgrade(
    model: Any,
    opset: Opset,
    *,
    ir_version: int | Literal["keep"] | None = None,
    accept: Sequence[str] = (),
    assume_defaults: bool = False,
    read_by_form: bool = False,
    fix_defaults: bool = False,
    bind: Mapping[str, int] | None = None,
    verify: bool = False,
    try_sizes: Mapping[str, int] | None = None,
    inputs: GivenInputs | None = None,
    custom_ops: StrPath | Sequence[StrPath] = (),
    providers: str | Sequence[str] = (),
    samples: int = 3,
    seed: int = 0,
    engine: Engine = "auto",
    rtol: float | None = None,
    atol: float | None = None,
    timeout: float | None = None,
) -> Rewrite:
    """Convert a model to a newer opset of ai.onnx; every node is converted exactly.

    model: as in `infer`; not changed. opset: the version of ai.onnx to convert to; or those of several domains, by
    their names: {"": 17, "ai.onnx.ml": 3}. Beside ai.onnx this is ai.onnx.ml, classical machine learning.
    ir_version: of the result; None and "keep" keep the model's own, or raise it if the opset needs a newer one.
    accept: errors of the model to accept by name, as in `infer`; their nodes stay as they are. An error of a split, or
    of a node that the conversion has to change, cannot be accepted. `Rewrite.accepted` has them.
    assume_defaults: treat initializers that are also inputs as constants, as in `infer`. The result relies on that: it
    has the same inputs, but a caller who replaces such a default may get other results than from the original.
    read_by_form: read a node in the form of another version of its operator as that version, such as ReduceMean with
    axes as an attribute at opset 18. fix_defaults: take initializers out of the inputs of the result, so that they are
    constants, and no defaults that a caller may replace. Below IR version 4 every initializer is an input, too.

    bind: values for symbols, which the result has in its inputs, as in `infer`. At these sizes it equals the model.
    verify: run the model and the result, and compare them. The default is off here and on in the command line, because
    a program decides when to spend the time, and a conversion needs no engine. If it is on, `Rewrite.verification`
    holds the verdict; "not-run" raises nothing.
    try_sizes: values for symbols at which the two are run; the result does not get them.
    inputs, custom_ops, providers, samples, seed, engine, timeout: of the verification, as in `verify`. rtol, atol: None
    for the tolerance of this rewrite (`Rewrite.tolerance`).

    Raises ConversionError with every blocker if any part cannot be converted exactly; then nothing is changed. With
    `verify`, raises VerificationError if the results differ. A model that has this opset already is returned unchanged.
    """
    running = Running(verify, samples, seed, try_sizes, inputs, custom_ops, providers, engine, rtol, atol, timeout)
    leeway = leeway_of(accept, assume_defaults, read_by_form=read_by_form, fix_defaults=fix_defaults)
    return rewritten(model, to_opset(opset, ir_version, newer=True), leeway, Sizes(bind), running)


@overload
def downgrade(model: M, opset: Opset, **options: Unpack[RewriteOptions]) -> Rewrite[M]: ...
@overload
def downgrade(model: StrPath, opset: Opset, **options: Unpack[RewriteOptions]) -> Rewrite[Model]: ...
def downgrade(
    model: Any,
    opset: Opset,
    *,
    ir_version: int | Literal["keep"] | None = None,
    accept: Sequence[str] = (),
    assume_defaults: bool = False,
    read_by_form: bool = False,
    fix_defaults: bool = False,
    bind: Mapping[str, int] | None = None,
    verify: bool = False,
    try_sizes: Mapping[str, int] | None = None,
    inputs: GivenInputs | None = None,
    custom_ops: StrPath | Sequence[StrPath] = (),
    providers: str | Sequence[str] = (),
    samples: int = 3,
    seed: int = 0,
    engine: Engine = "auto",
    rtol: float | None = None,
    atol: float | None = None,
    timeout: float | None = None,
) -> Rewrite:
    """Convert a model to an older opset of ai.onnx; every node is converted exactly. Arguments and errors as `upgrade`.

    ir_version: None lowers the model's own to the newest one of the opset, as exporters do, unless a part of the model
    needs a newer one. "keep" keeps the model's own.
    """
    running = Running(verify, samples, seed, try_sizes, inputs, custom_ops, providers, engine, rtol, atol, timeout)
    leeway = leeway_of(accept, assume_defaults, read_by_form=read_by_form, fix_defaults=fix_defaults)
    return rewritten(model, to_opset(opset, ir_version, newer=False), leeway, Sizes(bind), running)


@overload
def convert(model: M, to: Form | None = None, **options: Unpack[ConvertOptions]) -> Rewrite[M]: ...
@overload
def convert(model: StrPath, to: Form | None = None, **options: Unpack[ConvertOptions]) -> Rewrite[Model]: ...
def convert(
    model: Any,
    to: Form | None = None,
    *,
    opset: Opset | None = None,
    target: str | None = None,
    explicit_lengths: bool = False,
    fold: bool = False,
    standard: bool = False,
    drop_zipmap: bool = False,
    ir_version: int | Literal["keep"] | None = None,
    accept: Sequence[str] = (),
    assume_defaults: bool = False,
    read_by_form: bool = False,
    fix_defaults: bool = False,
    bind: Mapping[str, int] | None = None,
    verify: bool = False,
    try_sizes: Mapping[str, int] | None = None,
    inputs: GivenInputs | None = None,
    custom_ops: StrPath | Sequence[StrPath] = (),
    providers: str | Sequence[str] = (),
    samples: int = 3,
    seed: int = 0,
    engine: Engine = "auto",
    rtol: float | None = None,
    atol: float | None = None,
    timeout: float | None = None,
    runtime_python: StrPath | Sequence[StrPath] = (),
) -> Rewrite:
    """Convert a model for a runtime; or its splits to plain Split nodes, to VariadicSplit or to slices; or to another
    opset of ai.onnx, or another IR version.

    to: the form of the splits. "split" also makes one Split of slices that are all parts of a value. "variadic-split"
    is a function in ONNX and a layer in OpenVINO IR. "slice" is a Slice for each part that is read, in ONNX only.
    opset: newer or older, as in `upgrade`; None keeps the model's own. target: the name of a runtime, such as "mnn" or
    "openvino@2023.3" (`targets` lists them): what it does not read gets a form that it reads, all else stays. Give
    `to`, `opset` or both, or `target`, with or without `opset`, or fold, standard, drop_zipmap or
    ir_version alone.
    explicit_lengths: give every split explicit lengths, for runtimes that support neither equal parts nor num_outputs,
    and inline local functions, which these runtimes do not support either. ir_version: of the result; None and "keep"
    keep the model's own, raised to 8 if the result has functions. Alone, it changes nothing else: local functions are
    inlined below IR version 8, and what an older version cannot express is refused. read_by_form and fix_defaults may
    be given alone, too.
    fold: first of all, write what is known of an ONNX model. A value that is the same in every run becomes a constant,
    and the nodes that made it go. The result is exactly equal, and its constants take at most 64 KiB more than those
    that they replace.
    standard: write what only onnxruntime reads, operators of com.microsoft, in operators of ai.onnx at the opset of the
    result; and operators of ai.onnx.ml that take and give numbers. What has no exact form is refused. Where a kernel is
    approximate by design, as with matrices of 4 bits, the result is what the kernel approximates.

    drop_zipmap: give the tensors that ZipMap makes maps of, under the names of its outputs. A column is what the maps
    have for the label at its place.

    With a target, `verify` also runs the model in the runtime itself, if that is here: of several ways to convert it,
    the first one that runs is taken, and a model that runs as it is stays as it is. `Rewrite.ran` says what became of
    it. runtime_python: the Python that has the runtime, as in `check`.

    Other arguments and errors as `upgrade`.
    """
    running = Running(verify, samples, seed, try_sizes, inputs, custom_ops, providers, engine, rtol, atol, timeout)
    running = running._replace(runtime_python=paths_of(runtime_python))
    leeway = leeway_of(accept, assume_defaults, read_by_form=read_by_form, fix_defaults=fix_defaults)
    wanted = Converting(opset, to, target, explicit_lengths, ir_version, fold, standard, drop_zipmap)
    conversion = in_steps(wanted, leeway, running if verify else None)
    return rewritten(model, conversion, leeway, Sizes(bind), running)


@overload
def reshape(model: M, shapes: InputShapes | None = None, **options: Unpack[ReshapeOptions]) -> Rewrite[M]: ...
@overload
def reshape(model: StrPath, shapes: InputShapes | None = None, **options: Unpack[ReshapeOptions]) -> Rewrite[Model]: ...
def reshape(
    model: Any,
    shapes: InputShapes | None = None,
    *,
    batch: int | str | None = None,
    follow: Sequence[str] = (),
    keep: Sequence[str] = (),
    accept: Sequence[str] = (),
    assume_defaults: bool = False,
    read_by_form: bool = False,
    fix_defaults: bool = False,
    bind: Mapping[str, int] | None = None,
    verify: bool = False,
    inputs: GivenInputs | None = None,
    custom_ops: StrPath | Sequence[StrPath] = (),
    providers: str | Sequence[str] = (),
    samples: int = 3,
    seed: int = 0,
    engine: Engine = "auto",
    rtol: float | None = None,
    atol: float | None = None,
    timeout: float | None = None,
) -> Rewrite:
    """Give the inputs of a model other sizes: numbers, or names for sizes that a run decides.

    Constants that say an old size are made to say it in terms of the new dimension: the target of a Reshape, the end of
    a slice, lengths of a split, the shape of a state. What can mean several things is refused, and so is what cannot
    follow, such as weights of the old size.

    shapes: the new shape of each input, each dimension a number or a name. batch: the first dimension of every
    input that has one. follow: what numbers in the model say, by their places: ["main/reshape[0]=N"]. keep: the places
    of numbers that stay, whatever the sizes: ["main/topk[0]"].
    verify: run both models. At the old sizes they are equal; with a batch of several items, the result is what the
    model gives for each of them; at other sizes of any other dimension, the result runs.

    Other arguments as `upgrade`. Raises ConversionError with everything that is in the way, SplitgraphError for wrong
    arguments, and with `verify` VerificationError if the results differ.
    """
    running = Running(verify, samples, seed, None, inputs, custom_ops, providers, engine, rtol, atol, timeout)
    for name, texts, example in (("follow", follow, "main/reshape[0]=N"), ("keep", keep, "main/topk[0]")):
        if (
            isinstance(texts, str)
            or not isinstance(texts, Sequence)
            or not all(isinstance(each, str) for each in texts)
        ):
            raise SplitgraphError(f'{name} is {texts!r}; give a list of texts such as ["{example}"]')
    leeway = leeway_of(accept, assume_defaults, read_by_form=read_by_form, fix_defaults=fix_defaults)
    conversion = to_sizes(NewSizes(shapes, batch, tuple(follow), tuple(keep)), leeway)
    return rewritten(model, conversion, leeway, Sizes(bind), running)


def verify(
    before: Source,
    after: Source | None = None,
    *,
    between: Sequence[str] = (),
    samples: int = 3,
    seed: int = 0,
    bind: Mapping[str, int] | None = None,
    try_sizes: Mapping[str, int] | None = None,
    inputs: GivenInputs | None = None,
    custom_ops: StrPath | Sequence[StrPath] = (),
    providers: str | Sequence[str] = (),
    engine: Engine = "auto",
    rtol: float = 1e-5,
    atol: float = 1e-6,
    timeout: float | None = None,
    runtime_python: StrPath | Sequence[StrPath] = (),
) -> Verification:
    """Run two models on the same inputs and compare the results; or one model in two runtimes.

    before, after: the models, each as in `infer`; not changed. between: two runtimes for one ONNX model, without
    `after`: ("onnxruntime", "openvino"), each as a target of `check` with run=True. `Verification.first_node` is the
    first node at which they part. Then only samples, seed, sizes and inputs count. runtime_python: as in `check`.
    samples: sets of inputs; dimensions differ between them. seed: of the random inputs. bind, try_sizes: values for
    symbols; as nothing is written, the two mean the same here.
    inputs: arrays by input name; or a list of such mappings, a case for each; or a path: an archive `data.npz`, or a
    folder of test data as onnx has them (`test_data_set_0/input_0.pb`). Inputs that are not given are generated.
    custom_ops: libraries of operators for onnxruntime, or extensions of OpenVINO. A library runs code: name only those
    that you trust; they are loaded in the process of the engine only. providers: what to run on, the preferred one
    first: execution providers of onnxruntime ("cuda", "CUDAExecutionProvider") or devices of OpenVINO ("GPU").
    engine: the runtime; "auto" tries one after the other. rtol, atol: tolerances for floating point. timeout: seconds,
    None for 20 runs of both models and a few seconds.

    "equal" proves something: each output contains numbers and changes with the inputs and the model's weights;
    diagnostics name other outputs. If no output does so, the verdict is "not-run". Given inputs do not change, so that
    an output that depends on no others need not change either.

    Engine processes are kept for the next verification in the same Python process, until they are idle for half a
    minute. Several threads may verify at once.

    Raises ModelError for a file that cannot be read, SplitgraphError for wrong arguments and a provider that is not
    available.
    """
    sizes = {**(bind or {}), **(try_sizes or {})} if try_sizes else bind
    running = Running(True, samples, seed, sizes, inputs, custom_ops, providers, engine, rtol, atol, timeout)
    running = running._replace(runtime_python=paths_of(runtime_python))
    if between:
        if after is not None:
            raise SplitgraphError("between is about one model; leave the second one out")
        return verify_in(before, between, running)
    if after is None:
        raise SplitgraphError("verify compares two models, or one model between two runtimes: give the second one")
    return compared(before, after, running)


@collection_paused()
def diff(before: Source, after: Source) -> ModelDifference:
    """Compare two models without running them: what was added, removed and changed, by node and value, with types.

    before, after: the models, each as in `infer`, both ONNX or both OpenVINO IR; not changed. Large weights are read
    from their files in blocks. A model with errors is compared as far as its types are known; findings of only one
    model are part of the result.

    The result is false if nothing differs. Raises ModelError for a file that cannot be read, SplitgraphError for an
    ONNX model and an OpenVINO IR.
    """
    return diff_opened(open_model(before, weights="leave"), open_model(after, weights="leave"))


def check(
    model: Source,
    target: str | Sequence[str],
    *,
    run: bool = False,
    runtime_python: StrPath | Sequence[StrPath] = (),
    samples: int = 3,
    seed: int = 0,
    try_sizes: Mapping[str, int] | None = None,
    inputs: GivenInputs | None = None,
    accept: Sequence[str] = (),
    assume_defaults: bool = False,
) -> TargetFindings:
    """Say of every node whether a runtime reads it, refuses it or computes it wrong, as far as that was measured.

    model: an ONNX model, as in `infer`; not changed. An OpenVINO IR is checked for targets that read it. target: the
    name of a runtime, such as "mnn" or "openvino@2023.3", or several. `targets` lists them. What is wrong with the
    model itself is reported once, before all else. accept: errors of the model that are not reported, as in `infer`.
    assume_defaults: as in `infer`.

    The result is a tuple of findings. Its `nodes` are the answers node by node, and `runs` is True only if every node
    is known to be read. `after_conversion` converts the model for the target, and says the same of the result.

    run: also run the model in the runtime itself, in a process of its own. samples, seed, try_sizes, inputs: on what,
    as in `verify`. Its results are compared with those of ONNX Runtime; `ran` says what became of it, and
    `first_node` is the first node that goes wrong. What was run counts for more than what was measured. If no version
    is asked for, the version that is here is checked. runtime_python: the Python that has the runtime, if that is not
    this one; "opencv=PATH" for one of several. Such a Python needs NumPy and the runtime, and no splitgraph.

    Raises SplitgraphError for a target that is not known, and for an OpenVINO IR that the target does not read;
    ModelError for a file that cannot be read.
    """
    wanted = [find_target(name) for name in ([target] if isinstance(target, str) else target)]
    leeway = leeway_of(accept, assume_defaults)
    running = Running(run, samples, seed, try_sizes, inputs, runtime_python=paths_of(runtime_python))
    return checked(open_model(model, weights="leave"), wanted, leeway, running)


def blockers(
    model: Source,
    opset: Opset,
    *,
    accept: Sequence[str] = (),
    assume_defaults: bool = False,
    read_by_form: bool = False,
    fix_defaults: bool = False,
) -> Blockers:
    """Find out which nodes block the conversion of a model to an opset, and how near to it the model can come. Nothing
    is converted, and nothing is raised for what is in the way.

    model: an ONNX model, as in `infer`; not changed. opset: newer or older than the model's own, as in `upgrade`.
    accept, assume_defaults, read_by_form, fix_defaults: as in `upgrade`.

    The result is a tuple of diagnostics, with `node`, `operator` and `blocking_opset`: those that ConversionError would
    carry. It is empty if nothing is in the way. Its `reachable` is the lowest opset, or the highest of an upgrade, that
    the model can be converted to; by domain where `opset` is.

    Raises ModelError for a file that cannot be read, SplitgraphError for an opset that does not exist and for an
    OpenVINO IR.
    """
    leeway = leeway_of(accept, assume_defaults, read_by_form=read_by_form, fix_defaults=fix_defaults)
    return find_blockers(model, opset, leeway)


def targets() -> Mapping[str, Target]:
    """Every runtime that is known, by name: the newest version of each as "mnn", older ones as "openvino@2023.3.0"."""
    from splitgraph.runtimes.target import targets as known

    return known()


def find_target(name: str) -> Target:
    """Find a runtime by its name, as `check` and `convert` take it.

    name: "mnn" for the newest version, "openvino@2023.3" or "opencv@4" for an older one.

    Raises SplitgraphError with the nearest names for a runtime, or a version of it, that is not known.
    """
    from splitgraph.runtimes.target import find_target

    return find_target(name)


def save(
    model: InMemory | Analysis | Rewrite,
    path: str | os.PathLike[str],
    *,
    external_data: Literal["beside", "link"] | None = None,
) -> None:
    """Write a model to a file of its own format and replace an existing file, all or nothing. For an ONNX model and a
    path that ends in .xml, OpenVINO creates the IR: VariadicSplit functions become real layers, and so does num_outputs
    that may be uneven, which OpenVINO itself would read as equal parts.

    model: a model of any kind that the other functions take, but no path; or an Analysis or a Rewrite, whose model is
    written without loading weights that are in files. path: of the file; that of an OpenVINO IR ends in .xml.
    external_data: of an ONNX model, "beside" writes the weights to `<name>.data` beside the model; "link" makes hard
    links to the model's data files, which are copied otherwise.

    Raises ModelError if the model cannot be written, ConversionError for an ONNX model that OpenVINO refuses,
    SplitgraphError if OpenVINO is needed but not installed, InternalError for types that contradict the model.
    """
    save_result(model, path, external_data=external_data)


__all__ = [
    "blockers",
    "check",
    "convert",
    "diff",
    "downgrade",
    "find_target",
    "infer",
    "load",
    "reshape",
    "save",
    "targets",
    "upgrade",
    "verify",
]
