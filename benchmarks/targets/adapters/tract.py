"""tract, in the order of its own command: read, make typed, optimise, run."""

PACKAGES = {"0.23.9": ["tract==0.23.9", "numpy"]}


def VERSION():
    import tract

    return tract.version()


def run(model, inputs, outputs):
    import tract

    runnable = tract.onnx().load(model).into_model().into_runnable()
    return [value.to_numpy() for value in runnable.run(list(inputs.values()))]
