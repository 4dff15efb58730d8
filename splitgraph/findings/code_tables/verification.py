"""What a verification could not compare, and how equal its results are."""

from __future__ import annotations

from splitgraph.findings.code_tables.code_info import CodeInfo

# 5xx
VERIFICATION = {
    "SG501": CodeInfo(
        "could not be verified",
        "No engine could run both models, so nothing was compared.",
        "Install onnxruntime (pip install onnxruntime), or give inputs that the model accepts (--inputs). A model "
        "with operators of its own needs their library (--custom-ops).",
    ),
    "SG502": CodeInfo(
        "result differs",
        "The rewritten model and the original gave different results. This is a bug in splitgraph.",
        "Please report the bug with the model. Nothing was written.",
    ),
    "SG503": CodeInfo(
        "engine failed",
        "An engine is not installed, crashed, timed out or refused the model.",
        "splitgraph tries the next engine, if there is one.",
    ),
    "SG504": CodeInfo(
        "differs by rounding only",
        "Some parts round differently before and after. The rest of the model amplifies rounding, for example by the "
        "logarithm of a sum that cancels, or by a quantization step, so some outputs exceed the tolerances. Each part "
        "that differs computes the same when it runs alone, on the values of either model, and what is left of a "
        "difference vanishes in float64.",
        "Nothing to do. If the last digits matter, compare the two models on your own data.",
    ),
    "SG505": CodeInfo(
        "compared at sizes of 1 only",
        "Only size 1 worked for the dynamic dimensions; the model has a size rule that we cannot see. At size 1 the "
        "models are equal, but size 1 hides errors: a wrong axis, stride, window or order of elements.",
        "Give real sizes with --bind, or real inputs with --inputs (Python: inputs={...}).",
    ),
    "SG506": CodeInfo(
        "equal results that show too little",
        "Both models gave the same outputs, but a part that differs between them could not be run alone, so that it "
        "may differ on other inputs; or a constant has other elements in the second model, and no run read these. Or "
        "the models are OpenVINO IR, which only runs as a whole, and on all tested inputs the outputs are NaN, "
        "infinite or empty, or do not change with the inputs. The models are not verified.",
        "Give realistic inputs with --inputs (Python: inputs={...}), or sizes with --bind.",
    ),
    "SG507": CodeInfo(
        "some outputs show nothing",
        "The models, of which one is OpenVINO IR, are equal, as other outputs show. The named outputs show nothing: "
        "they are empty, or the same on all tested inputs.",
        "Give inputs on which these outputs differ, with --inputs (Python: inputs={...}).",
    ),
    "SG508": CodeInfo(
        "runs only with fewer optimizations",
        "onnxruntime does not load the result at its default optimization level, or gives other outputs there. At a "
        "lower level it runs the result, and the results are equal. The fault lies in onnxruntime's optimizer; the "
        "model is correct.",
        "Set SessionOptions.graph_optimization_level to the level that the message names, or use another version of "
        "onnxruntime.",
    ),
    "SG509": CodeInfo(
        "expected outputs not given",
        "The test data holds outputs that the model is expected to give, and the first model gives others. The "
        "verdict does not depend on the expected outputs, because the two models are compared with each other. The "
        "test data may belong to another version of the model or to another engine, or may be damaged.",
        "Check that the test data belongs to the model, and that the engine computes the model as you expect.",
    ),
    "SG510": CodeInfo(
        "provider without work",
        "A provider was asked for, and onnxruntime gave none of the nodes of a model to it: another provider ran "
        "them. The verdict says nothing about the provider that was asked for.",
        "Check which operators and element types the provider supports, or leave --provider out.",
    ),
    "SG511": CodeInfo(
        "run in another form",
        "What an engine ran is not the model exactly as it is written, but means the same. An engine that lacks "
        "kernels of a new opset ran the model as an older opset, at which its operators are the same; the message "
        "names those. For an IR that stores its weights as float16, as OpenVINO does by default, those of the other "
        "model were rounded to float16, too.",
        "Nothing to do. To compare with full weights, save the IR with compress_to_fp16=False.",
    ),
    "SG512": CodeInfo(
        "sizes at which only running was checked",
        "Only at the old sizes is there a result to compare with. At other sizes the new model runs, and nothing says "
        "what it should give there.",
        "Compare with the original at these sizes if you can: export it again, and use verify.",
    ),
    "SG513": CodeInfo(
        "not compared on all drawn values",
        "What differs between two models runs alone on the values of the first model, and then on drawn values. That "
        "takes at most 20 times what one run of both models takes and a few seconds, and was not enough for all of "
        "them. The verdict holds for what was compared: the outputs of both models, and every part on the values that "
        "reach it. The same is said of a part that decides something about sizes, such as whether a length passes a "
        "limit, where the time was over before all of these sizes were found and run. A part that was never compared "
        "has no verdict (SG506).",
        "Give the seconds that the verification may take with --timeout.",
    ),
    "SG514": CodeInfo(
        "equal up to rounding, and one side loses digits",
        "A part of the two models rounds differently, which vanishes in float64. One side is nearer to the result of "
        "float64; the other one loses digits, because it cancels numbers that the first one does not, such as E[x²] - "
        "E[x]² for a variance, or adds numbers of very different sizes. The message says which, how many, and where. "
        "It is a warning where the second model loses, and a note where the first one does.",
        "Write the part so that it does not cancel: the mean of (x - mean)² for a variance. Or compute it in float64.",
    ),
    "SG515": CodeInfo(
        "different only on inner values that no run gave",
        "A part of the two models runs alone on drawn values, and differs at ordinary numbers. With all nodes that "
        "its inputs are computed from, it is equal, on all kinds of values for the inputs of the model. So the model "
        "does not give such values to this part: its inputs depend on each other, such as x and Relu(x), or the "
        "elements of one input do, such as those of a Softmax. Or a part computes another value of the same name, "
        "such as m - x for x - m, and with the nodes that read this value it is equal.",
        "Nothing to do. The message says at which values the part differs: they matter only where other nodes are put "
        "in front of it.",
    ),
}
