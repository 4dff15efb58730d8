"""Diagnostics: what splitgraph found, where, and what to do; the table of codes; the errors that carry them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

Severity = Literal["error", "warning", "info"]


class CodeInfo(NamedTuple):
    """One line of the table of codes: a title, what it means, and what to do about it."""

    title: str
    meaning: str
    help: str


CODES: dict[str, CodeInfo] = {}


def _code(code: str, title: str, meaning: str, help: str) -> None:
    CODES[code] = CodeInfo(title, meaning, help)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding.

    code: what `splitgraph explain` explains ("SG203"). severity: only an "error" makes a model wrong. message: what was
    found and what is allowed. location: graph, subgraph and node ("main/encoder/Split_4"), a file name, or "". help:
    what to do.
    """

    code: str
    severity: Severity
    message: str
    location: str = ""
    help: str = ""


def diagnostic(
    code: str, message: str, location: str = "", *, severity: Severity = "error", help: str | None = None
) -> Diagnostic:
    """A Diagnostic of a known code; its help comes from the table of codes unless given."""
    text = abridged(with_words_abridged(message), LONGEST_TEXT)
    return Diagnostic(code, severity, text, location, CODES[code].help if help is None else help)


# Characters of a name of the model, and of a text with names in it, that are shown to people.
LONGEST_NAME = 500
LONGEST_TEXT = 10_000
_LONG_WORD = re.compile(rf"\S{{{LONGEST_NAME + 1},}}")


def abridged(text: str, most: int = LONGEST_NAME) -> str:
    """A name or text as people are shown it: of a very long one its ends, and how long it is."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}…{text[-most // 4 :]} ({len(text):,} characters)"


def with_words_abridged(text: str) -> str:
    """A text with every very long word in it, a name as a rule, as people are shown it."""
    return text if len(text) <= LONGEST_NAME else _LONG_WORD.sub(lambda found: abridged(found.group()), text)


class SplitgraphError(Exception):
    """Base of every error that splitgraph raises on purpose.

    diagnostics: what is wrong, one for each finding; empty where the message says it all.
    """

    diagnostics: tuple[Diagnostic, ...]

    def __init__(self, message: str, diagnostics: Iterable[Diagnostic] = ()) -> None:
        super().__init__(with_words_abridged(message))
        self.diagnostics = tuple(diagnostics)


class ModelError(SplitgraphError):
    """A file that cannot be read as a model, or cannot be written."""


class ConversionError(SplitgraphError):
    """A model that cannot be converted exactly; `.diagnostics` holds every blocker."""


class VerificationError(SplitgraphError):
    """A rewritten model that was run and gave something else than the original."""


# 1xx: the file and the model as a whole ------------------------------------------------------------------------
_code(
    "SG101",
    "not a readable model file",
    "The file is missing, empty, truncated, or not a model of its kind.",
    "Check the path; export or download the model again.",
)
_code(
    "SG102",
    "cycle",
    "A node reads a value that depends on what the node itself gives, or a function calls itself.",
    "Remove the cycle; export the model again.",
)
_code(
    "SG103",
    "opset that does not exist",
    "The model imports an opset of ai.onnx that neither splitgraph nor the installed onnx knows, one below 1, or two.",
    "Install a newer onnx, or export the model at an older opset.",
)
_code(
    "SG104",
    "name defined twice",
    "Two outputs, inputs or initializers of one graph have the same name; ONNX is in single-assignment form.",
    "Rename one of the two values.",
)
_code(
    "SG105",
    "value that nothing produces",
    "A node or a graph output reads a name that no input, initializer or earlier node defines.",
    "Export the model again, or add the missing input.",
)
_code(
    "SG106",
    "IR version that does not exist",
    "The file says it is of an IR version newer than the installed onnx knows.",
    "Install a newer onnx, or export the model for an older IR version.",
)
_code(
    "SG107",
    "external data cannot be read",
    "A tensor's external data file is missing, too short, or lies outside the model's folder.",
    "Put the data file beside the model, at the relative path that the model names.",
)
_code(
    "SG108",
    "file exists",
    "The output file exists and is only overwritten on request.",
    "Choose another name with -o, or pass --force.",
)
_code(
    "SG109",
    "file cannot be written",
    "The output could not be written; what was there before is unchanged.",
    "Check the folder, its permissions and the free space.",
)
_code(
    "SG110",
    "opset import missing",
    "A node's domain is not among the opset imports of its model or function.",
    "Add the opset import, or export the model again.",
)
_code(
    "SG111",
    "malformed model",
    "The file was read, but a part of it is not what the format requires.",
    "Export the model again; onnx.checker may say more.",
)
_code(
    "SG112",
    "nodes out of order",
    "A node stands before one that produces what it reads. ONNX wants nodes in topological order; onnxruntime and "
    "OpenVINO sort them. The model is inferred and converted as if they were sorted; infer -o keeps their order.",
    "Run upgrade, downgrade or convert, which write the nodes sorted.",
)
_code(
    "SG113",
    "weights removed",
    "Most tensors of the model have a shape but no elements, as in models that are kept for display or to estimate "
    "sizes. Types and shapes are inferred and converted as far as shapes tell; such a model cannot be run.",
    "Nothing to do for shapes. To run or verify the model, take the one with its weights.",
)
_code(
    "SG114",
    "nested too deep",
    "Graphs are nested in one another, as bodies of nodes and of the functions that nodes in them call, or types are, "
    "deeper than splitgraph looks into. protobuf reads no file with so many bodies of nodes in one another; functions "
    "that call functions in branches and loops, and models that were made in memory, can have more.",
    "Take bodies or functions apart, so that fewer lie in one another.",
)

# 2xx: the split operators ----------------------------------------------------------------------------------------
_code(
    "SG201",
    "axis out of range",
    "The axis must lie in [-rank, rank - 1]; a scalar has no axis to split on.",
    "Correct the axis.",
)
_code(
    "SG202",
    "number of lengths is not the number of outputs",
    "There must be exactly one length for each output.",
    "Give as many lengths as outputs; an output that nobody reads still counts.",
)
_code(
    "SG203",
    "empty chunk",
    "num_outputs parts of ceil(d / num_outputs) overrun the dimension, so that trailing parts are empty. The "
    "specification gives a negative length there; the reference evaluator clamps, onnxruntime refuses.",
    "Give explicit lengths (convert --to split --explicit-lengths): every runtime accepts those.",
)
_code(
    "SG204",
    "lengths do not sum to the dimension",
    "The lengths must sum to the dimension that is split.",
    "Correct the lengths, or the shape of the input.",
)
_code(
    "SG205",
    "negative length",
    "Every length must be at least 0; only VariadicSplit takes one -1, meaning the rest.",
    "Correct the lengths.",
)
_code(
    "SG206",
    "dimension is not divisible into equal parts",
    "Without lengths the parts are equal, so their number must divide the dimension.",
    "Give explicit lengths, or use Split-18 with num_outputs, whose last part may be smaller.",
)
_code(
    "SG207",
    "neither split nor num_outputs",
    "Split from opset 18 on must say its parts: exactly one of the input split and the attribute num_outputs. Where no "
    "chunk would be empty, there is one reading: upgrade, downgrade and convert write it.",
    "Run upgrade or convert, which repair it, or set num_outputs to the number of outputs.",
)
_code(
    "SG208",
    "both split and num_outputs",
    "Split from opset 18 on takes exactly one of the input split and the attribute num_outputs. It is a warning where "
    "both are known to say the same: upgrade, downgrade and convert then take num_outputs out.",
    "Remove one of the two.",
)
_code(
    "SG209",
    "num_outputs is not the number of outputs",
    "num_outputs must be at least 1 and equal the node's number of outputs.",
    "Correct num_outputs or the list of outputs.",
)
_code(
    "SG210",
    "element type not allowed",
    "This version of the operator does not take this element type.",
    "Cast the input, or use a version of the operator that takes it.",
)
_code(
    "SG211",
    "lengths input of the wrong type or rank",
    "The lengths must be an integer tensor of the type and rank that the operator version names.",
    "Cast or reshape the lengths.",
)
_code(
    "SG212",
    "inputs, outputs or attributes do not fit the operator version",
    "The node has an attribute, input or output that this version does not have, or lacks one that it requires.",
    "Compare the node with the operator's schema; another opset version may be meant.",
)
_code(
    "SG213",
    "input is not a tensor",
    "The operator splits tensors; this input is a sequence, an optional or a map.",
    "Take the tensor out of the sequence or optional first.",
)
_code(
    "SG214",
    "operator does not exist at this opset",
    "The operator was introduced at a later opset than the model imports, or removed before it. LayerNormalization is "
    "taken below 17, too, where onnxruntime's optimizer writes it and onnxruntime runs it.",
    "Export the model at an opset that has the operator. To raise the imported opset alone would change what other "
    "operators mean.",
)
_code(
    "SG215",
    "chunk size is not positive",
    "A scalar split of SplitToSequence is the size of each chunk and must be at least 1.",
    "Correct the chunk size.",
)
_code(
    "SG216",
    "more than one -1",
    "At most one length of VariadicSplit may be -1, meaning the rest.",
    "Write all but one of the lengths out.",
)
_code(
    "SG218",
    "axis input of the wrong type or rank",
    "The axis input must be an integer scalar (VariadicSplit also takes the shape [1]).",
    "Cast or reshape the axis.",
)
_code(
    "SG219",
    "runtimes disagree on keepdims beside a chunk size",
    "By the specification SplitToSequence ignores keepdims when split is given. onnxruntime drops the axis of chunks "
    "of length 1 all the same, as PyTorch's exporter means it where it writes unbind, and refuses other chunks.",
    "Leave split out, which means chunks of length 1, or leave keepdims out: runtimes agree on either.",
)
_code(
    "SG220",
    "output of a split without a name",
    "ONNX lets a node leave outputs out by an empty name, and its checker passes it. Every onnxruntime from 1.15 to "
    "1.32 crashes on a Split like this.",
    "Give the output a name; nothing needs to read it. The rewriting commands do so.",
)

# 3xx: inference of everything else -----------------------------------------------------------------------------
_code(
    "SG301",
    "declared and inferred types differ",
    "The model declares a type or shape that contradicts what its nodes produce. A wrong shape is a warning: runtimes "
    "warn and go by the nodes, infer writes what the nodes produce, and conversion keeps the declaration. It is an "
    "error of a part of a split, whose lengths and declaration cannot both be meant, and of an element type, with "
    "which runtimes do not load the model.",
    "Correct the declaration (infer -o does so for shapes), or the node that it disagrees with.",
)
_code(
    "SG302",
    "invalid node",
    "The inputs or attributes of the node are not what its operator allows.",
    "Correct the node; the message says what is allowed.",
)
_code(
    "SG303",
    "unknown operator",
    "No schema and no function body tells what this operator produces, so nothing is claimed of its outputs.",
    "Declare its output types in value_info, or add a model-local function.",
)
_code(
    "SG304",
    "binding that fits nothing",
    "A name given with --bind or --input-shape does not occur in the model, or the shape contradicts the declared one.",
    "Check the name against the model's inputs and symbols.",
)
_code(
    "SG305",
    "inputs with defaults",
    "From IR version 4 on, an initializer that is also an input is a default: a caller may replace it, so its value is "
    "not known, and neither are dimensions that depend on it. Exporters list initializers as inputs by an old habit.",
    "If no caller replaces them, infer with --assume-defaults, or remove them from the model's inputs.",
)
_code(
    "SG306",
    "branch that cannot run",
    "With these sizes a branch contradicts itself, and the condition that decides is not known. The model is right "
    "where the other branch runs. onnxruntime looks at branches when it loads a model, and refuses one that is fixed "
    "to such sizes.",
    "Nothing to do where the condition keeps the branch from running. Do not fix the model to these sizes.",
)

# 4xx: conversion -------------------------------------------------------------------------------------------------
_code(
    "SG401",
    "invalid node repaired",
    "A node was not valid as its exporter wrote it, and has one reading only: a Split-18 without split and num_outputs "
    "was given num_outputs; attributes that say nothing new were taken out.",
    "Nothing to do; the exporter that wrote the model deserves a bug report.",
)
_code(
    "SG402",
    "lengths known only at run time",
    "The target version takes its lengths as attribute, and no node of the target opset could compute them.",
    "Stop at a newer opset, or fix the dimension before converting.",
)
_code(
    "SG403",
    "element type not allowed at the target",
    "The operator does not take this element type at the target opset.",
    "Stop at a newer opset, or cast the input.",
)
_code(
    "SG404",
    "operator does not exist at the target",
    "The operator was introduced after the target opset, and has no equivalent there.",
    "Stop at a newer opset.",
)
_code(
    "SG405",
    "operator changed its meaning",
    "Between the two opsets the operator changed in a way that keeping the node would not reproduce.",
    "Stop before that opset, or rewrite the node by hand.",
)
_code(
    "SG406",
    "attribute does not exist at the target",
    "The node uses an attribute, input or output that the operator does not have at the target opset, with a value "
    "that matters.",
    "Stop at a newer opset, or change the node.",
)
_code(
    "SG407",
    "invalid split",
    "The split is invalid as it stands, so there is nothing to convert exactly.",
    "Correct the node first; infer says what is wrong.",
)
_code(
    "SG408",
    "split cannot be written in this form",
    "The form asked for cannot express this split.",
    "Keep this node's form.",
)
_code(
    "SG409",
    "model cannot be read by the converter",
    "The model has an error that makes its meaning unclear, so nothing is converted.",
    "Run infer and correct what it reports.",
)
_code(
    "SG411",
    "OpenVINO cannot read the model",
    "OpenVINO's own ONNX frontend, which makes the IR, refused the model, crashed, or took too long.",
    "Write the lengths of its splits out first (convert --to split --explicit-lengths), of which OpenVINO reads more; "
    "or give dimensions fixed sizes.",
)
_code(
    "SG412",
    "IR version too old for the model",
    "The IR version asked for is older than the model's opset, or something that it holds, needs.",
    "Ask for a newer IR version, or leave --ir-version out.",
)
_code(
    "SG413",
    "local functions inlined",
    "The nodes of model-local functions were put in place of their calls. Either their bodies as written cannot be "
    "converted, as a body does not know what each call gives; or the IR version of the target has no functions; or "
    "lengths of splits are written out, for readers such as OpenVINO's, which read no functions either.",
    "Nothing to do.",
)
_code(
    "SG416",
    "attribute that does not belong here",
    "The operator version has no such attribute, and every reading of the node is the same with and without it: "
    "num_outputs of a Split-13 that has as many outputs, the default of a later version. onnxruntime refuses it.",
    "Run upgrade, downgrade or convert, which take the attribute out, or remove it.",
)
_code(
    "SG414",
    "parts that older readers skip",
    "The result has an older IR version, and parts that came with a newer one, such as metadata_props of nodes. "
    "Readers skip fields that they do not know, and these change nothing of what the model gives, so they stay.",
    "Nothing to do; --ir-version keep leaves the IR version as it is.",
)
_code(
    "SG415",
    "IR version newer than that of the opset",
    "A downgrade lowers the IR version to the newest that came with the target opset, unless older readers would "
    "misread something in the model. A model that stays at its opset keeps its IR version unless it is asked for.",
    "Remove what the message names, or give --ir-version, where a runtime has to read the older IR version.",
)
_code(
    "SG418",
    "opset on the other side",
    "upgrade was given an opset older than the model's, or downgrade a newer one.",
    "Use the other command, or convert --opset, which goes either way.",
)

# 5xx: verification ----------------------------------------------------------------------------------------------
_code(
    "SG501",
    "could not be verified",
    "No engine could run both models, so nothing was compared.",
    "Install onnxruntime (pip install onnxruntime), or give inputs that fit the model.",
)
_code(
    "SG502",
    "result differs",
    "The rewritten model was run and gave something else than the original. This is a bug in splitgraph.",
    "Please report it with the model; nothing was written.",
)
_code(
    "SG503",
    "engine failed",
    "An engine is not installed, crashed, timed out or refused the model.",
    "The next engine is tried, where there is one.",
)
_code(
    "SG504",
    "differs by what rounding does",
    "Operators were written as arithmetic, and some results differ by more than the tolerances, as the model magnifies "
    "rounding: by a logarithm of a sum that cancels, or a step of a quantization. The original was run again with "
    "noise of about a rounding error at those operators, and its own results moved as far: each difference is at most "
    "8 times, and all of an output together at most twice, what that moved.",
    "Nothing to do; compare the two models on data of your own where the last digits matter.",
)
_code(
    "SG505",
    "compared at sizes of 1 only",
    "Of the sizes that were tried, the model runs only where every dimension that is not fixed is 1: it demands "
    "something of its sizes that cannot be read from it. The models are equal there, but sizes of 1 hide much: an axis "
    "taken for another, a stride, a window, an order of elements.",
    "Give sizes that fit with --bind, or arrays for the inputs: splitgraph.verify(..., inputs={...}).",
)

_code(
    "SG506",
    "equal results that show nothing",
    "Both models gave the same, but a wrong model could have given that as well: on all inputs that were tried, the "
    "outputs are NaN, infinite or empty, do not change with the inputs, or do not change when the model's weights are "
    "made larger by 20 to 40 per cent. Other inputs were tried (other amplitudes and signs, the model's own constants, "
    "rates and powers of ten), and did not help. The models are not verified.",
    "Give inputs that the model is made for: splitgraph.verify(..., inputs={...}); or sizes with --bind.",
)
_code(
    "SG507",
    "some outputs show nothing",
    "The models are equal, and other outputs show so; of the outputs that are named nothing is shown, as they are the "
    "same on all inputs that were tried, or empty. All weights that lead to them lead to other outputs, too.",
    "Give inputs on which these outputs differ: splitgraph.verify(..., inputs={...}).",
)
_code(
    "SG508",
    "loads without all optimisations only",
    "onnxruntime runs the result without optimisations, and the results are equal, but it does not load the result at "
    "its default level of optimisation. That is a fault of its optimiser: the model means what it should.",
    "Set SessionOptions.graph_optimization_level to the level that the message names, or use another version of "
    "onnxruntime.",
)

# 6xx: how the program was called ---------------------------------------------------------------------------------
_code(
    "SG601",
    "argument not allowed",
    "An argument of the command line is not of its form, or does not go with another.",
    "The message says what is allowed; --help lists the arguments.",
)
_code(
    "SG602",
    "the machine could not do it",
    "There was no memory, no room for temporary files, or something else that the operating system refused.",
    "The message says what was lacking.",
)
_code(
    "SG603",
    "fault of splitgraph",
    "Something happened that splitgraph does not expect, whatever the model is.",
    "Please report it with the model; the environment variable SPLITGRAPH_DEBUG=1 shows where it happened.",
)
