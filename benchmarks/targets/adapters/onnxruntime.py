"""onnxruntime on a CPU, with all its optimisations."""

# onnxruntimes up to 1.17 were built for NumPy 1.
PACKAGES = {
    "1.32.0": ["onnxruntime==1.32.0"],
    "1.20.1": ["onnxruntime==1.20.1"],
    "1.17.3": ["onnxruntime==1.17.3", "numpy<2"],
    "1.15.1": ["onnxruntime==1.15.1", "numpy<2"],
}


def VERSION():
    import onnxruntime

    return onnxruntime.__version__


def run(model, inputs, outputs):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)
