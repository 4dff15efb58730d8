"""splitgraph upgrade, downgrade and convert, and how their results are verified."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from onnx import TensorProto, helper

from splitgraph import rewrites
from splitgraph.conversion.rewrite import Change, Rewrite
from splitgraph.findings.diagnostics import diagnostic
from splitgraph.options import Running
from splitgraph.verification.verification import Difference, Verification

from .program import NOT_RUN, Run, files, split_model


def test_upgrade(run: Run, folder: Path) -> None:
    code, out, err = run("upgrade", "model.onnx", "--opset", "18")
    assert (code, err) == (0, "")
    summary, checked, wrote = out.splitlines()
    assert summary.startswith("opset 13 → 18 · 1 split rewritten · verified equal on ")
    assert checked == "  1 changed node equal on its own inputs"
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
    assert (document["verification"]["verdict"], document["verified"]) == ("equal", True)


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


def test_convert_to_slices_and_back(run: Run, folder: Path) -> None:
    code, out, _ = run("convert", "model.onnx", "--to", "slice")
    assert code == 0
    assert out.startswith("opset 13 · 1 split rewritten as slice · verified equal on ")
    assert out.endswith("wrote model.slice.onnx\n")
    code, out, _ = run("convert", "model.slice.onnx", "--to", "split", "-o", "back.onnx")
    assert code == 0
    assert "nodes rewritten as split · verified equal on " in out
    code, out, _ = run("verify", "model.onnx", "model.slice.onnx")
    assert code == 0
    assert "1 split proved equal for every dimension value" in out


def test_slices_have_no_explicit_lengths(run: Run, folder: Path) -> None:
    code, _, err = run("convert", "model.onnx", "--to", "slice", "--explicit-lengths")
    assert code == 2
    assert "slices have bounds and no lengths" in err


@pytest.mark.parametrize("command", ["upgrade", "downgrade", "convert"])
@pytest.mark.parametrize("verify", [[], ["--verify"], ["--no-verify"]])
def test_what_is_at_the_opset_already_is_not_written_again(
    command: str, verify: list[str], run: Run, folder: Path
) -> None:
    code, out, err = run(command, "model.onnx", "--opset", "13", *verify)
    assert (code, out) == (0, "model.onnx already has opset 13; nothing was written.\n")
    assert "the IR version 8 stays, and opset 13 came with 7" in err and "Give --ir-version 7" in err
    assert files(folder) == {"model.onnx"}
    code, out, _ = run(command, "model.onnx", "--opset", "13", "--json", *verify)
    document = json.loads(out)
    assert (code, document["ok"], document["unchanged"], document["output"]) == (0, True, True, None)
    assert run(command, "model.onnx", "--opset", "13", "--in-place", *verify)[0] == 0


def test_a_copy_of_what_is_there_already(run: Run, folder: Path) -> None:
    code, out, _ = run("upgrade", "model.onnx", "--opset", "13", "-o", "copy.onnx")
    assert (code, out) == (0, "model.onnx already has opset 13; wrote a copy, copy.onnx.\n")
    assert Path("copy.onnx").read_bytes() == Path("model.onnx").read_bytes()


@pytest.mark.parametrize("to", ["slice", "split", "variadic-split"])
def test_nothing_to_rewrite_in_that_form(to: str, run: Run, folder: Path) -> None:
    node = onnx.helper.make_node("Relu", ["x"], ["p0"])
    model = split_model()
    del model.graph.node[:], model.graph.output[1:]
    model.graph.node.append(node)
    model.graph.output[0].CopyFrom(model.graph.input[0])
    model.graph.output[0].name = "p0"
    onnx.save(model, "model.onnx")
    code, out, _ = run("convert", "model.onnx", "--to", to)
    assert (code, out) == (0, f"model.onnx has nothing to rewrite as {to}; nothing was written.\n")
    assert files(folder) == {"model.onnx"}
    code, out, _ = run("convert", "model.onnx", "--to", to, "-o", "copy.onnx")
    assert (code, out) == (0, f"model.onnx has nothing to rewrite as {to}; wrote a copy, copy.onnx.\n")
    assert Path("copy.onnx").read_bytes() == Path("model.onnx").read_bytes()
    document = json.loads(run("convert", "model.onnx", "--to", to, "--json")[1])
    assert (document["ok"], document["unchanged"], document["output"]) == (True, True, None)


def test_an_opset_that_changes_no_node(run: Run, folder: Path) -> None:
    assert run("upgrade", "model.onnx", "--opset", "18", "--no-verify", "-o", "a.onnx")[0] == 0
    out = run("upgrade", "a.onnx", "--opset", "19", "--no-verify")[1]
    assert out.startswith("opset 18 → 19 · no node rewritten · not verified\n")


def test_no_tag_stands_twice(run: Run, folder: Path) -> None:
    assert run("upgrade", "model.onnx", "--opset", "17", "--no-verify")[0] == 0
    assert run("upgrade", "model.opset17.onnx", "--opset", "17")[0] == 0
    assert run("upgrade", "model.opset17.onnx", "--opset", "18", "--no-verify")[0] == 0
    assert run("downgrade", "model.opset18.onnx", "--opset", "17", "--no-verify")[0] == 2
    assert files(folder) == {"model.onnx", "model.opset17.onnx", "model.opset18.onnx"}


@pytest.mark.parametrize("named", [[], ["-o", "out.onnx"]])
def test_nothing_is_in_the_way_of_a_dry_run(named: list[str], run: Run, folder: Path) -> None:
    for path in ("model.opset18.onnx", "out.onnx"):
        Path(path).write_bytes(b"mine")
    code, out, err = run("upgrade", "model.onnx", "--opset", "18", "--dry-run", *named)
    assert (code, err) == (0, "")
    assert out.startswith("opset 13 → 18 · ")
    assert {Path(path).read_bytes() for path in ("model.opset18.onnx", "out.onnx")} == {b"mine"}
    # The model itself stays refused: that call would not work without --dry-run either.
    assert run("upgrade", "model.onnx", "--opset", "18", "--dry-run", "-o", "model.onnx")[0] == 2


@pytest.mark.parametrize(("opset", "form"), [("18", "Split"), ("11", "Split"), ("9", "Split")])
def test_convert_goes_either_way(opset: str, form: str, run: Run, folder: Path) -> None:
    code, out, _ = run("convert", "model.onnx", "--opset", opset)
    assert code == 0
    assert out.startswith(f"opset 13 → {opset} · ")
    assert out.endswith(f"wrote model.opset{opset}.onnx\n")
    assert onnx.load(f"model.opset{opset}.onnx").opset_import[0].version == int(opset)


def test_convert_to_an_opset_and_a_form(run: Run, folder: Path) -> None:
    code, _, _ = run("convert", "model.onnx", "--opset", "18", "--to", "variadic-split")
    assert code == 0
    after = onnx.load("model.opset18.variadic-split.onnx")
    assert after.opset_import[0].version == 18
    assert after.graph.node[0].op_type.startswith("VariadicSplit_")


@pytest.mark.parametrize("arguments", [[], ["--explicit-lengths"], ["--opset", "18", "--explicit-lengths"]])
def test_convert_needs_to_know_what_for(arguments: list[str], run: Run, folder: Path) -> None:
    code, _, err = run("convert", "model.onnx", *arguments)
    assert code == 2
    assert "--to" in err
    assert files(folder) == {"model.onnx"}


COMMANDS = [
    (["infer"], "model.onnx"),
    (["upgrade", "--opset", "18", "--no-verify"], "model.opset18.onnx"),
    (["downgrade", "--opset", "11", "--no-verify"], "model.opset11.onnx"),
    (["convert", "--opset", "18", "--no-verify"], "model.opset18.onnx"),
    (["convert", "--to", "split", "--no-verify"], "model.split.onnx"),
]


@pytest.mark.parametrize(("arguments", "name"), COMMANDS)
@pytest.mark.parametrize("output", ["there", "there/", "new/", "new/and/deep/"])
def test_a_folder_as_output(arguments: list[str], name: str, output: str, run: Run, folder: Path) -> None:
    Path("there").mkdir()
    command, *options = arguments
    code, out, _ = run(command, "model.onnx", *options, "-o", output)
    assert code == 0
    assert (Path(output) / name).is_file()
    assert str(Path(output) / name) in out


@pytest.mark.parametrize(("arguments", "name"), COMMANDS)
@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("no/such/x.onnx", "the folder no/such of the output does not exist"),
        ("model.onnx/x.onnx", "the folder model.onnx of the output is a file"),
        ("model.onnx/", "the folder model.onnx of the output is a file"),
    ],
)
def test_a_path_is_looked_at_first(
    arguments: list[str], name: str, output: str, said: str, run: Run, folder: Path
) -> None:
    Path("broken.onnx").write_bytes(b"no model")
    command, *options = arguments
    code, out, err = run(command, "broken.onnx", *options, "-o", output.replace("model", "broken"))
    assert (code, out) == (2, "")
    assert said.replace("model", "broken") in err
    assert files(folder) == {"model.onnx", "broken.onnx"}


def test_a_file_in_a_folder_is_protected(run: Run, folder: Path) -> None:
    Path("out").mkdir()
    Path("out/model.opset18.onnx").write_bytes(b"mine")
    assert run("upgrade", "model.onnx", "--opset", "18", "-o", "out/")[0] == 2
    assert Path("out/model.opset18.onnx").read_bytes() == b"mine"
    assert run("upgrade", "model.onnx", "--opset", "18", "-o", "out/", "--force", "--no-verify")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "other"),
    [
        (["upgrade", "model.onnx", "--opset", "11"], "downgrade"),
        (["downgrade", "model.onnx", "--opset", "18"], "upgrade"),
    ],
)
def test_the_wrong_direction_names_the_other_command(arguments: list[str], other: str, run: Run, folder: Path) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    assert "SG418" in err
    assert f"splitgraph {other} --opset" in err
    assert "convert --opset" in err
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
    node = helper.make_node("RegexFullMatch", ["x"], ["y"], name="match", pattern="a+")
    values = [helper.make_tensor_value_info("x", TensorProto.STRING, [2])]
    graph = helper.make_graph([node], "g", values, [helper.make_tensor_value_info("y", TensorProto.BOOL, [2])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), "asr.onnx")
    code, out, err = run("downgrade", "asr.onnx", "--opset", "9")
    assert (code, out) == (1, "")
    assert err.startswith("asr.onnx cannot go from opset 20 to 9: 1 blocker\n\n  SG404  main/match  ")
    assert err.endswith("\nNothing was written.\n")
    code, out, err = run("downgrade", "asr.onnx", "--opset", "9", "--json")
    document = json.loads(out)
    assert (code, document["ok"], document["output"]) == (1, False, None)
    assert (document["from"], document["to"]) == ({"": 20}, {"": 9})
    assert [found["code"] for found in document["diagnostics"]] == ["SG404"]
    assert files(folder) == {"model.onnx", "asr.onnx"}


def test_a_wrong_model_is_not_converted(run: Run, folder: Path) -> None:
    onnx.save(split_model(axis=5), "wrong.onnx")
    code, out, err = run("upgrade", "wrong.onnx", "--opset", "18")
    assert (code, out) == (1, "")
    assert "Nothing was written." in err
    assert files(folder) == {"model.onnx", "wrong.onnx"}


DIFFERENT = Verification("different", "reference", 1, 0.5, 0.5, Difference("p0", 0, "0.5 is not 1.0"), ())


INVALID = Verification("different", "onnxruntime", 0, None, None, Difference("", None, "refused as invalid"), ())


@pytest.mark.parametrize(
    ("verification", "arguments", "code", "written", "finding"),
    [
        (DIFFERENT, [], 1, False, "SG502"),
        (DIFFERENT, ["--verify"], 1, False, "SG502"),
        (INVALID, [], 1, False, "SG502"),
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
    monkeypatch.setattr(rewrites, "verify_rewrite", lambda before, rewrite, running, **options: verification)
    exit_code, out, err = run("upgrade", "model.onnx", "--opset", "18", *arguments)
    assert exit_code == code
    assert bool(out) == written
    assert (finding or "") in err
    assert bool(err) == (finding is not None)
    assert ("Nothing was written." in err) == (not written)
    assert files(folder) == ({"model.onnx", "model.opset18.onnx"} if written else {"model.onnx"})

    exit_code, out, again = run("upgrade", "model.onnx", "--opset", "18", "--json", "--force", *arguments)
    document = json.loads(out)
    assert (exit_code, document["ok"]) == (code, written)
    assert document["output"] == ("model.opset18.onnx" if written else None)
    assert [found["code"] for found in document["diagnostics"]] == ([finding] if finding else [])
    assert (document["verification"] is None) == ("--no-verify" in arguments)
    assert document["verified"] is (None if "--no-verify" in arguments else False)
    warned = "NOT VERIFIED: model.opset18.onnx was written, but is not verified to equal model.onnx."
    assert [text.endswith("Use --verify to refuse this.\n") and warned in text for text in (err, again)] == [
        written and finding is not None
    ] * 2


@pytest.mark.parametrize(("verification", "told"), [(DIFFERENT, "p0: 0.5 is not 1.0"), (INVALID, "refused as invalid")])
def test_what_differs_is_told(
    verification: Verification, told: str, run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewrites, "verify_rewrite", lambda before, rewrite, running, **options: verification)
    assert f"  {told}\n" in run("upgrade", "model.onnx", "--opset", "18")[2]


def normalised_in_halves() -> onnx.ModelProto:
    """float32 in and out, as a converter to float16 that keeps the types of inputs and outputs makes it."""
    nodes = [
        helper.make_node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16),
        helper.make_node("LayerNormalization", ["h", "s", "b"], ["n"], axis=-1),
        helper.make_node("MatMul", ["n", "w"], ["m"]),
        helper.make_node("LayerNormalization", ["m", "s", "b"], ["o"], axis=-1),
        helper.make_node("Cast", ["o"], ["y"], to=TensorProto.FLOAT),
    ]
    weights = {"s": np.ones(64), "b": np.zeros(64), "w": np.random.default_rng(0).standard_normal((64, 64))}
    kept = [onnx.numpy_helper.from_array(array.astype(np.float16), name) for name, array in weights.items()]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 64]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], kept)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_other_arithmetic_in_halves_is_held_to_halves_by_every_command(run: Run, folder: Path) -> None:
    onnx.save(normalised_in_halves(), "halves.onnx")
    code, out, _ = run("downgrade", "halves.onnx", "--opset", "16", "-o", "old.onnx")
    assert (code, "verified equal on 3 inputs" in out) == (0, True)
    assert run("verify", "halves.onnx", "old.onnx")[0] == 0


def test_notes_about_a_rewrite_go_to_stderr(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = diagnostic("SG401", "num_outputs = 2 was missing", "main/s", severity="info")
    change = Change("main/s", "Split-18", "Split-18", "repaired")
    monkeypatch.setattr(
        rewrites,
        "rewritten",
        lambda opened, *_, **__: Rewrite(opened.content, (change,), (note,), from_opset={"": 13}, to_opset={"": 18}),
    )
    code, out, err = run("upgrade", "model.onnx", "--opset", "18", "--no-verify")
    assert (code, out) == (0, "opset 13 → 18 · 1 split rewritten · not verified\nwrote model.opset18.onnx\n")
    assert err.startswith("  info  SG401  main/s  num_outputs = 2 was missing\n")


@pytest.mark.parametrize("command", [["upgrade", "--opset", "18"], ["convert", "--to", "variadic-split"]])
def test_the_options_of_a_verification_are_handed_on(
    command: list[str], run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, object] = {}

    def verify_rewrite(before: object, rewrite: object, running: Running, *, progress: object) -> Verification:
        assert callable(progress)
        seen.update(running._asdict())
        return NOT_RUN

    monkeypatch.setattr(rewrites, "verify_rewrite", verify_rewrite)
    run(*command, "model.onnx")
    tolerances = {"rtol": None, "atol": None}
    settings = {"inputs": None, "custom_ops": (), "providers": (), "longest": 300, "runtime_python": ()}
    defaults = {"try_sizes": {}, "samples": 3, "seed": 0, "engine": "auto", "timeout": None, "verify": None}
    assert seen == {**defaults, **tolerances, **settings}
    given = {"samples": 5, "seed": 7, "engine": "reference", "rtol": 0.5, "atol": 0.25, "timeout": 9}
    typed = [text for name, value in given.items() for text in (f"--{name}", str(value))]
    run(*command, "model.onnx", "--force", "--try", "N=4", "--try", "M=2", *typed)
    assert seen == {**given, "try_sizes": {"N": 4, "M": 2}, "verify": None, **settings}


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["--bind", "N"], "NAME=NUMBER"),
        (["--try", "N"], "--try N is not of the form NAME=NUMBER"),
        (["--bind", "Q=4"], "no dimension of the model is named 'Q'"),
        (["--try", "Q=4"], "is named 'Q'"),
        (["--seed", "-1"], "--seed"),
        (["--rtol", "-1"], "--rtol"),
        (["--timeout", "0"], "--timeout"),
        (["--engine", "magic"], "--engine"),
    ],
)
def test_wrong_options_of_a_verification_are_wrong_usage(typed: list[str], told: str, run: Run, folder: Path) -> None:
    code, _, err = run("upgrade", "model.onnx", "--opset", "18", *typed)
    assert (code, told in err) == (2, True)
    assert files(folder) == {"model.onnx"}


@pytest.mark.parametrize("command", ["upgrade", "downgrade", "convert"])
def test_the_help_states_the_three_ways_of_verifying(command: str, run: Run) -> None:
    told = " ".join(run(command, "--help")[1].split())
    assert "Default: verify, warn if impossible. --verify: fail if impossible. --no-verify: skip." in told


def save_negative_logarithm() -> None:
    """Write a model whose outputs are NaN."""
    nodes = [
        helper.make_node("Split", ["x"], ["a", "b"], axis=1),
        helper.make_node("Abs", ["a"], ["c"]),
        helper.make_node("Neg", ["c"], ["d"]),
        helper.make_node("Log", ["d"], ["y"]),
    ]
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", size]) for name, size in (("x", 4), ("y", 2))
    ]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), "nan.onnx")


@pytest.mark.usefixtures("in_process")
def test_a_result_whose_outputs_show_nothing_is_verified_by_its_parts(run: Run, folder: Path) -> None:
    """Of a logarithm of what is negative, both models give NaN; the Split that was rewritten runs alone."""
    save_negative_logarithm()
    code, out, _ = run("upgrade", "nan.onnx", "--opset", "18", "--json", "--verify")
    document = json.loads(out)
    assert (code, document["ok"], document["verified"], document["diagnostics"]) == (0, True, True, [])


@pytest.mark.usefixtures("in_process")
def test_a_result_is_not_verified_if_a_changed_part_gets_no_values(run: Run, folder: Path) -> None:
    """The inputs that are given are empty."""
    save_negative_logarithm()
    np.savez("empty.npz", x=np.zeros((0, 4), np.float32))
    code, out, err = run("upgrade", "nan.onnx", "--opset", "18", "--json", "--inputs", "empty.npz")
    document = json.loads(out)
    assert (code, document["ok"], document["verified"]) == (0, True, False)
    assert [found["code"] for found in document["diagnostics"]] == ["SG506"]
    assert err.splitlines()[-1].startswith("NOT VERIFIED: nan.opset18.onnx was written")
    assert "not verified: the outputs are equal, but parts that differ could not be checked alone: main/Split#0" in err
    typed = ["--inputs", "empty.npz", "--verify", "-o", "other.onnx"]
    assert run("upgrade", "nan.onnx", "--opset", "18", *typed)[0] == 3
