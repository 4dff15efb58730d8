"""TVM: Relax's importer for ONNX, compiled for the CPU."""

PACKAGES = {"0.27.0.post1": ["apache-tvm==0.27.0.post1", "onnx"]}


def VERSION():
    import tvm
    import tvm.relax.frontend.onnx

    return tvm.__version__


def run(model, inputs, outputs):
    import onnx
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    compiled = tvm.compile(from_onnx(onnx.load(model)), target="llvm")
    machine = relax.VirtualMachine(compiled, tvm.cpu())
    results = machine["main"](*[tvm.runtime.tensor(value) for value in inputs.values()])
    return [value.numpy() for value in ([results] if hasattr(results, "numpy") else results)]
