"""onnx2tf: a TFLite model, run by TensorFlow's interpreter."""

import glob

PACKAGES = {"1.29.24": ["onnx2tf==1.29.24"]}


class Refused(Exception):
    """A model that onnx2tf does not convert."""


def VERSION():
    import importlib.metadata

    import onnx2tf  # noqa: F401 - imported once for all models
    import tensorflow  # noqa: F401

    return importlib.metadata.version("onnx2tf")


def run(model, inputs, outputs):
    import onnx2tf

    try:
        onnx2tf.convert(
            input_onnx_file_path=model,
            output_folder_path="converted",
            keep_shape_absolutely_input_names=list(inputs),
            non_verbose=True,
        )
    except SystemExit as error:
        raise Refused(f"onnx2tf exits with {error.code}") from error
    written = glob.glob("converted/*float32.tflite")
    if not written:
        raise Refused("onnx2tf wrote no TFLite model")
    return _run(written[0], inputs)


def _run(path, inputs):
    import tensorflow as tf

    interpreter = tf.lite.Interpreter(path)
    pairs = list(zip(interpreter.get_input_details(), inputs.values(), strict=True))
    for detail, value in pairs:
        interpreter.resize_tensor_input(detail["index"], value.shape)
    interpreter.allocate_tensors()
    for detail, value in pairs:
        interpreter.set_tensor(detail["index"], value.astype(detail["dtype"]))
    interpreter.invoke()
    # The converter numbers the outputs in the model's order, and TFLite lists them in another one.
    details = sorted(interpreter.get_output_details(), key=lambda detail: (len(detail["name"]), detail["name"]))
    return [interpreter.get_tensor(detail["index"]) for detail in details]
