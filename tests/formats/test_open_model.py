"""A model source is a ModelProto, a path or a graphsurgeon graph; what comes back is of the kind that went in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import onnx_graphsurgeon as gs
import pytest

from splitgraph.findings.diagnostics import ModelError
from splitgraph.formats import give_back, load, open_model, save

from .tiny_models import add_model

CHECKOUT = Path(__file__).parents[2]

NOT_MODELS = [
    (None, "not NoneType"),
    (3, "not int"),
    (add_model().SerializeToString(), "not bytes; use onnx.load_from_string"),
    (add_model().graph, "onnx.helper.make_model"),
    ({"model": 1}, "not dict"),
    (gs.Graph, "not type"),
    ("nowhere.XML", "no such file"),
    ("", "not a file name"),
]


@pytest.mark.parametrize(("source", "words"), NOT_MODELS)
def test_what_is_no_model(source: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words) as caught:
        open_model(source)
    assert caught.value.diagnostics[0].code == "SG101"


@pytest.mark.parametrize("path", [add_model(), b"model.onnx", 7, None])
def test_load_takes_only_paths(path: Any) -> None:
    with pytest.raises(ModelError, match="a path is a str"):
        load(path)


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("other.onnx", "a.onnx"),
        (Path("other.onnx"), "a.onnx"),
        (b"", "a.onnx"),
        (add_model(), "a.xml"),
        (add_model(), 1),
    ],
)
def test_save_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: Any, path: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError):
        save(model, path)
    assert list(tmp_path.iterdir()) == []


def test_model_proto_is_taken_as_it_is() -> None:
    model = add_model()
    loaded = open_model(model)
    assert (loaded.model is model, loaded.kind, loaded.path) == (True, "onnx", None)
    assert give_back(model, loaded) is model


@pytest.mark.parametrize("kind", [str, Path])
def test_path(tmp_path: Path, kind: type) -> None:
    save(add_model(), kind(tmp_path / "m.onnx"))
    loaded = open_model(kind(tmp_path / "m.onnx"))
    assert (loaded.model, loaded.kind, loaded.path) == (add_model(), "path", tmp_path / "m.onnx")
    assert load(kind(tmp_path / "m.onnx")) == add_model()
    assert isinstance(give_back(loaded.model, loaded), onnx.ModelProto)


def test_graphsurgeon_graph(tmp_path: Path) -> None:
    graph = gs.import_onnx(add_model())
    loaded = open_model(graph)
    assert (loaded.kind, loaded.model.graph.node[0].op_type) == ("graphsurgeon", "Add")
    assert isinstance(give_back(loaded.model, loaded), gs.Graph)
    save(graph, tmp_path / "m.onnx")
    assert load(tmp_path / "m.onnx") == loaded.model


def test_graphsurgeon_is_not_imported_for_other_models() -> None:
    program = (
        "import sys, onnx; from splitgraph.formats import open_model\n"
        "from splitgraph.findings.diagnostics import ModelError\n"
        "open_model(onnx.ModelProto())\n"
        "try: open_model(object())\n"
        "except ModelError: print('onnx_graphsurgeon' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=CHECKOUT)
    assert run.stdout.strip() == "False"
