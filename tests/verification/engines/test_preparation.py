"""Libraries of operators and providers: what is refused, what is a failure of the engine, and that only the process of
an engine loads a library.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from verifying import verify_models

import splitgraph
from splitgraph.findings.diagnostics import SplitgraphError
from splitgraph.verification import help_texts
from splitgraph.verification.engine_settings import EngineSettings
from splitgraph.verification.engines.onnxruntime_engine import load_onnx
from splitgraph.verification.values import UnsupportedError
from splitgraph.verification.verification import Verification

from ..small_models import split_model
from .test_engine_process import INSTALLED

BEFORE, AFTER = split_model(13, axis=1), split_model(18, axis=1, num_outputs=2)
COMPILER = shutil.which("gcc") or shutil.which("cc")
# Each is a library in C. The functions are those that the engines look for; a null pointer is success.
NOTE = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void note(const char *what) {
    FILE *file = fopen(getenv("NOTES"), "a");
    fprintf(file, "%s %d\\n", what, getpid());
    fclose(file);
}
"""
LIBRARIES = {
    "good": NOTE + 'void *RegisterCustomOps(void *options, void *api) { note("registered"); return 0; }',
    "neither": "int answer(void) { return 42; }",
    "crashing": "void *RegisterCustomOps(void *options, void *api) { *(volatile int *)0 = 1; return 0; }",
    "aborting": "#include <stdlib.h>\n__attribute__((constructor)) static void start(void) { abort(); }",
    "endless": 'void *RegisterCustomOps(void *options, void *api) { for (;;) __asm__ volatile(""); }',
    "incomplete": "int lacking(void); void *RegisterCustomOps(void *o, void *api) { lacking(); return 0; }",
}
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no compiler of C")


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("libraries")
    made = {}
    for name, source in LIBRARIES.items():
        (folder / f"{name}.c").write_text(source)
        made[name] = folder / f"lib{name}.so"
        command = [
            str(COMPILER),
            "-shared",
            "-fPIC",
            "-w",
            "-o",
            str(made[name]),
            str(folder / f"{name}.c"),
            "-Wl,-z,now",
        ]
        subprocess.run(command, check=True)
    return made


def reasons(found: Verification) -> str:
    assert found.verdict == "not-run"
    return "; ".join(each.message for each in found.diagnostics)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"custom_ops": "nowhere.so"}, "library of operators 'nowhere.so' does not exist; give the file of a library"),
    ({"custom_ops": [os.curdir]}, "is a folder"),
    ({"custom_ops": [3]}, "is 3; it must be the path of a file"),
    ({"custom_ops": [__file__], "engine": "reference"}, "the reference evaluator loads no libraries"),
    ({"providers": [3]}, "a provider is 3; it must be a name"),
    ({"providers": ["cpu"], "engine": "reference"}, "the reference evaluator has no providers"),
    ({"providers": "cudda"}, "there is no provider 'cudda'; onnxruntime has acl, .*cuda.*; OpenVINO has CPU, GPU, NPU"),
    ({"providers": ["GPU"], "engine": "onnxruntime"}, "'GPU' is one of OpenVINO, but onnxruntime runs these models"),
    ({"providers": ["cuda"], "engine": "openvino"}, "'cuda' is one of onnxruntime, but OpenVINO runs these models"),
    ({"providers": ["cuda", "GPU"]}, "'GPU' is one of OpenVINO, but onnxruntime runs these models"),
    ({"providers": "NewExecutionProvider"}, "onnxruntime has no provider NewExecutionProvider here; it has: .*CPUExec"),
    ({"providers": ["cpu", "vsinpu"]}, "onnxruntime has no provider VSINPUExecutionProvider here; it has: .*CPUExec"),
]


@pytest.mark.parametrize(("options", "reason"), REFUSED)
def test_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(SplitgraphError, match=reason):
        splitgraph.verify(BEFORE, AFTER, **options)
    with pytest.raises(SplitgraphError, match=reason):
        splitgraph.upgrade(BEFORE, 18, verify=True, **options)


@pytest.mark.skipif("openvino" not in INSTALLED, reason="OpenVINO is not installed")
def test_a_device_that_is_not_here_is_refused() -> None:
    """Numbered, as no machine has so many. Only OpenVINO has it, so that no other engine is asked."""
    with pytest.raises(SplitgraphError, match=r"OpenVINO has no device GPU\.77 here; it has: CPU"):
        splitgraph.verify(BEFORE, AFTER, providers="gpu.77")


FAILING = {
    "neither": "libneither.so is not a library of operators for onnxruntime: it has no function RegisterCustomOps",
    "crashing": "libcrashing.so: crashed (SIGSEGV)",
    "aborting": "libaborting.so: crashed (SIGABRT)",
    "endless": "libendless.so: did not finish within ",
    "incomplete": "libincomplete.so cannot be loaded: undefined symbol: lacking",
    "no library": "cannot be loaded: ",
}


@needs_compiler
@pytest.mark.parametrize("name", FAILING)
@pytest.mark.sample(2)
def test_a_library_that_does_not_load_is_a_failure_of_the_engine(
    name: str, libraries: dict[str, Path], tmp_path: Path
) -> None:
    path = libraries.get(name, tmp_path / "text.so")
    if name not in libraries:
        path.write_text("no library")
    found = verify_models(BEFORE, AFTER, custom_ops=path, timeout=5 if name == "endless" else 60)
    assert f"onnxruntime: the library {path}" in reasons(found)
    assert FAILING[name] in reasons(found)
    assert found.diagnostics[-1].help == help_texts.LIBRARY
    assert "reference" not in reasons(found)


@needs_compiler
@pytest.mark.skipif("openvino" not in INSTALLED, reason="OpenVINO is not installed")
def test_a_library_of_the_other_engine(
    libraries: dict[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NOTES", str(tmp_path / "notes"))
    found = verify_models(BEFORE, AFTER, custom_ops=libraries["good"], engine="openvino")
    assert "is not an extension of OpenVINO: it has no function create_extensions" in reasons(found)


@needs_compiler
def test_only_the_process_of_the_engine_loads_it_and_only_if_it_is_named(
    libraries: dict[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    monkeypatch.setenv("NOTES", str(notes))
    monkeypatch.chdir(libraries["good"].parent)
    found = verify_models(BEFORE, AFTER, custom_ops=["libgood.so"])
    assert (found.verdict, found.engine) == ("equal", "onnxruntime")
    processes = {line.split()[1] for line in notes.read_text().splitlines()}
    assert str(os.getpid()) not in processes
    assert str(libraries["good"]) not in Path("/proc/self/maps").read_text()
    before = notes.read_text()
    verify_models(BEFORE, AFTER)
    assert notes.read_text() == before


def test_what_the_models_ran_on() -> None:
    assert verify_models(BEFORE, AFTER).providers == ("CPUExecutionProvider",)
    assert verify_models(BEFORE, AFTER, providers=["CPU"]).providers == ("CPUExecutionProvider",)
    assert verify_models(BEFORE, AFTER, engine="reference").providers == ()
    assert verify_models(AFTER, AFTER, bind={"N": 0}).providers == ("CPUExecutionProvider",)


@pytest.mark.skipif("openvino" not in INSTALLED, reason="OpenVINO is not installed")
def test_what_openvino_ran_on() -> None:
    for providers in ((), ("cpu",)):
        found = verify_models(BEFORE, AFTER, engine="openvino", providers=providers)
        assert (found.verdict, found.providers) == ("equal", ("CPU",))


def test_a_provider_that_runs_no_node_is_a_warning() -> None:
    """Azure's has no operators of ai.onnx; every wheel for the CPU has it."""
    import onnxruntime

    if "AzureExecutionProvider" not in onnxruntime.get_available_providers():
        pytest.skip("no AzureExecutionProvider")
    if not hasattr(onnxruntime.InferenceSession, "get_provider_graph_assignment_info"):
        pytest.skip("this onnxruntime does not say what runs where")
    found = verify_models(BEFORE, AFTER, providers="azure")
    (warning,) = found.warnings
    assert (found.verdict, warning.code) == ("equal", "SG510")
    assert warning.message == "AzureExecutionProvider ran no node of a model; CPUExecutionProvider did"
    assert found.providers == ("AzureExecutionProvider", "CPUExecutionProvider")


class _Session:
    """A session of onnxruntime that fell back to the CPU."""

    def __init__(self, *arguments: object, providers: list[str], enable_fallback: int) -> None:
        assert (providers, enable_fallback) == (["CUDAExecutionProvider", "CPUExecutionProvider"], 0)

    def get_providers(self) -> list[str]:
        return ["CPUExecutionProvider"]


def test_a_provider_that_does_not_start_is_no_silent_fallback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime

    onnx.save(BEFORE, tmp_path / "model.onnx")
    monkeypatch.setattr(onnxruntime, "InferenceSession", _Session)
    with pytest.raises(UnsupportedError, match="CUDAExecutionProvider does not start here") as failed:
        load_onnx(tmp_path / "model.onnx", None, EngineSettings(providers=("CUDAExecutionProvider",)))
    help = help_texts.where_engines_fail("onnxruntime", "onnxruntime", str(failed.value))
    assert help == help_texts.PROVIDER


def test_an_ir_runs_in_openvino_and_the_other_model_in_onnxruntime() -> None:
    """Each takes its own of the providers. The IR has no constants, and so no file of weights."""
    if "openvino" not in INSTALLED:
        pytest.skip("OpenVINO is not installed")
    import openvino

    port = openvino.opset13.parameter([2, 4], np.float32, name="x")
    ir = openvino.Model([openvino.opset13.relu(port)], [port], "m")
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[2, 4] x) => (float[2, 4] y) { y = Relu(x) }'
    )
    found = splitgraph.verify(ir, model, providers=["cpu"])
    assert (found.verdict, found.engine) == ("equal", "openvino+onnxruntime")
    assert found.providers == ("CPU", "CPUExecutionProvider")
    with pytest.raises(SplitgraphError, match=r"OpenVINO has no device NPU\.9 here"):
        splitgraph.verify(ir, model, providers=["npu.9"])
