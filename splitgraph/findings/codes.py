"""The table of diagnostic codes: for each a title, its meaning, and advice. A code never changes its meaning."""

from __future__ import annotations

from typing import NamedTuple


class CodeInfo(NamedTuple):
    """One row of the table of codes: a title, its meaning, and advice."""

    title: str
    meaning: str
    help: str


CODES: dict[str, CodeInfo] = {}


def _code(code: str, title: str, meaning: str, help: str) -> None:
    CODES[code] = CodeInfo(title, meaning, help)


# 1xx: the file and the model as a whole ------------------------------------------------------------------------
_code(
    "SG101",
    "not a readable model file",
    "The file is missing, empty or truncated, or its content is not a model of this format.",
    "Check the path; export or download the model again.",
)
_code(
    "SG102",
    "cycle",
    "A node reads a value that depends on its own output, or a function calls itself.",
    "Remove the cycle; export the model again.",
)
_code(
    "SG103",
    "opset that does not exist",
    "The model imports two opsets of ai.onnx, one below 1, or one that splitgraph and the installed onnx do not know.",
    "Install a newer onnx, or export the model at an older opset.",
)
_code(
    "SG104",
    "name defined twice",
    "Two outputs, inputs or initializers of one graph have the same name. ONNX graphs assign each name once. Two equal "
    "initializers are a warning: runtimes load them. Functions of one model differ in domain, name or overload.",
    "Rename one of the two values or functions.",
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
    "The file declares an IR version that is newer than the installed onnx knows.",
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
    "The output file exists. splitgraph overwrites a file only on request.",
    "Choose another name with -o, or pass --force.",
)
_code(
    "SG109",
    "file cannot be written",
    "The output could not be written. An earlier file of that name is unchanged.",
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
    "The file was read, but a part of the model violates the format.",
    "Export the model again; onnx.checker may say more.",
)
_code(
    "SG112",
    "nodes out of order",
    "A node precedes the producer of its input. ONNX requires topological order; onnxruntime and OpenVINO sort the "
    "nodes. splitgraph infers and converts the model as if its nodes were sorted. infer -o keeps their order.",
    "Run upgrade, downgrade or convert: these commands write the nodes sorted.",
)
_code(
    "SG113",
    "weights removed",
    "Most tensors of the model have a shape but no elements. Such models serve for display or to estimate sizes. "
    "splitgraph infers and converts as much as the shapes determine. Such a model cannot be run.",
    "Nothing to do for shapes. To run or verify, use the model that has its weights.",
)
_code(
    "SG114",
    "nested too deep",
    "Subgraphs, function calls or types are nested deeper than splitgraph supports. protobuf refuses files with so "
    "many nested subgraphs. Functions that call functions in branches and loops can nest deeper, and so can models "
    "that were made in memory.",
    "Reduce the nesting of subgraphs or functions.",
)

# 2xx: the split operators ----------------------------------------------------------------------------------------
_code(
    "SG201",
    "axis out of range",
    "The axis must lie in [-rank, rank - 1]. A scalar has no axis to split.",
    "Correct the axis.",
)
_code(
    "SG202",
    "number of lengths is not the number of outputs",
    "There must be exactly one length for each output.",
    "Give one length for each output. Unused outputs count, too.",
)
_code(
    "SG203",
    "empty chunk",
    "num_outputs parts of ceil(d / num_outputs) exceed the dimension, so the last parts are empty. By the "
    "specification, a length is negative. The reference evaluator clamps the lengths; onnxruntime refuses the node.",
    "Give explicit lengths (convert --to split --explicit-lengths): every runtime accepts explicit lengths.",
)
_code(
    "SG204",
    "lengths do not sum to the dimension",
    "The sum of the lengths must equal the dimension on the split axis.",
    "Correct the lengths, or the shape of the input.",
)
_code(
    "SG205",
    "negative length",
    "Every length must be at least 0. Only VariadicSplit allows one -1, which means the rest.",
    "Correct the lengths.",
)
_code(
    "SG206",
    "dimension is not divisible into equal parts",
    "Without lengths the parts are equal, so the number of parts must divide the dimension.",
    "Give explicit lengths, or use Split-18 with num_outputs, whose last part may be smaller.",
)
_code(
    "SG207",
    "neither split nor num_outputs",
    "From opset 18 on, Split requires either the input split or the attribute num_outputs. If no chunk would be empty, "
    "the node has only one reading: upgrade, downgrade and convert write that reading.",
    "Run upgrade or convert to repair the node, or set num_outputs to the number of outputs.",
)
_code(
    "SG208",
    "both split and num_outputs",
    "From opset 18 on, Split takes either the input split or the attribute num_outputs, not both. If both are known to "
    "agree, the finding is a warning: upgrade, downgrade and convert then remove num_outputs.",
    "Remove one of the two.",
)
_code(
    "SG209",
    "num_outputs is not the number of outputs",
    "num_outputs must be at least 1 and equal the node's number of outputs. Fewer outputs are a warning where OpenVINO "
    "and the reference evaluator take them for the first parts: the dimension is dynamic (OpenVINO: where it divides "
    "evenly), or it divides evenly, or the axis is not negative and the last part is not empty. upgrade, downgrade and "
    "convert then add the missing outputs.",
    "Correct num_outputs or the list of outputs.",
)
_code(
    "SG210",
    "element type not allowed",
    "This version of the operator does not allow this element type.",
    "Cast the input, or use a version of the operator that allows the type.",
)
_code(
    "SG211",
    "lengths input of the wrong type or rank",
    "The lengths must be an integer tensor of the type and rank that the operator version requires.",
    "Cast or reshape the lengths.",
)
_code(
    "SG212",
    "inputs, outputs or attributes do not fit the operator version",
    "The node has an attribute, input or output that this version does not define, or lacks a required one, or has an "
    "attribute twice.",
    "Compare the node with the operator's schema. The exporter may have meant another opset: the finding names the "
    "version whose form the node has. upgrade, downgrade, convert and reshape read such nodes as that version with "
    "--read-by-form (Python: read_by_form=True).",
)
_code(
    "SG213",
    "input is not a tensor",
    "The operator splits tensors. This input is a sequence, an optional or a map.",
    "Take the tensor out of the sequence or optional first.",
)
_code(
    "SG214",
    "operator does not exist at this opset",
    "The operator was introduced after the opset that the model imports, or removed before that opset. "
    "LayerNormalization is accepted below 17, because onnxruntime's optimizer writes it there and onnxruntime runs it.",
    "Export the model at an opset that has the operator. Raising only the opset number would change the meaning of "
    "other operators.",
)
_code(
    "SG215",
    "chunk size is not positive",
    "A scalar split of SplitToSequence is the size of each chunk. It must be at least 1.",
    "Correct the chunk size.",
)
_code(
    "SG216",
    "more than one -1",
    "At most one length of VariadicSplit may be -1, which means the rest.",
    "Give numbers for all lengths but one.",
)
_code(
    "SG218",
    "axis input of the wrong type or rank",
    "The axis input must be an integer scalar. VariadicSplit also allows the shape [1].",
    "Cast or reshape the axis.",
)
_code(
    "SG219",
    "runtimes disagree on keepdims with a chunk size",
    "By the specification, SplitToSequence ignores keepdims if split is given. onnxruntime still drops the axis of "
    "chunks of length 1, and refuses other chunks. PyTorch's exporter relies on that for unbind.",
    "Remove split, which means chunks of length 1, or remove keepdims: runtimes agree on both forms.",
)
_code(
    "SG220",
    "output of a split without a name",
    "In ONNX, an empty name means an omitted output, and the checker accepts it. Every onnxruntime from 1.15 to 1.32 "
    "crashes on such a Split.",
    "Give the output a name, even if nothing reads it. The rewriting commands do so.",
)

# 3xx: inference of everything else -----------------------------------------------------------------------------
_code(
    "SG301",
    "declared and inferred types differ",
    "The model declares a type or shape that contradicts its nodes. A wrong shape is a warning: runtimes warn and use "
    "the inferred shape, infer writes the inferred shape, and conversion keeps the declaration. Of a value that other "
    "operators compute in the result, conversion keeps only what is inferred, and says so of outputs. A wrong shape of "
    "a split's part is an error, because its lengths and the declaration contradict each other. A wrong element type "
    "is an error, because runtimes do not load the model; in an OpenVINO IR it is a warning, because OpenVINO uses the "
    "inferred type.",
    "Correct the declaration (infer -o does so for shapes), or the node.",
)
_code(
    "SG302",
    "invalid node",
    "The operator does not allow the inputs or attributes of the node. It is a warning if at least two of onnxruntime, "
    "OpenVINO and the reference evaluator run the node, all in one way; the message names them. A value that only "
    "another version has, such as mode=bilinear of Upsample-7, is an error, and a conversion repairs it.",
    "Each finding has its own advice: the attribute to set, the input to correct, or the Cast to insert. To leave the "
    "node as it is, use --accept SG302@LOCATION.",
)
_code(
    "SG303",
    "unknown operator",
    "The operator has no schema and no function body, so the types of its outputs are unknown.",
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
    "From IR version 4 on, an initializer that is also an input is a default value, which a caller may replace. Its "
    "value is therefore unknown, and so are dimensions that depend on the value. Some exporters still list all "
    "initializers as inputs.",
    "If no caller replaces the defaults, use --assume-defaults, or take the initializers out of the inputs: upgrade, "
    "downgrade, convert and reshape do so with --fix-defaults (Python: fix_defaults=True).",
)
_code(
    "SG306",
    "branch that cannot run",
    "With these sizes a branch of an If is invalid, and the condition is unknown. The model is valid if the other "
    "branch runs. onnxruntime checks both branches when it loads a model, and refuses a model that is fixed to such "
    "sizes.",
    "Nothing to do if the condition never selects this branch. Do not fix the model to these sizes.",
)

_code(
    "SG307",
    "named dimension that can have one size only",
    "An input names a dimension, and a node such as Reshape lets it have one size only: the export wrote the size of "
    "its example input into the node. Every other size fails when the model runs.",
    "Run reshape to make the model fit other sizes, or declare the number instead of the name.",
)

# 4xx: conversion -------------------------------------------------------------------------------------------------
_code(
    "SG401",
    "invalid node repaired",
    "The exporter wrote an invalid node that has only one reading. A Split-18 without split and num_outputs received "
    "num_outputs; redundant attributes were removed.",
    "Nothing to do. Please report the bug to the project whose exporter wrote the model.",
)
_code(
    "SG402",
    "lengths known only at run time",
    "The target version takes the lengths as an attribute, so nodes cannot compute them at run time.",
    "Stop at a newer opset, or fix the dimension before converting.",
)
_code(
    "SG403",
    "element type not allowed at the target",
    "At the target opset the operator does not allow this element type.",
    "Stop at a newer opset, or cast the input.",
)
_code(
    "SG404",
    "operator does not exist at the target",
    "The operator was introduced after the target opset and has no equivalent there.",
    "Stop at a newer opset.",
)
_code(
    "SG405",
    "operator changed its meaning",
    "The operator changed between the two opsets: the same node means something else at the target opset.",
    "Stop before that opset, or rewrite the node by hand.",
)
_code(
    "SG406",
    "attribute does not exist at the target",
    "The node uses an attribute, input or output that the operator does not have at the target opset, and its value "
    "changes the result.",
    "Stop at a newer opset, or change the node.",
)
_code(
    "SG407",
    "invalid split",
    "The split is invalid, so an exact conversion does not exist.",
    "Correct the node first. infer reports the error.",
)
_code(
    "SG408",
    "split cannot be written in this form",
    "The requested form cannot express this split.",
    "Keep this node's form.",
)
_code(
    "SG409",
    "model cannot be read by the converter",
    "An error makes the meaning of the model unclear, so nothing is converted.",
    "Run infer and correct the errors that it reports.",
)
_code(
    "SG411",
    "OpenVINO cannot read the model",
    "OpenVINO's ONNX frontend creates the IR. It refused the model, crashed, or took too long.",
    "check --target openvino names the nodes that OpenVINO does not read. It reads more splits with explicit lengths "
    "(convert --to split --explicit-lengths), and more nodes of fixed sizes.",
)
_code(
    "SG412",
    "IR version too old for the model",
    "The model's opset, or a part of the model, needs a newer IR version than the requested one.",
    "Request a newer IR version, or omit --ir-version.",
)
_code(
    "SG413",
    "local functions inlined",
    "Calls of local functions were replaced by the functions' nodes, for one of three reasons: the conversion depends "
    "on the arguments of each call; the IR version of the target has no functions; or explicit lengths were requested, "
    "because runtimes such as OpenVINO cannot read local functions.",
    "Nothing to do.",
)
_code(
    "SG416",
    "attribute that does not belong here",
    "The operator version has no such attribute, but the attribute changes nothing: num_outputs of a Split-13 with as "
    "many outputs, or the default value of a later version. onnxruntime refuses the node.",
    "Remove the attribute, or run upgrade, downgrade or convert, which remove it.",
)
_code(
    "SG414",
    "parts that older readers skip",
    "The result has an older IR version, but contains fields of a newer one, such as device configurations. Readers "
    "skip fields that they do not know, and these fields do not change the model's results, so they stay. Notes of "
    "exporters (metadata_props) stay without a finding.",
    "Nothing to do. --ir-version keep keeps the IR version.",
)
_code(
    "SG415",
    "IR version newer than that of the opset",
    "A downgrade lowers the IR version to the newest one of the target opset, unless older readers would misread a "
    "part of the model. A model that stays at its opset keeps its IR version, unless --ir-version is given.",
    "If a runtime needs the older IR version, remove the part that the message names, or give --ir-version.",
)
_code(
    "SG418",
    "opset on the other side",
    "upgrade received an opset older than the model's, or downgrade a newer one.",
    "Use the other command, or convert --opset, which converts in both directions.",
)
_code(
    "SG420",
    "size that cannot change",
    "reshape found a size that other parts of the model depend on, and that cannot follow the new one: weights of that "
    "size, a node that removes the dimension, or a node through which it cannot be followed.",
    "Give the input the size that the node needs, or change the model where that size is made.",
)
_code(
    "SG421",
    "number that can mean several things",
    "A constant has a number that may be fixed, or may follow a dimension that changes. Nothing in the model tells.",
    "Say what it means: reshape --follow NODE[ENTRY]=DIMENSION, or reshape --keep NODE[ENTRY] where it stays (Python: "
    "follow, keep).",
)
_code(
    "SG422",
    "items of a batch that depend on each other",
    "With several items, the model gives other results than for each of them alone: something in it, such as a "
    "normalisation, a sort or a quantisation over all items, mixes them. Nothing is written.",
    "Keep the batch that the model has; --no-verify writes the result all the same.",
)
_code(
    "SG423",
    "sizes that a result needs",
    "The result runs only with some sizes of a dimension, as a network that halves its height twice and doubles it "
    "again needs a multiple of 4, and as a -1 in the target of a Reshape stands for no size beside a 0. The message "
    "says which. A result that needs certain sizes of a batch is refused (SG420).",
    "Pad the input to such a size.",
)
_code(
    "SG424",
    "integers that stay at all sizes",
    "An output of integers is a constant, as a number of boxes is that an exporter has counted. It is no old size, and "
    "reshape leaves it as it is.",
    "If it follows from a size, say how: reshape --follow OUTPUT[ENTRY]=DIMENSION; or say that it stays: reshape "
    "--keep OUTPUT[ENTRY] (Python: follow, keep).",
)
_code(
    "SG425",
    "no standard form",
    "convert --standard found an operator of another domain that operators of ai.onnx cannot express, at this opset or "
    "at all, or not with these inputs and attributes.",
    "The message says what is in the way, and which opset has the form.",
)
_code(
    "SG426",
    "maps are dropped",
    "convert --drop-zipmap makes outputs of the tensors that ZipMap turns into maps, one for each row. The columns are "
    "in the order of the labels. A ZipMap stays if another node of the model reads it, or if a function or a body "
    "holds it.",
    "Read column i of the output for the i-th label.",
)

# 5xx: verification ----------------------------------------------------------------------------------------------
_code(
    "SG501",
    "could not be verified",
    "No engine could run both models, so nothing was compared.",
    "Install onnxruntime (pip install onnxruntime), or give inputs that the model accepts (--inputs). A model with "
    "operators of its own needs their library (--custom-ops).",
)
_code(
    "SG502",
    "result differs",
    "The rewritten model and the original gave different results. This is a bug in splitgraph.",
    "Please report the bug with the model. Nothing was written.",
)
_code(
    "SG503",
    "engine failed",
    "An engine is not installed, crashed, timed out or refused the model.",
    "splitgraph tries the next engine, if there is one.",
)
_code(
    "SG504",
    "differs by rounding only",
    "Some parts round differently before and after. The rest of the model amplifies rounding, for example by the "
    "logarithm of a sum that cancels, or by a quantization step, so some outputs exceed the tolerances. Each part that "
    "differs computes the same when it runs alone, on the values of either model, and what is left of a difference "
    "vanishes in float64.",
    "Nothing to do. If the last digits matter, compare the two models on your own data.",
)
_code(
    "SG505",
    "compared at sizes of 1 only",
    "Only size 1 worked for the dynamic dimensions; the model has a size rule that we cannot see. At size 1 the models "
    "are equal, but size 1 hides errors: a wrong axis, stride, window or order of elements.",
    "Give real sizes with --bind, or real inputs with --inputs (Python: inputs={...}).",
)

_code(
    "SG506",
    "equal results that show too little",
    "Both models gave the same outputs, but a part that differs between them could not be run alone, so that it may "
    "differ on other inputs; or a constant has other elements in the second model, and no run read these. Or the "
    "models are OpenVINO IR, which only runs as a whole, and on all tested inputs the outputs are NaN, infinite or "
    "empty, or do not change with the inputs. The models are not verified.",
    "Give realistic inputs with --inputs (Python: inputs={...}), or sizes with --bind.",
)
_code(
    "SG507",
    "some outputs show nothing",
    "The models, of which one is OpenVINO IR, are equal, as other outputs show. The named outputs show nothing: they "
    "are empty, or the same on all tested inputs.",
    "Give inputs on which these outputs differ, with --inputs (Python: inputs={...}).",
)
_code(
    "SG508",
    "runs only with fewer optimizations",
    "onnxruntime does not load the result at its default optimization level, or gives other outputs there. At a lower "
    "level it runs the result, and the results are equal. The fault lies in onnxruntime's optimizer; the model is "
    "correct.",
    "Set SessionOptions.graph_optimization_level to the level that the message names, or use another version of "
    "onnxruntime.",
)
_code(
    "SG509",
    "expected outputs not given",
    "The test data holds outputs that the model is expected to give, and the first model gives others. The verdict "
    "does not depend on the expected outputs, because the two models are compared with each other. The test data may "
    "belong to another version of the model or to another engine, or may be damaged.",
    "Check that the test data belongs to the model, and that the engine computes the model as you expect.",
)
_code(
    "SG510",
    "provider without work",
    "A provider was asked for, and onnxruntime gave none of the nodes of a model to it: another provider ran them. The "
    "verdict says nothing about the provider that was asked for.",
    "Check which operators and element types the provider supports, or leave --provider out.",
)

_code(
    "SG511",
    "run in another form",
    "What an engine ran is not the model exactly as it is written, but means the same. An engine that lacks kernels of "
    "a new opset ran the model as an older opset, at which its operators are the same; the message names those. For an "
    "IR that stores its weights as float16, as OpenVINO does by default, those of the other model were rounded to "
    "float16, too.",
    "Nothing to do. To compare with full weights, save the IR with compress_to_fp16=False.",
)
_code(
    "SG512",
    "sizes at which only running was checked",
    "Only at the old sizes is there a result to compare with. At other sizes the new model runs, and nothing "
    "says what it should give there.",
    "Compare with the original at these sizes if you can: export it again, and use verify.",
)
_code(
    "SG513",
    "not compared on all drawn values",
    "What differs between two models runs alone on the values of the first model, and then on drawn values. That takes "
    "at most 20 times what one run of both models takes and a few seconds, and was not enough for all of them. The "
    "verdict holds for what was compared: the outputs of both models, and every part on the values that reach it. The "
    "same is said of a part that decides something about sizes, such as whether a length passes a limit, where the "
    "time was over before all of these sizes were found and run. A "
    "part that was never compared has no verdict (SG506).",
    "Give the seconds that the verification may take with --timeout.",
)
_code(
    "SG514",
    "equal up to rounding, and one side loses digits",
    "A part of the two models rounds differently, which vanishes in float64. One side is nearer to the result of "
    "float64; the other one loses digits, because it cancels numbers that the first one does not, such as "
    "E[x²] - E[x]² for a variance, or adds numbers of very different sizes. The message says which, how many, and "
    "where. It is a warning where the second model loses, and a note where the first one does.",
    "Write the part so that it does not cancel: the mean of (x - mean)² for a variance. Or compute it in float64.",
)
_code(
    "SG515",
    "different only on inner values that no run gave",
    "A part of the two models runs alone on drawn values, and differs at ordinary numbers. With all nodes that "
    "its inputs are computed from, it is equal, on all kinds of values for the inputs of the model. So the model does "
    "not give such values to this part: its inputs depend on each other, such as x and Relu(x), or the elements of one "
    "input do, such as those of a Softmax. Or a part computes another value of the same name, such as m - x for x - m, "
    "and with the nodes that read this value it is equal.",
    "Nothing to do. The message says at which values the part differs: they matter only where other nodes are put in "
    "front of it.",
)

# 6xx: how the program was called ---------------------------------------------------------------------------------
_code(
    "SG601",
    "argument not allowed",
    "A command line argument has the wrong form, or contradicts another argument.",
    "The message says what is allowed. --help lists the arguments.",
)
_code(
    "SG602",
    "not enough resources",
    "The machine lacked memory or space for temporary files, or the operating system refused another request.",
    "The message names the missing resource.",
)
_code(
    "SG603",
    "fault of splitgraph",
    "splitgraph failed in an unexpected way. No model should cause this.",
    "Please report the bug with the model. The environment variable SPLITGRAPH_DEBUG=1 shows a traceback.",
)
_code(
    "SG604",
    "process of a model ended",
    "With many models, the process that worked on this one ended before it had a result, twice: a crash, or a lost "
    "worker.",
    "Run the command for this model alone; please report a crash of splitgraph with the model.",
)
_code(
    "SG605",
    "time limit exceeded",
    "With many models, this one took longer than --timeout allows. Its process was ended; nothing was written.",
    "Give more time with --timeout, or leave the model out with --exclude.",
)
_code(
    "SG606",
    "acceptance that nothing needs",
    "An error was accepted by name, but the model has no such error.",
    "Remove the acceptance from the call or from pyproject.toml, or correct its location.",
)

# 7xx: what a target reads ----------------------------------------------------------------------------------------
_code(
    "SG701",
    "refused by the target",
    "The runtime that the model is for does not load a node of this kind, as a measurement or its own documents say.",
    "Run splitgraph convert --target, which writes a form that the runtime reads.",
)
_code(
    "SG702",
    "wrong in the target",
    "The runtime that the model is for loads a node of this kind and silently gives other results than the "
    "specification.",
    "Run splitgraph convert --target, which writes a form that the runtime computes correctly.",
)
_code(
    "SG703",
    "fatal for the target",
    "The process of the runtime that the model is for ends at a node of this kind.",
    "Run splitgraph convert --target, which writes a form that the runtime reads.",
)
_code(
    "SG704",
    "too new for the target",
    "The opset or the IR version of the model is newer than the runtime that the model is for reads.",
    "Run splitgraph convert --target, or use a newer version of the runtime.",
)
_code(
    "SG705",
    "not known of the target",
    "Nobody measured whether the runtime that the model is for reads such a node, and its documents do not say.",
    "Try the model in the runtime, and compare its results with those of ONNX Runtime.",
)
_code(
    "SG706",
    "no form that the target reads",
    "The model cannot be converted for the target: the runtime reads this node in no form that splitgraph can write.",
    "The message names what is in the way. Give the dimensions fixed sizes, change the model, or use another runtime.",
)
_code(
    "SG707",
    "not always read by the target",
    "The runtime was measured with several cases of this operator, and did not read all of them. Nothing that this "
    "node has tells them apart.",
    "Try the model in the runtime, and compare its results with those of ONNX Runtime.",
)

_code(
    "SG708",
    "version of the target that was not measured",
    "This version of the runtime was not measured. What is said is known of the nearest older version that was.",
    "Run splitgraph check --run where this version is installed.",
)
_code(
    "SG709",
    "refused when it was run",
    "The model was run in the runtime itself, which gave an error, died or did not end. The message names the first "
    "node at which that happens.",
    "Run splitgraph convert --target, which runs its result in the runtime, too.",
)
_code(
    "SG710",
    "other results when it was run",
    "The model was run in the runtime itself, which gave other results than ONNX Runtime. The message names the first "
    "node whose result differs.",
    "Run splitgraph convert --target, which runs its result in the runtime, too.",
)
_code(
    "SG711",
    "not run in the target",
    "The model was to be run in the runtime itself, and was not: the runtime is not installed, or there is nothing to "
    "compare its results with.",
    "Install the runtime where it is missing, or name a Python that has it with --runtime-python.",
)

# 8xx: the installation -------------------------------------------------------------------------------------------
_code(
    "SG801",
    "engine that does not work",
    "The package of an engine is installed, but the engine cannot be imported, crashes, hangs, or runs no Split.",
    "The message says what failed. Install the package of the engine again, in a version for this Python and machine.",
)
_code(
    "SG802",
    "package missing or too old",
    "A package that splitgraph requires is missing, or an installed package is older than splitgraph supports.",
    "Install the newest version of the package with pip.",
)
_code(
    "SG803",
    "folder that cannot be written to",
    "splitgraph cannot write to a folder that it needs: the folder is missing, full or read-only.",
    "Free space, or set TMPDIR (on Windows TEMP) to another folder for temporary files.",
)
