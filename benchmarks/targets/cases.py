"""Cases of a measurement: a model, its inputs and its expected outputs, as files beside each other.

`NAME.onnx`, `NAME.in.npz` (arrays by the names of the inputs) and `NAME.exp.npz` (arrays by the names of the outputs,
in the model's order). Strings are stored as NumPy's text of fixed width. Objects would need pickle, and unpickling a
file of someone else can run code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A model with its inputs and its expected outputs, by their files."""

    name: str
    model: Path
    inputs: Path
    expected: Path


def case_of(folder: Path, name: str) -> Case:
    """The case of this name in a folder, whether or not its files are there."""
    return Case(name, folder / f"{name}.onnx", folder / f"{name}.in.npz", folder / f"{name}.exp.npz")


def write_case(
    folder: Path, name: str, model: bytes, inputs: Mapping[str, Array], expected: Mapping[str, Array]
) -> Case:
    """Write the three files of a case."""
    case = case_of(folder, name)
    case.model.write_bytes(model)
    for path, arrays in ((case.inputs, inputs), (case.expected, expected)):
        np.savez(path, **{key: array.astype(str) if array.dtype == object else array for key, array in arrays.items()})
    return case


def cases_in(folder: Path) -> list[Case]:
    """The cases of a folder, sorted by name. Raises ValueError where a model has no inputs or expected outputs."""
    cases = [case_of(folder, path.stem) for path in sorted(folder.glob("*.onnx"))]
    for case in cases:
        for path in (case.inputs, case.expected):
            if not path.exists():
                raise ValueError(f"{case.model} has no {path.name} beside it; write the file with numpy.savez")
    return cases


def read_arrays(path: Path) -> dict[str, Array]:
    """The arrays of a file by name, strings as objects."""
    with np.load(path) as stored:
        arrays = {key: stored[key] for key in stored.files}
    return {key: array.astype(object) if array.dtype.kind == "U" else array for key, array in arrays.items()}
