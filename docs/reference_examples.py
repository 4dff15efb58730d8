"""Examples for the page of the command line, beside the few that `--help` shows.

A test checks that the two together have an example of every option, that each is short, and that click accepts it.
"""

from __future__ import annotations

from collections.abc import Mapping

_REWRITING = """\
{call} {goal} -o new.onnx --force
{call} {goal} --in-place --ir-version keep --external-data
{call} {goal} --verify --engine onnxruntime --provider cuda
{call} {goal} --samples 5 --seed 1 --try N=4 --rtol 1e-4 --atol 1e-5
{call} {goal} --bind batch=4             (the result has this size)
{call} {goal} --inputs data.npz --custom-ops libops.so --json
{call} {goal} --accept SG302@main/resize   (the node stays as it is)
{call} {goal} --assume-defaults            (weights listed as inputs)
{call} {goal} --fix-defaults   (weights are no inputs then)
{call} {goal} --read-by-form   (nodes of another opset)
{many} {goal} -o out/ --skip-newer --no-verify --jobs 8 --timeout 60
{many} {goal} -o out/ --exclude old/ --memory 4 --quiet
{many} {goal} -o out/ --report r.jsonl --resume --junit r.xml
{many} {goal} -o out/ --format github      (annotations of a workflow)
{cloud} {goal} -o out/ --scheduler tcp://10.0.0.1:8786"""


def _rewriting(verb: str, goal: str) -> str:
    model, folder, cloud = (f"splitgraph {verb} {models}" for models in ("model.onnx", "models/", "'s3://zoo/*.onnx'"))
    return _REWRITING.format(call=model, many=folder, cloud=cloud, goal=goal)


EXAMPLES: Mapping[str, str] = {
    "infer": """\
splitgraph infer model.onnx --bind N=4 --input-shape "x=N,3,H + 2,?" --all --json
splitgraph infer model.onnx --bind batch=4 -o fixed.onnx --force
splitgraph infer large.onnx -o typed/ --external-data link            (weights: no copy)
splitgraph infer model.onnx --accept SG302@main/head/*                (no error of ours)
splitgraph infer model.onnx --assume-defaults            (weights listed as inputs)
splitgraph infer models/ --exclude old/ --jobs 8 --timeout 60 --memory 4 --quiet
splitgraph infer models/ --format sarif
splitgraph infer models/ --report r.jsonl --resume --junit r.xml
splitgraph infer 's3://zoo/*.onnx' --scheduler tcp://10.0.0.1:8786""",
    "upgrade": _rewriting("upgrade", "--opset 18"),
    "downgrade": _rewriting("downgrade", "--opset 11"),
    "convert": f"""\
splitgraph convert model.onnx --target openvino@2023.3 --opset 13
splitgraph convert model.onnx --ir-version 8          (and nothing else)
splitgraph convert model.onnx --fold --bind N=4       (constants in place of Shape and the like)
splitgraph convert model.onnx --to slice              (a Slice for each part)
splitgraph convert pipeline.onnx --opset ai.onnx.ml=3 --drop-zipmap
splitgraph convert model.onnx --to variadic-split -o variadic.onnx
splitgraph convert model.onnx --to split --explicit-lengths
splitgraph convert model.onnx --target mnn --dry-run --diff                 (what would change)
splitgraph convert model.onnx --target mnn --runtime-python venv/bin/python (that has MNN)
{_rewriting("convert", "--target mnn")}""",
    "reshape": """\
splitgraph reshape model.onnx --batch 8 -o eight.onnx --force
splitgraph reshape model.onnx --input-shape ids=1,T --keep "main/topk[0]"
splitgraph reshape model.onnx --batch N --in-place --external-data --bind seq=128
splitgraph reshape model.onnx --batch N --verify --engine onnxruntime --provider cuda
splitgraph reshape model.onnx --batch N --samples 5 --seed 1 --rtol 1e-4 --atol 1e-5
splitgraph reshape model.onnx --batch N --inputs data.npz --custom-ops libops.so --json
splitgraph reshape model.onnx --batch N --accept SG302@main/resize --assume-defaults
splitgraph reshape model.onnx --batch N --fix-defaults --read-by-form
splitgraph reshape models/ --batch N -o out/ --no-verify --jobs 8 --timeout 60 --quiet
splitgraph reshape models/ --batch N -o out/ --exclude old/ --memory 4
splitgraph reshape models/ --batch N -o out/ --format sarif
splitgraph reshape models/ --batch N -o out/ --report r.jsonl --resume --junit r.xml
splitgraph reshape 's3://zoo/*.onnx' --batch N -o out/ --scheduler tcp://10.0.0.1:8786""",
    "check": """\
splitgraph check model.onnx --all-targets --json
splitgraph check model.onnx --target mnn --run --runtime-python venv/bin/python
splitgraph check model.onnx --target mnn --run --samples 5 --seed 1 --try N=4
splitgraph check model.onnx --target mnn --run --inputs data.npz    (on these inputs)
splitgraph check model.onnx --all-targets --assume-defaults
splitgraph check model.onnx --target mnn --accept SG302@main/node
splitgraph check models/ --target mnn --exclude old/ --jobs 8 --timeout 60 --memory 4 --quiet
splitgraph check models/ --target mnn --report r.jsonl --resume
splitgraph check models/ --target mnn --format sarif
splitgraph check models/ --target mnn --report r.jsonl --force --junit r.xml
splitgraph check 's3://zoo/*.onnx' --target mnn --scheduler tcp://10.0.0.1:8786""",
    "verify": """\
splitgraph verify model.onnx other.onnx --bind N=4 --samples 5 --seed 1 --rtol 1e-4 --atol 1e-5
splitgraph verify model.onnx other.onnx --inputs data.npz --json
splitgraph verify model.onnx --in ort --in mnn --runtime-python mnn=venv/bin/python
splitgraph verify model.onnx other.onnx --custom-ops libops.so --provider cuda
splitgraph verify model.onnx other.onnx --engine onnxruntime
splitgraph verify models/ out/ --pairs --jobs 8 --timeout 60 --memory 4 --exclude old/ --quiet
splitgraph verify models/ out/ --pairs --report r.jsonl --resume
splitgraph verify models/ out/ --pairs --format sarif
splitgraph verify models/ out/ --pairs --report r.jsonl --junit r.xml --force
splitgraph verify models/ out/ --pairs --scheduler tcp://10.0.0.1:8786""",
    "report": """\
splitgraph report model.onnx -o reports/ --force           (writes reports/model.report.html)
splitgraph report model.onnx -o report.html --title "Release 3" --json
splitgraph report models/ -o site/ --exclude old/ --jobs 8 --timeout 60 --memory 4 --quiet
splitgraph report models/ -o site/ --format sarif
splitgraph report models/ -o site/ --report r.jsonl --resume --junit r.xml
splitgraph report 's3://zoo/*.onnx' -o site/ --scheduler tcp://10.0.0.1:8786""",
}
