"""nxrt, whose sessions look like onnxruntime's."""

PACKAGES = {"0.1.0.dev6": ["nxrt==0.1.0.dev6", "numpy"]}


def VERSION():
    import nxrt

    return nxrt.__version__


def run(model, inputs, outputs):
    import nxrt

    results = nxrt.InferenceSession(model).run(None, inputs)
    values = results.values() if isinstance(results, dict) else results
    return [value.numpy() if hasattr(value, "numpy") else value for value in values]
