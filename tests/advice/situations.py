"""Situations that lead to advice: what is typed, and what the advice needs that only its reader knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

# Advice that only names what was typed, or that cannot be followed here; the reason stands beside it.
NAMED = ""


class Situation(NamedTuple):
    """A command that prints advice.

    typed: the command, without "splitgraph"; a comment names files that exist. code: of the finding whose advice is
    followed. values: for options that are printed without a value. follows: for advice whose following is more than to
    add it to the command: what is typed instead, or `NAMED`. stays: the code is printed after the advice was followed,
    because the advice shows something and changes nothing. also: what the advice says in words, as commands. exits: the
    exit codes besides those of a command that works. is_slow: engines run it, or worker processes.
    """

    typed: str
    code: str = ""
    values: Mapping[str, str] = {}
    follows: Mapping[str, str] = {}
    stays: bool = False
    also: tuple[str, ...] = ()
    exits: tuple[int, ...] = ()
    is_slow: bool = False

    @property
    def name(self) -> str:
        """Return the name of the test of the situation."""
        return f"{self.code} {self.typed}".strip()


# Wrong calls ----------------------------------------------------------------------------------------------------------
_GOALS = {"--target": "mnn", "--to": "split", "--opset": "18", "--ir-version": "9"}
CALLS = [
    Situation("infer model.onnx --frob", follows={"--frob": NAMED}),
    Situation(
        "reshape model.onnx --shape x=2,4",
        follows={"--shape": NAMED, "--input-shape": "reshape model.onnx --input-shape x=2,4 --no-verify"},
    ),
    Situation("convert model.onnx --no-verify", values=_GOALS),
    Situation(
        "convert model.onnx --target mnn --to split --no-verify",
        follows={"--target": NAMED, "--opset": "convert model.onnx --target mnn --opset 18 --no-verify"},
    ),
    Situation("convert model.onnx --opset 18 --explicit-lengths --no-verify", values={"--to": "split"}),
    Situation("reshape model.onnx --no-verify", values={"--input-shape": "x=2,4", "--batch": "M"}),
    Situation("reshape model.onnx --no-verify --bind N=4", values={"--input-shape": "x=N,4", "--batch": "N"}),
    Situation("check --targets model.onnx", follows={"--targets": "check --targets"}),
    Situation("check --target mnn", follows={"--targets": "check --targets"}),
    Situation("check model.onnx", values={"--target": "mnn"}, follows={"check --targets": "check --targets"}),
    Situation(
        "check model.onnx --all-targets --run",
        follows={"--run": NAMED, "--target": "check model.onnx --run --target onnxruntime"},
    ),
    Situation("check model.onnx --target mnn --runtime-python /usr/bin/python3"),
    Situation("verify model.onnx", follows={"--in": "verify model.onnx --in onnxruntime --in openvino"}, is_slow=True),
    Situation(
        "verify model.onnx other.onnx --in mnn",
        follows={"--in": "verify model.onnx --in onnxruntime --in openvino"},
        is_slow=True,
    ),
    Situation(
        "verify model.onnx other.onnx --runtime-python /usr/bin/python3",
        follows={"--in": "verify model.onnx --in onnxruntime --in openvino --runtime-python openvino=/usr/bin/python3"},
        is_slow=True,
    ),
    Situation(
        "verify model.onnx other.onnx --jobs 2",
        follows={"--pairs": "verify many/ pairs/ --pairs --jobs 1"},
        is_slow=True,
    ),
    Situation(
        "verify many/a.onnx pairs/ --pairs", follows={"--pairs": "verify many/ pairs/ --pairs --jobs 1"}, is_slow=True
    ),
    Situation("report", follows={"--before": "report --before model.onnx --after other.onnx", "--after": NAMED}),
    Situation(
        "report --svg s --before even.onnx --after uneven18.onnx",
        follows={"--svg": "report --svg s even.onnx", "--before": NAMED, "--after": NAMED},
    ),
    Situation("report many/a.onnx many/b.onnx --svg s -o pages", follows={"--svg": NAMED}),
    Situation("report many/ -o pages  # pages/index.html exists", "SG108", values={"-o": "others"}, is_slow=True),
    Situation(
        "upgrade many/ --opset 18 --in-place -o out",
        follows={
            "--in-place": "upgrade many/ --opset 18 --in-place --no-verify",
            "-o": "upgrade many/ --opset 18 -o out --no-verify",
        },
        is_slow=True,
    ),
    Situation("upgrade many/ --opset 18 --diff", follows={"--diff": NAMED, "diff": "diff many/a.onnx many/b.onnx"}),
    Situation("infer many/ --all", follows={"--all": "infer many/a.onnx --all"}),
    Situation("infer many/ --why y", follows={"--why": "infer many/a.onnx --why y"}),
    Situation(
        "infer many/ --json --format github",
        follows={"--json": "infer many/ --json", "--format": "infer many/ --format github", "--help": NAMED},
        is_slow=True,
    ),
    Situation("infer many/ --resume", is_slow=True),
    Situation("infer many/ --report r.jsonl  # r.jsonl exists", "SG108", is_slow=True),
    Situation("infer many/ --junit r.xml  # r.xml exists", "SG108", is_slow=True),
    Situation("infer many/ --report same --junit same", is_slow=True),
    Situation("infer many/ --report r.xml", follows={"--junit FILE": "infer many/ --junit r.xml"}, is_slow=True),
    Situation("infer many/ --junit x.jsonl", follows={"--report FILE": "infer many/ --report x.jsonl"}, is_slow=True),
    Situation("infer many/ --junit r.json", follows={"--json": "infer many/ --json"}, is_slow=True),
    Situation("infer many/ --exclude *.onnx", follows={"--exclude": NAMED}),
    Situation("upgrade many/ --opset 18 -o file.onnx --no-verify", values={"-o": "folder"}, is_slow=True),
    Situation(
        "upgrade many/ --opset 18 -o written.onnx --no-verify  # written.onnx exists",
        values={"-o": "folder"},
        is_slow=True,
    ),
    Situation("upgrade model.onnx --opset 18 -o written.onnx --no-verify  # written.onnx exists", "SG108"),
    Situation(
        "upgrade model.onnx --opset 18 -o model.onnx --no-verify",
        follows={"--in-place": "upgrade model.onnx --opset 18 --in-place --no-verify"},
    ),
    Situation(
        "upgrade model.onnx --opset 18 -o x.onnx --in-place --no-verify",
        follows={
            "--in-place": "upgrade model.onnx --opset 18 --in-place --no-verify",
            "-o": "upgrade model.onnx --opset 18 -o x.onnx --no-verify",
        },
    ),
    Situation(
        "upgrade file://HERE/model.onnx --opset 18 --in-place --no-verify",
        follows={"--in-place": NAMED, "-o": "upgrade file://HERE/model.onnx --opset 18 -o fresh.onnx --no-verify"},
    ),
    Situation("infer model.onnx -o model.onnx"),
    Situation("report model.onnx -o x.onnx", values={"-o": "x.html"}),
    Situation("upgrade model.onnx --opset 18 -o x.npz --no-verify"),
    Situation("upgrade model.onnx --opset 18 -o x.html --no-verify"),
    Situation(
        "upgrade even.onnx --opset 18 -o x.svg --no-verify",
        follows={"report MODEL --svg NODE -o FILE": "report even.onnx --svg s -o x.svg"},
    ),
    Situation(
        "upgrade model.onnx --opset 18 -o x.json --no-verify",
        follows={"--json": "upgrade model.onnx --opset 18 --json --no-verify"},
    ),
    Situation(
        "upgrade model.onnx --opset 18 -o x.jsonl --no-verify",
        follows={"--report FILE": "upgrade model.onnx --opset 18 --report x.jsonl --no-verify"},
        is_slow=True,
    ),
    Situation("upgrade model.onnx --opset 18 -o x.onnx --opset 19", follows={"--opset": NAMED}),
    Situation(
        "infer two.onnx --input-shape x=1,4,u=2,4",
        follows={"--input-shape": "infer two.onnx --input-shape x=1,4 --input-shape u=2,4"},
    ),
    Situation(
        "infer two.onnx --input-shape 'x, u=2,4'",
        follows={"--input-shape": "infer two.onnx --input-shape x=1,4 --input-shape u=2,4"},
    ),
    Situation("infer model.onnx --input-shape 3,4", follows={"--input-shape 3,4": NAMED}),
    Situation("infer model.onnx --input-shape x=1,4 --input-shape x=2,4", follows={"--input-shape": NAMED}),
    Situation("infer two.onnx --bind N=2,M=3", "SG304", follows={"--bind": "infer two.onnx --bind N=2 --bind M=3"}),
    Situation("infer model.onnx --why nothing", follows={"infer --all": "infer model.onnx --all"}),
    Situation(
        "diff model.onnx models/interval_split.xml",
        follows={"convert model.onnx --to variadic-split -o model.xml": NAMED},
    ),
    Situation(
        "check models/interval_split.xml --target mnn",
        follows={"--target": "check models/interval_split.xml --target openvino"},
    ),
    Situation(
        "reshape two.onnx --batch 3 --no-verify",
        follows={"reshape --input-shape": "reshape two.onnx --input-shape x=3,4 --input-shape u=2,4 --no-verify"},
    ),
    Situation("reshape questions.onnx --input-shape x=1,T --follow nonsense", follows={"reshape --follow": NAMED}),
    Situation(
        "infer unknown.onnx --bind unk=1",
        "SG304",
        follows={"infer --input-shape": "infer unknown.onnx --input-shape x=1,4"},
    ),
    Situation("diff models/gpt2.opset17.onnx models/gpt2.opset11.onnx", stays=True),
    Situation("infer many/ --resume --json --report no.jsonl  # no.jsonl exists", is_slow=True),
]

# Findings of a model --------------------------------------------------------------------------------------------------
FINDINGS = [
    Situation(
        "infer unordered.onnx",
        "SG112",
        values={"--opset": "18"},
        follows={
            "downgrade": "downgrade unordered.onnx --opset 16 --no-verify",
            "convert": "convert unordered.onnx --opset 18 --no-verify",
        },
    ),
    Situation("infer chunks.onnx", "SG203"),
    Situation(
        "infer neither.onnx", "SG207", follows={"convert": "convert neither.onnx --opset 19 --no-verify"}, stays=True
    ),
    Situation("infer old_form.onnx", "SG212"),
    Situation("upgrade old_form.onnx --opset 19 --no-verify", "SG212"),
    Situation(
        "infer declared.onnx", "SG301", follows={"infer -o": "infer declared.onnx -o right.onnx && infer right.onnx"}
    ),
    Situation(
        "infer broadcast.onnx",
        "SG302",
        follows={"--accept SG302@LOCATION": "infer broadcast.onnx --accept SG302@main/add"},
    ),
    Situation("infer default.onnx", "SG305"),
    Situation("infer rows.onnx", "SG307", values={"--input-shape": "x=N,5,4"}),
    Situation("infer rows.onnx --bind seq=5", "SG302", values={"--input-shape": "x=N,5,4"}),
    Situation("infer empty.onnx", "SG307", values={"--input-shape": "x=N,7,4"}),
    Situation(
        "infer attribute.onnx",
        "SG416",
        follows={
            "convert": "convert attribute.onnx --opset 14 --no-verify",
            "downgrade": "downgrade attribute.onnx --opset 11 --no-verify",
        },
    ),
    Situation(
        "upgrade broadcast.onnx --opset 18 --no-verify", "SG302", follows={"infer --all": "infer broadcast.onnx --all"}
    ),
    Situation("infer target.onnx", "SG302"),
]

# Conversions ----------------------------------------------------------------------------------------------------------
_LONGER = "reshape longer.onnx --no-verify --input-shape x=1,{} --input-shape mask=1,{}"
CONVERSIONS = [
    Situation("upgrade model.onnx --opset 11 --no-verify", "SG418", values={"--opset": "11"}),
    Situation("downgrade model.onnx --opset 18 --no-verify", "SG418", values={"--opset": "18"}),
    Situation("upgrade ml.onnx --opset ai.onnx.ml=1 --no-verify", "SG418"),
    Situation("upgrade model.onnx --opset 21 --ir-version 8 --no-verify", "SG412"),
    Situation("convert ir10.onnx --opset 17 --no-verify", "SG415", values={"--ir-version": "8"}),
    Situation("downgrade parts.onnx --opset 17 --no-verify", "SG414"),
    Situation("convert zipmap.onnx --standard --no-verify", "SG425"),
    Situation("upgrade named.onnx --opset 14 --no-verify", "SG409"),
    Situation("upgrade initializer.onnx --opset 12 --no-verify", "SG305"),
    Situation(
        "upgrade default.onnx --opset 18 --assume-defaults --inputs shape.npz",
        follows={"--assume-defaults": NAMED, "without --assume-defaults": NAMED},
        also=(
            "upgrade default.onnx --opset 18 --inputs shape.npz",
            "upgrade default.onnx --opset 18 --assume-defaults --inputs data.npz",
        ),
    ),
    Situation(
        "upgrade model.onnx --opset 18 --accept SG502",
        follows={"--no-verify": "upgrade model.onnx --opset 18 --no-verify"},
    ),
    Situation("downgrade models/gpt2.opset17.onnx --opset 11 --diff --dry-run --no-verify", stays=True),
    Situation("reshape rows.onnx --input-shape x=N,5,4 --try seq=5", follows={"--try": NAMED}),
    Situation(
        "reshape questions.onnx --input-shape x=1,T --no-verify",
        "SG421",
        values={"--follow": "main/zeros[0]=T", "--keep": "main/c[1]"},
        stays=True,
    ),
    Situation(
        "reshape questions.onnx --input-shape x=1,6 --no-verify",
        "SG421",
        values={"--follow": "main/zeros[0]=x[1]", "--keep": "main/c[1]"},
        stays=True,
    ),
    Situation(
        "reshape items.onnx --batch N",
        "SG420",
        follows={"reshape --input-shape": "reshape items.onnx --input-shape x=N,4", "without --batch": NAMED},
    ),
    Situation(
        "reshape length.onnx --input-shape x=1,T --no-verify",
        "SG420",
        also=("reshape length.onnx --input-shape x=1,T --input-shape w=1,T --no-verify",),
    ),
    Situation("reshape longer.onnx --input-shape x=1,T --no-verify", "SG420", also=(_LONGER.format("T", "T+1"),)),
    Situation("reshape longer.onnx --input-shape x=1,8 --no-verify", "SG420", also=(_LONGER.format(8, 9),)),
    Situation(
        "reshape integers.onnx --input-shape x=1,3,H,W --no-verify",
        "SG424",
        values={"--follow": "main/count[0]=H*W", "--keep": "main/count[0]"},
    ),
    Situation("downgrade k.onnx --opset 9 --no-verify"),
]

# Runtimes -------------------------------------------------------------------------------------------------------------
_IN_OPENCV = "check even.onnx --target opencv --run --runtime-python ./python"
TARGETS = [
    Situation("check uneven18.onnx --target opencv@4.10", "SG701"),
    Situation("check strings.onnx --target openvino", "SG701", values={"--input-shape": "x=3"}, stays=True),
    Situation("check open18.onnx --target mnn", "SG702"),
    Situation("check unnamed.onnx --target onnxruntime", "SG703"),
    Situation("check newest.onnx --target onnxruntime@1.15", "SG704"),
    Situation("check model.onnx --target onnxruntime@1.19", "SG708", stays=True),
    Situation("convert grid.onnx --target onnxruntime@1.19 --no-verify", "SG705", stays=True),
    Situation(
        "check model.onnx --target mnn --run", "SG711", values={"--runtime-python": "/usr/bin/python3"}, stays=True
    ),
    Situation(f"{_IN_OPENCV}  # a runtime refuses", "SG709", is_slow=True),
    Situation(f"{_IN_OPENCV}  # a runtime is wrong", "SG710", is_slow=True),
    Situation(
        "check strings.onnx --target openvino --run", "SG709", values={"--input-shape": "x=3"}, stays=True, is_slow=True
    ),
    Situation(
        "convert strings.onnx --to variadic-split -o s.xml",
        "SG411",
        values={"--target": "openvino"},
        stays=True,
        is_slow=True,
    ),
    Situation("doctor", follows={"check --run": "check model.onnx --target onnxruntime --run"}, is_slow=True),
]

# Verification ---------------------------------------------------------------------------------------------------------
VERIFICATION = [
    Situation(
        "upgrade own.onnx --opset 18",
        "SG501",
        values={"--custom-ops": "own.onnx"},
        follows={"--inputs": NAMED},
        exits=(3,),
        stays=True,
    ),
    Situation(
        "upgrade model.onnx --opset 18 --custom-ops model.onnx",
        "SG501",
        values={"--inputs": "data.npz"},
        exits=(3,),
        stays=True,
    ),
    Situation("verify rule.onnx rule.onnx", values={"--bind": "N=1"}),
    Situation("verify rule.onnx rule.onnx --json", "SG505", values={"--bind": "N=1", "--inputs": "one.npz"}),
    Situation(
        "upgrade nan.onnx --opset 18 --inputs none.npz",
        "SG506",
        values={"--bind": "N=3", "--inputs": "data.npz"},
        exits=(2, 3),
    ),
    Situation("verify model.onnx other.onnx --provider azure", "SG510"),
    Situation(
        "infer many/ --timeout 0.001",
        "SG605",
        values={"--timeout": "60", "--exclude": "b.onnx"},
        stays=True,
        is_slow=True,
    ),
    Situation("infer model.onnx --bind N", "SG601", follows={"--bind N": NAMED, "--help": "infer --help"}, stays=True),
    Situation(
        "explain SG302",
        follows={"--accept SG302@LOCATION": "infer broadcast.onnx --accept SG302@main/add", "--accept": NAMED},
    ),
    Situation("verify gather.onnx gather.onnx", values={"--inputs": "cube.npz"}),
    Situation(
        "verify squeeze.onnx squeeze.onnx",
        follows={
            "--bind": "verify squeeze.onnx squeeze.onnx --bind A=1 --bind B=1 --bind C=1 --bind D=2 --bind E=3",
            "--inputs": NAMED,
        },
        is_slow=True,
    ),
    Situation(
        "verify model.onnx other.onnx --timeout 0.001",
        values={"--timeout": "60", "--bind": "N=1"},
        follows={"--bind": NAMED},
        stays=True,
    ),
    Situation("upgrade outside.onnx --opset 18 -o w.bin --force --no-verify --json", values={"-o": "fresh.onnx"}),
    Situation(
        "upgrade many/ --opset 18 --no-verify --json -o linked  # linked/a.onnx is a link",
        values={"-o": "folder"},
        is_slow=True,
    ),
    Situation(
        "upgrade http://localhost:1/m.onnx --opset 18 --no-verify --jobs 1 --json",
        values={"-o": "folder"},
        exits=(1,),
        is_slow=True,
    ),
]
SITUATIONS = [*CALLS, *FINDINGS, *CONVERSIONS, *TARGETS, *VERIFICATION]

# Codes without a situation, and why.
ELSEWHERE = {
    "SG507": "an IR whose outputs are silent takes OpenVINO some seconds (tests/verification/test_two_engines.py)",
    "SG513": "a comparison that takes longer than its budget (tests/verification/test_budget.py)",
    "SG422": "items that only a run shows to be mixed (tests/conversion/sizes)",
}

# Texts that no situation prints, by how they begin, and why.
UNPRINTED = {
    "verification took": "a verification that takes many seconds",
    "--no-verify skips this": "a terminal, where the progress of a long verification shows",
    "inline the function first": "a function that onnx cannot inline, which conversion does by itself otherwise",
    "Reshape the ONNX model": "an IR whose layers cannot be written anew (tests/conversion/sizes/test_reshape_ir.py)",
    "convert --to variadic-split": "the reason of a change, which says what was asked for",
    "Write the weights to a file": "a model of more than 2 GiB",
    "--scheduler needs dask": "an installation without dask.distributed",
    "and …": "the page of a report; `diff` has the same advice in a situation",
    "Choose another name or folder": "data files that would replace those of the model itself",
    "Give sizes that fit the model": "a rank that hangs on sizes, where no engine said what does not fit",
    "Use VariadicSplit": "an IR (tests/conversion/openvino_ir/test_convert.py)",
    "Give smaller sizes": "models that need more memory than a process may have",
    "Install what the provider": "a provider that is known and does not start",
}
