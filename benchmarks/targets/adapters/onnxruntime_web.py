"""onnxruntime-web's WebAssembly in Node."""

import base64
import json
import os
import subprocess
import sys

PACKAGES = {"1.30.0": ["numpy"]}
NPM = {"1.30.0": ["onnxruntime-web@1.30.0"]}
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "onnxruntime_web.mjs")


class Refused(Exception):
    """What Node says of a model that the runtime does not read."""


def VERSION():
    with open(os.path.join(_package(), "package.json"), encoding="utf-8") as described:
        return json.load(described)["version"]


def _package():
    return os.path.join(os.path.dirname(os.path.dirname(sys.executable)), "node_modules", "onnxruntime-web")


def run(model, inputs, outputs):
    with open("request.json", "w", encoding="utf-8") as request:
        json.dump({"inputs": {name: _described(value) for name, value in inputs.items()}}, request)
    library = os.path.join(_package(), "dist", "ort.node.min.mjs")
    done = subprocess.run(["node", SCRIPT, library, os.path.dirname(model)], capture_output=True)
    if done.returncode:
        raise Refused((done.stdout or done.stderr).decode(errors="replace"))
    with open("answer.json", encoding="utf-8") as answer:
        results = json.load(answer)
    return [_array(results[name]) for name in outputs]


def _described(value):
    if value.dtype == object:
        return {"type": "string", "dims": list(value.shape), "data": value.ravel().tolist()}
    data = base64.b64encode(value.tobytes()).decode()
    return {"type": value.dtype.name, "dims": list(value.shape), "data": data}


def _array(value):
    import numpy as np

    if value["type"] == "string":
        return np.array(value["data"], dtype=object).reshape(value["dims"])
    return np.frombuffer(base64.b64decode(value["data"]), dtype=value["type"]).reshape(value["dims"])
