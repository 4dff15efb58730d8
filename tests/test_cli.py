"""The command line, end to end: exit codes, streams, files, JSON."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from onnx import TensorProto, helper

import splitgraph
from splitgraph import api, cli
from splitgraph.arguments import parse_bindings, parse_input_shapes, rewritten_path
from splitgraph.conversion.rewrite import Change, Rewrite
from splitgraph.diagnostics import CODES, SplitgraphError, diagnostic
from splitgraph.dim import parse_expression, symbol
from splitgraph.execution.verification import Difference, Verification

ROOT = Path(__file__).parent.parent


def split_model(
    opset: int = 13, shape: Sequence[int | str] = ("N", 6), parts: int = 2, **attributes: object
) -> onnx.ModelProto:
    """x -> Split on axis 1 -> p0, p1, ..."""
    names = [f"p{i}" for i in range(parts)]
    node = helper.make_node("Split", ["x"], names, name="s", **{"axis": 1, **attributes})
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names]
    graph = helper.make_graph([node], "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own to work in, with model.onnx: a valid Split-13 of float32[N, 6] into two."""
    monkeypatch.chdir(tmp_path)
    onnx.save(split_model(), "model.onnx")
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs the command line in this process: its exit code, stdout and stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = cli.main(arguments)
        return (code, *capsys.readouterr())

    return run


Run = Callable[..., tuple[int, str, str]]


def in_child(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs Python with these arguments in the checkout's environment."""
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        cwd=ROOT,
        check=False,
    )


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# The program -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["infer", "--help"], ["explain", "SG203"], ["explain"], []]
)
def test_what_needs_no_model_imports_nothing_heavy(arguments: list[str]) -> None:
    script = (
        "import sys; from splitgraph.cli import main; main(sys.argv[1:]);"
        "heavy = {'onnx', 'numpy', 'rich', 'onnxruntime', 'openvino', 'onnx_graphsurgeon'} & set(sys.modules);"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = in_child("-c", script, *arguments)
    assert (done.returncode, "imported" in done.stderr) == (0, False)


def test_the_three_ways_to_call_it_are_one_program() -> None:
    module, checkout = in_child("-m", "splitgraph", "--help"), in_child("cli.py", "--help")
    assert (module.returncode, checkout.returncode) == (0, 0)
    assert module.stdout == checkout.stdout
    assert module.stdout.startswith("Usage: splitgraph ")
    commands = ["infer", "upgrade", "downgrade", "convert", "verify", "explain"]
    listed = [text.split()[0] for text in module.stdout.partition("Commands:")[2].splitlines() if text.strip()]
    assert [name for name in listed if name in commands] == commands


def test_the_console_script_is_this_program() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'splitgraph = "splitgraph.cli:main"' in text
    assert f'version = "{splitgraph.__version__}"' in text


def test_version(run: Run) -> None:
    assert run("--version") == (0, f"splitgraph {splitgraph.__version__}\n", "")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["frobnicate"],
        ["infer"],
        ["infer", "model.onnx", "--frobnicate"],
        ["upgrade", "model.onnx"],
        ["upgrade", "model.onnx", "--opset", "eighteen"],
        ["convert", "model.onnx"],
        ["convert", "model.onnx", "--to", "slices"],
        ["verify", "model.onnx"],
        ["verify", "model.onnx", "model.onnx", "--engine", "tensorrt"],
        ["verify", "model.onnx", "model.onnx", "--samples", "0"],
    ],
)
def test_wrong_usage(arguments: list[str], run: Run, folder: Path) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err
    assert "Traceback" not in err
    assert files(folder) == {"model.onnx"}


# explain ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["SG203", "sg203", " Sg203 "])
def test_explain_a_code(code: str, run: Run) -> None:
    exit_code, out, err = run("explain", code)
    assert (exit_code, err) == (0, "")
    assert out.startswith(f"SG203  {CODES['SG203'].title}\n")
    assert CODES["SG203"].meaning in out
    assert CODES["SG203"].help in out


def test_explain_lists_all_codes(run: Run) -> None:
    code, out, err = run("explain")
    assert (code, err) == (0, "")
    assert all(code in out for code in CODES)


@pytest.mark.parametrize(
    ("code", "hint"), [("SG299", "did you mean SG2"), ("203", "did you mean SG203"), ("x", "lists all")]
)
def test_explain_an_unknown_code(code: str, hint: str, run: Run) -> None:
    exit_code, out, err = run("explain", code)
    assert (exit_code, out) == (2, "")
    assert err.startswith(f"error: there is no code {code}")
    assert hint in err


# Arguments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "bindings"),
    [
        ([], {}),
        (["N=4"], {"N": 4}),
        (["N=4", "N=4", "M=0"], {"N": 4, "M": 0}),
        (["a=b=7"], {"a=b": 7}),
        (["batch-size=12"], {"batch-size": 12}),
    ],
)
def test_bindings(texts: list[str], bindings: dict[str, int]) -> None:
    assert parse_bindings(texts) == bindings


@pytest.mark.parametrize("texts", [["N"], ["N="], ["=4"], ["N=-1"], ["N=x"], ["N=1.5"], ["N=4", "N=5"], [""], ["N= 4"]])
def test_wrong_bindings(texts: list[str], run: Run, folder: Path) -> None:
    with pytest.raises(SplitgraphError, match="--bind"):
        parse_bindings(texts)
    code, out, err = run("infer", "model.onnx", *(part for text in texts for part in ("--bind", text)))
    assert (code, out) == (2, "")
    assert "--bind" in err


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("x=", ()),
        ("x=5", (5,)),
        ("x=1,3,H,W", (1, 3, symbol("H"), symbol("W"))),
        ("x=?, 4", (None, 4)),
        ("x=N + 2,N+2", (parse_expression("N + 2"), parse_expression("N + 2"))),
        ("x=2*N,(N + 1)//2", (parse_expression("2*N"), parse_expression("(N + 1)//2"))),
        ("x=min(N, 8),3", (parse_expression("min(N, 8)"), 3)),
        ("x=batch-size,2N", (symbol("batch-size"), symbol("2N"))),
        ("x=a*b,seq:0", (symbol("a*b"), symbol("seq:0"))),
        ("x=4294967300", (2**32 + 4,)),
    ],
)
def test_input_shapes(text: str, shape: tuple) -> None:
    assert parse_input_shapes([text], names={"a*b"}) == {"x": shape}


@pytest.mark.parametrize(
    "text", ["x", "=1,2", "x=1,,2", "x=-1", "x=1.5", "x=2 - 3", "x=N +", "x=f(N)", "x=(N", "x=1,2,"]
)
def test_wrong_input_shapes(text: str, run: Run, folder: Path) -> None:
    with pytest.raises(SplitgraphError, match="--input-shape"):
        parse_input_shapes([text], names=())
    code, out, err = run("infer", "model.onnx", "--input-shape", text)
    assert (code, out) == (2, "")
    assert "such as" in err or "allowed" in err


def test_two_shapes_for_one_input() -> None:
    with pytest.raises(SplitgraphError, match="two shapes"):
        parse_input_shapes(["x=1", "x=2"], names=())


@pytest.mark.parametrize(
    ("model", "output"),
    [
        ("model.onnx", "model.opset18.onnx"),
        ("a.b.onnx", "a.b.opset18.onnx"),
        ("model", "model.opset18.onnx"),
        ("sub/model.onnx", "sub/model.opset18.onnx"),
        ("model.xml", "model.opset18.xml"),
    ],
)
def test_default_output(model: str, output: str) -> None:
    assert rewritten_path(Path(model), None, in_place=False, force=False, tag="opset18") == Path(output)


# infer -----------------------------------------------------------------------------------------------------------


def test_infer(run: Run, folder: Path) -> None:
    code, out, err = run("infer", "model.onnx")
    assert (code, err) == (0, "")
    assert out == (
        "model.onnx · opset 13 · 1 node · 1 split\n"
        "\n"
        "  node  operator  axis  input          parts\n"
        "  s     Split-13  1     float32[N, 6]  3 | 3\n"
        "\n"
        "6 of 6 dimensions known, 3 symbolic. No findings.\n"
    )
    assert files(folder) == {"model.onnx"}


def test_infer_json(run: Run, folder: Path) -> None:
    code, out, err = run("infer", "model.onnx", "--json", "--all")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["splitgraph"] == splitgraph.__version__
    assert (document["model"], document["opset"], document["ok"]) == ("model.onnx", {"": 13}, True)
    (split,) = document["splits"]
    assert (split["node"], split["op"], split["since_version"], split["location"]) == ("s", "Split", 13, "main/s")
    assert (split["axis"], split["lengths"], split["obligations"]) == (1, [3, 3], [])
    assert split["input"] == {"name": "x", "kind": "tensor", "dtype": "float32", "shape": ["N", 6]}
    part = {"kind": "tensor", "dtype": "float32", "shape": ["N", 3]}
    assert split["outputs"] == [{"name": "p0", **part}, {"name": "p1", **part}]
    assert document["values"]["p0"] == part
    assert document["symbols"]["N"] == {"min": 0, "max": None}
    assert document["diagnostics"] == []
    assert "values" not in json.loads(run("infer", "model.onnx", "--json")[1])


def test_infer_shows_what_the_model_requires(run: Run, folder: Path) -> None:
    onnx.save(split_model(shape=("N", "M"), parts=3), "model.onnx")
    code, out, _ = run("infer", "model.onnx")
    assert code == 0
    assert "  requires M % 3 == 0  s\n" in out


def test_infer_with_bindings_and_shapes(run: Run, folder: Path) -> None:
    assert "float32[4, 6]" in run("infer", "model.onnx", "--bind", "N=4")[1]
    assert "float32[B + 1, 6]" in run("infer", "model.onnx", "--input-shape", "x=B + 1,6")[1]


@pytest.mark.parametrize(
    ("arguments", "said"), [(["--bind", "M=4"], "'M'; it has: N"), (["--input-shape", "z=1,6"], "'z'; it has: x")]
)
def test_infer_with_a_name_that_the_model_does_not_have(
    arguments: list[str], said: str, run: Run, folder: Path
) -> None:
    code, out, err = run("infer", "model.onnx", "--json", *arguments)
    assert (code, json.loads(out)["ok"]) == (2, False)
    assert err.startswith("error: ")
    assert said in err


def test_infer_with_a_shape_that_contradicts_the_model(run: Run, folder: Path) -> None:
    code, _, err = run("infer", "model.onnx", "--input-shape", "x=1,7")
    assert code == 1
    assert err.startswith("error: model.onnx: 2 errors: ")


def test_infer_writes_the_model_with_its_types(run: Run, folder: Path) -> None:
    code, out, _ = run("infer", "model.onnx", "-o", "typed.onnx")
    assert code == 0
    assert out.endswith("wrote typed.onnx\n")
    shape = onnx.load("typed.onnx").graph.output[0].type.tensor_type.shape
    assert [dim.dim_param or dim.dim_value for dim in shape.dim] == ["N", 3]


def test_infer_of_a_wrong_model(run: Run, folder: Path) -> None:
    onnx.save(split_model(axis=5), "wrong.onnx")
    code, out, err = run("infer", "wrong.onnx", "-o", "typed.onnx")
    assert code == 1
    assert "  SG201  main/s  " in out
    assert err.startswith("error: wrong.onnx: 1 error: main/s: ")
    assert err.count("\n") == 1
    assert err.endswith("[SG201]\n")
    assert "typed.onnx" not in files(folder)
    code, out, err = run("infer", "wrong.onnx", "--json")
    assert (code, json.loads(out)["ok"], err.count("\n")) == (1, False, 1)


# upgrade, downgrade, convert -------------------------------------------------------------------------------------


def test_upgrade(run: Run, folder: Path) -> None:
    code, out, err = run("upgrade", "model.onnx", "--opset", "18")
    assert (code, err) == (0, "")
    summary, wrote = out.splitlines()
    assert summary.startswith("opset 13 → 18 · 1 split rewritten · verified equal on ")
    assert wrote == "wrote model.opset18.onnx"
    assert onnx.load("model.opset18.onnx").opset_import[0].version == 18
    assert onnx.load("model.onnx") == split_model()


def test_upgrade_json(run: Run, folder: Path) -> None:
    code, out, err = run("upgrade", "model.onnx", "--opset", "18", "--json")
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert (document["ok"], document["model"], document["output"]) == (True, "model.onnx", "model.opset18.onnx")
    assert (document["from"], document["to"]) == ({"": 13}, {"": 18})
    (change,) = document["changes"]
    assert (change["location"], change["before"], change["after"]) == ("main/s", "Split-13", "Split-18")
    assert document["verification"]["verdict"] == "equal"


def test_downgrade(run: Run, folder: Path) -> None:
    assert run("downgrade", "model.onnx", "--opset", "11", "-o", "old.onnx")[0] == 0
    assert onnx.load("old.onnx").opset_import[0].version == 11


def test_convert_and_back(run: Run, folder: Path) -> None:
    code, out, _ = run("convert", "model.onnx", "--to", "variadic-split")
    assert code == 0
    assert out.startswith("opset 13 · 1 split rewritten as variadic-split · verified equal on ")
    assert out.endswith("wrote model.variadic-split.onnx\n")
    assert run("convert", "model.variadic-split.onnx", "--to", "split", "-o", "back.onnx")[0] == 0
    assert run("verify", "model.onnx", "back.onnx")[0] == 0


def test_nothing_to_change_is_said_and_still_written(run: Run, folder: Path) -> None:
    code, out, _ = run("upgrade", "model.onnx", "--opset", "13", "--no-verify")
    assert (code, out) == (0, "opset 13 · nothing to change · not verified\nwrote model.opset13.onnx\n")
    assert onnx.load("model.opset13.onnx") == onnx.load("model.onnx")


@pytest.mark.parametrize(
    ("arguments", "other"),
    [
        (["upgrade", "model.onnx", "--opset", "11"], "downgrade"),
        (["downgrade", "model.onnx", "--opset", "18"], "upgrade"),
    ],
)
def test_the_wrong_direction_names_the_other_command(arguments: list[str], other: str, run: Run, folder: Path) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert other in err
    assert files(folder) == {"model.onnx"}


@pytest.mark.parametrize("opset", ["0", "-1", "999"])
@pytest.mark.parametrize("command", ["upgrade", "downgrade"])
def test_an_opset_that_does_not_exist(command: str, opset: str, run: Run, folder: Path) -> None:
    code, out, err = run(command, "model.onnx", "--opset", opset, "--json")
    assert code == 2
    assert json.loads(out)["ok"] is False
    assert err.startswith("error: ")
    assert files(folder) == {"model.onnx"}


def test_a_blocked_conversion_lists_every_blocker_and_writes_nothing(run: Run, folder: Path) -> None:
    node = helper.make_node("GridSample", ["x", "grid"], ["y"], name="sample")
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", [1, 1, 4, 4]), ("grid", [1, 2, 2, 2]))
    ]
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), "asr.onnx")
    code, out, err = run("downgrade", "asr.onnx", "--opset", "9")
    assert (code, out) == (1, "")
    assert err.startswith("asr.onnx cannot go from opset 18 to 9: 1 blocker\n\n  SG404  main/sample  ")
    assert err.endswith("\nNothing was written.\n")
    code, out, err = run("downgrade", "asr.onnx", "--opset", "9", "--json")
    document = json.loads(out)
    assert (code, document["ok"], document["output"]) == (1, False, None)
    assert (document["from"], document["to"]) == ({"": 18}, {"": 9})
    assert [found["code"] for found in document["diagnostics"]] == ["SG404"]
    assert files(folder) == {"model.onnx", "asr.onnx"}


def test_a_wrong_model_is_not_converted(run: Run, folder: Path) -> None:
    onnx.save(split_model(axis=5), "wrong.onnx")
    code, out, err = run("upgrade", "wrong.onnx", "--opset", "18")
    assert (code, out) == (1, "")
    assert "Nothing was written." in err
    assert files(folder) == {"model.onnx", "wrong.onnx"}


# Where results go ------------------------------------------------------------------------------------------------


def test_an_existing_output_is_refused_before_any_work(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("model.opset18.onnx").write_text("precious")
    monkeypatch.setattr(api, "upgrade", None)
    code, out, err = run("upgrade", "model.onnx", "--opset", "18", "--json")
    assert code == 2
    assert [found["code"] for found in json.loads(out)["diagnostics"]] == ["SG108"]
    assert "--force" in err
    assert Path("model.opset18.onnx").read_text() == "precious"


def test_force_overwrites(run: Run, folder: Path) -> None:
    for arguments in (["upgrade", "model.onnx", "--opset", "18", "-o"], ["infer", "model.onnx", "-o"]):
        Path("out.onnx").write_text("not precious")
        assert run(*arguments, "out.onnx")[0] == 2
        assert Path("out.onnx").read_text() == "not precious"
        assert run(*arguments, "out.onnx", "--force")[0] == 0
        assert onnx.load("out.onnx").graph.node[0].op_type == "Split"


def test_in_place(run: Run, folder: Path) -> None:
    code, out, _ = run("upgrade", "model.onnx", "--opset", "18", "--in-place")
    assert code == 0
    assert out.endswith("wrote model.onnx\n")
    assert files(folder) == {"model.onnx"}
    assert onnx.load("model.onnx").opset_import[0].version == 18


@pytest.mark.parametrize(
    "arguments",
    [
        ["-o", "model.onnx"],
        ["-o", "model.onnx", "--force"],
        ["-o", "link.onnx", "--force"],
        ["-o", "x.onnx", "--in-place"],
    ],
)
def test_the_model_itself_is_only_overwritten_in_place(arguments: list[str], run: Run, folder: Path) -> None:
    Path("link.onnx").symlink_to("model.onnx")
    code, out, err = run("upgrade", "model.onnx", "--opset", "18", *arguments)
    assert (code, out) == (2, "")
    assert "--in-place" in err
    assert onnx.load("model.onnx") == split_model()
    assert files(folder) == {"model.onnx", "link.onnx"}


def weighted_model() -> onnx.ModelProto:
    """split_model after an addition of weights, [1, 6], that are large enough to stay in a file of their own."""
    model = split_model()
    model.graph.node.insert(0, helper.make_node("Add", ["x", "w"], ["sum"], name="add"))
    model.graph.node[1].input[0] = "sum"
    weights = np.arange(600, dtype=np.float32).reshape(100, 6)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 100
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    return model


@pytest.mark.parametrize("arguments", [["-o", "elsewhere/new.onnx"], ["-o", "new.onnx"], ["--in-place"]])
def test_external_data_goes_along(arguments: list[str], run: Run, folder: Path) -> None:
    onnx.save(weighted_model(), "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    data = Path("weights.bin").read_bytes()
    Path("elsewhere").mkdir()
    code, out, err = run("upgrade", "model.onnx", "--opset", "18", *arguments)
    assert (code, err) == (0, "")
    assert "verified equal" in out
    written = Path(out.split()[-1])
    assert (written.parent / "weights.bin").read_bytes() == data
    (weights,) = onnx.load(written).graph.initializer
    assert onnx.numpy_helper.to_array(weights).sum() == np.arange(600).sum()
    assert len(written.read_bytes()) < len(data)


def test_missing_external_data_is_an_unreadable_file(run: Run, folder: Path) -> None:
    onnx.save(weighted_model(), "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    Path("weights.bin").unlink()
    for arguments in (["infer", "model.onnx"], ["upgrade", "model.onnx", "--opset", "18"]):
        code, out, err = run(*arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert err.endswith("[SG107]\n")
    assert files(folder) == {"model.onnx"}


def test_an_output_that_cannot_be_written(run: Run, folder: Path) -> None:
    code, out, err = run("upgrade", "model.onnx", "--opset", "18", "-o", "missing/folder/out.onnx")
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert files(folder) == {"model.onnx"}


# Verification of rewrites ----------------------------------------------------------------------------------------

DIFFERENT = Verification("different", "reference", 1, 0.5, 0.5, Difference("p0", 0, "0.5 is not 1.0"), ())
NOT_RUN = Verification("not-run", "", 0, None, None, None, (), (diagnostic("SG503", "reference crashed"),))


@pytest.mark.parametrize(
    ("verification", "arguments", "code", "written", "finding"),
    [
        (DIFFERENT, [], 1, False, "SG502"),
        (DIFFERENT, ["--verify"], 1, False, "SG502"),
        (NOT_RUN, [], 0, True, "SG501"),
        (NOT_RUN, ["--verify"], 3, False, "SG501"),
        (DIFFERENT, ["--no-verify"], 0, True, None),
        (NOT_RUN, ["--no-verify"], 0, True, None),
    ],
)
def test_what_verification_decides(
    verification: Verification,
    arguments: list[str],
    code: int,
    written: bool,
    finding: str | None,
    run: Run,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(api, "verify", lambda before, after: verification)
    exit_code, out, err = run("upgrade", "model.onnx", "--opset", "18", *arguments)
    assert exit_code == code
    assert bool(out) == written
    assert (finding or "") in err
    assert bool(err) == (finding is not None)
    assert ("Nothing was written." in err) == (not written)
    assert files(folder) == ({"model.onnx", "model.opset18.onnx"} if written else {"model.onnx"})

    exit_code, out, _ = run("upgrade", "model.onnx", "--opset", "18", "--json", "--force", *arguments)
    document = json.loads(out)
    assert (exit_code, document["ok"]) == (code, written)
    assert document["output"] == ("model.opset18.onnx" if written else None)
    assert [found["code"] for found in document["diagnostics"]] == ([finding] if finding else [])
    assert (document["verification"] is None) == ("--no-verify" in arguments)


def test_notes_about_a_rewrite_go_to_stderr(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = diagnostic("SG401", "num_outputs = 2 was missing", "main/s", severity="info")
    change = Change("main/s", "Split-18", "Split-18", "repaired")
    monkeypatch.setattr(
        api, "upgrade", lambda model, opset: Rewrite(model, (change,), (note,), from_opset={"": 13}, to_opset={"": 18})
    )
    code, out, err = run("upgrade", "model.onnx", "--opset", "18", "--no-verify")
    assert (code, out) == (0, "opset 13 → 18 · 1 split rewritten · not verified\nwrote model.opset18.onnx\n")
    assert err.startswith("  info  SG401  main/s  num_outputs = 2 was missing\n")


# verify ----------------------------------------------------------------------------------------------------------


def test_verify_equal_models(run: Run, folder: Path) -> None:
    code, out, err = run("verify", "model.onnx", "model.onnx")
    assert (code, err) == (0, "")
    assert out.startswith("equal · ")
    assert "  1 split proved equal for every dimension value\n" in out
    document = json.loads(run("verify", "model.onnx", "model.onnx", "--json", "--engine", "reference")[1])
    assert (document["verdict"], document["engine"], document["first_difference"]) == ("equal", "reference", None)
    assert (document["max_abs_diff"], document["proofs"]) == (0.0, ["main/s"])


def test_verify_different_models(run: Run, folder: Path) -> None:
    other = split_model()
    other.graph.node[0].output[:] = ["p1", "p0"]
    onnx.save(other, "other.onnx")
    code, out, err = run("verify", "model.onnx", "other.onnx", "--bind", "N=2", "--samples", "1")
    assert (code, err) == (1, "")
    assert out.startswith("different")
    assert "first difference: p0" in out
    document = json.loads(run("verify", "model.onnx", "other.onnx", "--json")[1])
    assert (document["verdict"], document["first_difference"]["name"]) == ("different", "p0")


def test_verify_that_could_not_run(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "verify", lambda before, after, **options: NOT_RUN)
    code, out, _ = run("verify", "model.onnx", "model.onnx")
    assert (code, out.splitlines()[0]) == (3, "not-run")
    assert "reference crashed" in out
    assert json.loads(run("verify", "model.onnx", "model.onnx", "--json")[1])["verdict"] == "not-run"


def test_verify_hands_its_options_on(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, object] = {}

    def verify(before: Path, after: Path, **options: object) -> Verification:
        seen.update(options, before=before, after=after)
        return NOT_RUN

    monkeypatch.setattr(api, "verify", verify)
    run(
        "verify",
        "a.onnx",
        "b.onnx",
        "--samples",
        "5",
        "--seed",
        "7",
        "--bind",
        "N=4",
        "--engine",
        "reference",
        "--timeout",
        "9",
    )
    assert seen == {
        "before": Path("a.onnx"),
        "after": Path("b.onnx"),
        "samples": 5,
        "seed": 7,
        "bind": {"N": 4},
        "engine": "reference",
        "rtol": 1e-5,
        "atol": 1e-6,
        "timeout": 9,
    }


# Files that are no models ----------------------------------------------------------------------------------------

NOT_MODELS = {
    "empty.onnx": b"",
    "text.onnx": b"version https://git-lfs.github.com/spec/v1\n",
    "random.onnx": bytes(range(255, 0, -1)) * 20,
    "truncated.onnx": split_model().SerializeToString()[:-9],
}


@pytest.mark.parametrize("name", [*NOT_MODELS, "missing.onnx", "."])
@pytest.mark.parametrize(
    "command",
    [
        ["infer"],
        ["upgrade", "--opset", "18", "-o", "out.onnx"],
        ["convert", "--to", "split", "-o", "out.onnx"],
        ["verify"],
    ],
)
def test_an_unreadable_file(name: str, command: list[str], run: Run, folder: Path) -> None:
    for written, content in NOT_MODELS.items():
        Path(written).write_bytes(content)
    before = files(folder)
    arguments = [*command, name, *(["model.onnx"] if command == ["verify"] else [])]
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert name in err
    code, out, err = run(*arguments, "--json")
    document = json.loads(out)
    assert (code, document.get("ok", False)) == (2, False)
    assert document["diagnostics"][0]["code"].startswith("SG1")
    assert files(folder) == before


def test_a_cyclic_model_is_a_finding(run: Run, folder: Path) -> None:
    nodes = [helper.make_node("Relu", ["b"], ["a"], name="r"), helper.make_node("Relu", ["a"], ["b"], name="q")]
    graph = helper.make_graph(nodes, "g", [], [helper.make_tensor_value_info("b", TensorProto.FLOAT, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), "cycle.onnx")
    code, out, err = run("infer", "cycle.onnx")
    assert code == 1
    assert "SG102" in out
    assert (err.count("\n"), "SG102" in err) == (1, True)
    code, out, err = run("upgrade", "cycle.onnx", "--opset", "20")
    assert (code, out) == (1, "")
    assert "SG102" in err or "SG409" in err
    assert files(folder) == {"model.onnx", "cycle.onnx"}


# When things go wrong --------------------------------------------------------------------------------------------


def raising(error: BaseException) -> Callable[..., None]:
    def fail(*arguments: object, **options: object) -> None:
        raise error

    return fail


def test_a_fault_of_our_own_is_one_line(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPLITGRAPH_DEBUG", raising=False)
    monkeypatch.setattr(api, "infer", raising(ZeroDivisionError("by\nzero\x1b[2J")))
    code, out, err = run("infer", "model.onnx")
    assert (code, out) == (70, "")
    assert err.startswith(r"internal error: ZeroDivisionError: by\nzero\x1b[2J (please report it")
    assert err.count("\n") == 1
    monkeypatch.setenv("SPLITGRAPH_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        run("infer", "model.onnx")


def test_an_interrupt_is_one_line_and_leaves_nothing(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "verify", raising(KeyboardInterrupt()))
    code, out, err = run("upgrade", "model.onnx", "--opset", "18")
    assert (code, out, err.strip()) == (130, "", "interrupted")
    assert files(folder) == {"model.onnx"}


def test_a_reader_that_stops_reading_is_no_error(folder: Path) -> None:
    command = f"'{sys.executable}' -m splitgraph explain; echo $? >&2"
    done = subprocess.run(
        ["bash", "-c", f"({command}) | true"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.stderr.strip() in ("0", "141")


def test_a_terminal_that_cannot_show_a_name_gets_an_escape(folder: Path) -> None:
    model = split_model()
    model.graph.node[0].name = "größe→大"
    onnx.save(model, "model.onnx")
    path = str(folder / "model.onnx")
    done = in_child("-m", "splitgraph", "infer", path, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert r"gr\xf6\xdfe\u2192\u5927" in done.stdout
    done = in_child("-m", "splitgraph", "infer", path, "--json", PYTHONIOENCODING="ascii")
    assert json.loads(done.stdout)["splits"][0]["node"] == "größe→大"


def test_output_to_a_pipe_has_no_escape_sequences(folder: Path) -> None:
    path = str(folder / "model.onnx")
    done = in_child("-m", "splitgraph", "infer", path, FORCE_COLOR="1", TERM="xterm-256color")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_stream_that_is_closed_is_no_error(folder: Path, closed: str) -> None:
    command = f"'{sys.executable}' -m splitgraph upgrade model.onnx --opset 18 --no-verify {closed}"
    done = subprocess.run(["bash", "-c", command], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    assert done.returncode == 0
    assert "model.opset18.onnx" in files(folder)


@pytest.mark.parametrize("arguments", [["infer", "model.onnx"], ["infer", "model.onnx", "--json"], ["explain"]])
def test_output_that_cannot_be_written_is_told_in_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    assert cli.main(arguments) == 2
    assert capsys.readouterr().err == "error: No space left on device\n"
