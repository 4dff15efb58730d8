"""What is wrong with a model: with its file and as a whole, with its splits, and with all its other nodes."""

from __future__ import annotations

from splitgraph.findings.code_tables.code_info import CodeInfo

# 1xx: the file and the model as a whole
FILES = {
    "SG101": CodeInfo(
        "not a readable model file",
        "The file is missing, empty or truncated, or its content is not a model of this format.",
        "Check the path; export or download the model again.",
    ),
    "SG102": CodeInfo(
        "cycle",
        "A node reads a value that depends on its own output, or a function calls itself.",
        "Remove the cycle; export the model again.",
    ),
    "SG103": CodeInfo(
        "opset that does not exist",
        "The model imports two opsets of ai.onnx, one below 1, or one that splitgraph and the installed onnx do not "
        "know.",
        "Install a newer onnx, or export the model at an older opset.",
    ),
    "SG104": CodeInfo(
        "name defined twice",
        "Two outputs, inputs or initializers of one graph have the same name. ONNX graphs assign each name once. Two "
        "equal initializers are a warning: runtimes load them. Functions of one model differ in domain, name or "
        "overload.",
        "Rename one of the two values or functions.",
    ),
    "SG105": CodeInfo(
        "value that nothing produces",
        "A node or a graph output reads a name that no input, initializer or earlier node defines.",
        "Export the model again, or add the missing input.",
    ),
    "SG106": CodeInfo(
        "IR version that does not exist",
        "The file declares an IR version that is newer than the installed onnx knows.",
        "Install a newer onnx, or export the model for an older IR version.",
    ),
    "SG107": CodeInfo(
        "external data cannot be read",
        "A tensor's external data file is missing, too short, or lies outside the model's folder.",
        "Put the data file beside the model, at the relative path that the model names.",
    ),
    "SG108": CodeInfo(
        "file exists",
        "The output file exists. splitgraph overwrites a file only on request.",
        "Choose another name with -o, or pass --force.",
    ),
    "SG109": CodeInfo(
        "file cannot be written",
        "The output could not be written. An earlier file of that name is unchanged.",
        "Check the folder, its permissions and the free space.",
    ),
    "SG110": CodeInfo(
        "opset import missing",
        "A node's domain is not among the opset imports of its model or function.",
        "Add the opset import, or export the model again.",
    ),
    "SG111": CodeInfo(
        "malformed model",
        "The file was read, but a part of the model violates the format.",
        "Export the model again; onnx.checker may say more.",
    ),
    "SG112": CodeInfo(
        "nodes out of order",
        "A node precedes the producer of its input. ONNX requires topological order; onnxruntime and OpenVINO sort "
        "the nodes. splitgraph infers and converts the model as if its nodes were sorted. infer -o keeps their order.",
        "Run upgrade, downgrade or convert: these commands write the nodes sorted.",
    ),
    "SG113": CodeInfo(
        "weights removed",
        "Most tensors of the model have a shape but no elements. Such models serve for display or to estimate sizes. "
        "splitgraph infers and converts as much as the shapes determine. Such a model cannot be run.",
        "Nothing to do for shapes. To run or verify, use the model that has its weights.",
    ),
    "SG114": CodeInfo(
        "nested too deep",
        "Subgraphs, function calls or types are nested deeper than splitgraph supports. protobuf refuses files with "
        "so many nested subgraphs. Functions that call functions in branches and loops can nest deeper, and so can "
        "models that were made in memory.",
        "Reduce the nesting of subgraphs or functions.",
    ),
}

# 2xx: the split operators
SPLITS = {
    "SG201": CodeInfo(
        "axis out of range",
        "The axis must lie in [-rank, rank - 1]. A scalar has no axis to split.",
        "Correct the axis.",
    ),
    "SG202": CodeInfo(
        "number of lengths is not the number of outputs",
        "There must be exactly one length for each output.",
        "Give one length for each output. Unused outputs count, too.",
    ),
    "SG203": CodeInfo(
        "empty chunk",
        "num_outputs parts of ceil(d / num_outputs) exceed the dimension, so the last parts are empty. By the "
        "specification, a length is negative. The reference evaluator clamps the lengths; onnxruntime refuses the "
        "node.",
        "Give explicit lengths (convert --to split --explicit-lengths): every runtime accepts explicit lengths.",
    ),
    "SG204": CodeInfo(
        "lengths do not sum to the dimension",
        "The sum of the lengths must equal the dimension on the split axis.",
        "Correct the lengths, or the shape of the input.",
    ),
    "SG205": CodeInfo(
        "negative length",
        "Every length must be at least 0. Only VariadicSplit allows one -1, which means the rest.",
        "Correct the lengths.",
    ),
    "SG206": CodeInfo(
        "dimension is not divisible into equal parts",
        "Without lengths the parts are equal, so the number of parts must divide the dimension.",
        "Give explicit lengths, or use Split-18 with num_outputs, whose last part may be smaller.",
    ),
    "SG207": CodeInfo(
        "neither split nor num_outputs",
        "From opset 18 on, Split requires either the input split or the attribute num_outputs. If no chunk would be "
        "empty, the node has only one reading: upgrade, downgrade and convert write that reading.",
        "Run upgrade or convert to repair the node, or set num_outputs to the number of outputs.",
    ),
    "SG208": CodeInfo(
        "both split and num_outputs",
        "From opset 18 on, Split takes either the input split or the attribute num_outputs, not both. If both are "
        "known to agree, the finding is a warning: upgrade, downgrade and convert then remove num_outputs.",
        "Remove one of the two.",
    ),
    "SG209": CodeInfo(
        "num_outputs is not the number of outputs",
        "num_outputs must be at least 1 and equal the node's number of outputs. Fewer outputs are a warning where "
        "OpenVINO and the reference evaluator take them for the first parts: the dimension is dynamic (OpenVINO: "
        "where it divides evenly), or it divides evenly, or the axis is not negative and the last part is not empty. "
        "upgrade, downgrade and convert then add the missing outputs.",
        "Correct num_outputs or the list of outputs.",
    ),
    "SG210": CodeInfo(
        "element type not allowed",
        "This version of the operator does not allow this element type.",
        "Cast the input, or use a version of the operator that allows the type.",
    ),
    "SG211": CodeInfo(
        "lengths input of the wrong type or rank",
        "The lengths must be an integer tensor of the type and rank that the operator version requires.",
        "Cast or reshape the lengths.",
    ),
    "SG212": CodeInfo(
        "inputs, outputs or attributes do not fit the operator version",
        "The node has an attribute, input or output that this version does not define, or lacks a required one, or "
        "has an attribute twice.",
        "Compare the node with the operator's schema. The exporter may have meant another opset: the finding names "
        "the version whose form the node has. upgrade, downgrade, convert and reshape read such nodes as that version "
        "with --read-by-form (Python: read_by_form=True).",
    ),
    "SG213": CodeInfo(
        "input is not a tensor",
        "The operator splits tensors. This input is a sequence, an optional or a map.",
        "Take the tensor out of the sequence or optional first.",
    ),
    "SG214": CodeInfo(
        "operator does not exist at this opset",
        "The operator was introduced after the opset that the model imports, or removed before that opset. "
        "LayerNormalization is accepted below 17, because onnxruntime's optimizer writes it there and onnxruntime "
        "runs it.",
        "Export the model at an opset that has the operator. Raising only the opset number would change the meaning "
        "of other operators.",
    ),
    "SG215": CodeInfo(
        "chunk size is not positive",
        "A scalar split of SplitToSequence is the size of each chunk. It must be at least 1.",
        "Correct the chunk size.",
    ),
    "SG216": CodeInfo(
        "more than one -1",
        "At most one length of VariadicSplit may be -1, which means the rest.",
        "Give numbers for all lengths but one.",
    ),
    "SG218": CodeInfo(
        "axis input of the wrong type or rank",
        "The axis input must be an integer scalar. VariadicSplit also allows the shape [1].",
        "Cast or reshape the axis.",
    ),
    "SG219": CodeInfo(
        "runtimes disagree on keepdims with a chunk size",
        "By the specification, SplitToSequence ignores keepdims if split is given. onnxruntime still drops the axis "
        "of chunks of length 1, and refuses other chunks. PyTorch's exporter relies on that for unbind.",
        "Remove split, which means chunks of length 1, or remove keepdims: runtimes agree on both forms.",
    ),
    "SG220": CodeInfo(
        "output of a split without a name",
        "In ONNX, an empty name means an omitted output, and the checker accepts it. Every onnxruntime from 1.15 to "
        "1.32 crashes on such a Split.",
        "Give the output a name, even if nothing reads it. The rewriting commands do so.",
    ),
}

# 3xx: inference of everything else
INFERENCE = {
    "SG301": CodeInfo(
        "declared and inferred types differ",
        "The model declares a type or shape that contradicts its nodes. A wrong shape is a warning: runtimes warn and "
        "use the inferred shape, infer writes the inferred shape, and conversion keeps the declaration. Of a value "
        "that other operators compute in the result, conversion keeps only what is inferred, and says so of outputs. "
        "A wrong shape of a split's part is an error, because its lengths and the declaration contradict each other. "
        "A wrong element type is an error, because runtimes do not load the model; in an OpenVINO IR it is a warning, "
        "because OpenVINO uses the inferred type.",
        "Correct the declaration (infer -o does so for shapes), or the node.",
    ),
    "SG302": CodeInfo(
        "invalid node",
        "The operator does not allow the inputs or attributes of the node. It is a warning if at least two of "
        "onnxruntime, OpenVINO and the reference evaluator run the node, all in one way; the message names them. A "
        "value that only another version has, such as mode=bilinear of Upsample-7, is an error, and a conversion "
        "repairs it.",
        "Each finding has its own advice: the attribute to set, the input to correct, or the Cast to insert. To leave "
        "the node as it is, use --accept SG302@LOCATION.",
    ),
    "SG303": CodeInfo(
        "unknown operator",
        "The operator has no schema and no function body, so the types of its outputs are unknown.",
        "Declare its output types in value_info, or add a model-local function.",
    ),
    "SG304": CodeInfo(
        "binding that fits nothing",
        "A name given with --bind or --input-shape does not occur in the model, or the shape contradicts the declared "
        "one.",
        "Check the name against the model's inputs and symbols.",
    ),
    "SG305": CodeInfo(
        "inputs with defaults",
        "From IR version 4 on, an initializer that is also an input is a default value, which a caller may replace. "
        "Its value is therefore unknown, and so are dimensions that depend on the value. Some exporters still list "
        "all initializers as inputs.",
        "If no caller replaces the defaults, use --assume-defaults, or take the initializers out of the inputs: "
        "upgrade, downgrade, convert and reshape do so with --fix-defaults (Python: fix_defaults=True).",
    ),
    "SG306": CodeInfo(
        "branch that cannot run",
        "With these sizes a branch of an If is invalid, and the condition is unknown. The model is valid if the other "
        "branch runs. onnxruntime checks both branches when it loads a model, and refuses a model that is fixed to "
        "such sizes.",
        "Nothing to do if the condition never selects this branch. Do not fix the model to these sizes.",
    ),
    "SG307": CodeInfo(
        "named dimension that can have one size only",
        "An input names a dimension, and a node such as Reshape lets it have one size only: the export wrote the size "
        "of its example input into the node. Every other size fails when the model runs.",
        "Run reshape to make the model fit other sizes, or declare the number instead of the name.",
    ),
}
