"""OpenVINO's CPU device, computing in float32."""

PACKAGES = {
    "2026.4.1": ["openvino==2026.4.1"],
    "2024.6.0": ["openvino==2024.6.0"],
    "2023.3.0": ["openvino==2023.3.0", "numpy<2"],
}


def VERSION():
    import openvino

    return openvino.__version__ if hasattr(openvino, "__version__") else openvino.runtime.get_version()


def run(model, inputs, outputs):
    import openvino

    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled.create_infer_request().infer(inputs)
    return [results[output] for output in compiled.outputs]
