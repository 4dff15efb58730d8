"""ggml-compiler on ggml's CPU backend."""

PACKAGES = {"0.1.0": ["ggml-compiler==0.1.0", "torch==2.13.0"]}


class Refused(Exception):
    """Outputs that the session does not give."""


def VERSION():
    import importlib.metadata

    import ggml_compiler  # noqa: F401 - imported once for all models

    return importlib.metadata.version("ggml-compiler")


def run(model, inputs, outputs):
    import ggml_compiler

    shapes = {name: list(value.shape) for name, value in inputs.items()}
    ggml_compiler.compile(model, list(inputs.values()), out_dir="compiled", input_shapes=shapes)
    results = ggml_compiler.Session("compiled/model.gguf", backend="cpu").run(*inputs.values())
    if isinstance(results, dict):
        return [results[name] for name in outputs if name in results]
    return list(results) if isinstance(results, (list, tuple)) else [results]
