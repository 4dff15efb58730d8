"""The packages that splitgraph requires, and the optional ones: which versions are installed."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import NamedTuple

# As pyproject.toml requires them, and what comes with onnx.
REQUIRED: Mapping[str, str] = {
    "onnx": "1.20",
    "onnx-graphsurgeon": "0.6.1",
    "numpy": "1.24",
    "click": "8.1",
    "rich": "13",
    "defusedxml": "0.7.1",
    "protobuf": "",
}
if sys.version_info < (3, 11):
    REQUIRED = {**REQUIRED, "tomli": "2"}


class Extra(NamedTuple):
    """An optional package: the oldest version that is supported, the module to import, and what it adds."""

    package: str
    oldest: str
    module: str
    adds: str


# By the names of the extras in pyproject.toml.
EXTRAS: Mapping[str, Extra] = {
    "onnxruntime": Extra("onnxruntime", "1.20", "onnxruntime", "verification with ONNX Runtime"),
    "openvino": Extra("openvino", "2025.0", "openvino", "verification with OpenVINO, ONNX to IR, passes for ov.Model"),
    "onnx-ir": Extra("onnx-ir", "0.1.7", "onnx_ir", "models of the type onnx_ir.Model, passes for onnx_ir"),
    "distributed": Extra("distributed", "2024.1", "distributed", "many models on a cluster of dask.distributed"),
    "fsspec": Extra("fsspec", "2024.2", "fsspec", "models at URLs"),
}


@dataclass(frozen=True, slots=True)
class PackageReport:
    """A package: the version that is installed (None: none), and the oldest one that is supported ("": any)."""

    name: str
    version: str | None
    oldest: str

    @property
    def is_too_old(self) -> bool:
        """Whether the installed version is older than the oldest that is supported."""
        return self.version is not None and _numbers(self.version) < _numbers(self.oldest)


def required_packages() -> list[PackageReport]:
    """Every package that splitgraph requires."""
    return [PackageReport(name, _version(name), oldest) for name, oldest in REQUIRED.items()]


def optional_packages() -> dict[str, PackageReport]:
    """The package of every extra, by the name of the extra. A variant such as onnxruntime-gpu counts."""
    providers = metadata.packages_distributions()
    found = {}
    for name, extra in EXTRAS.items():
        package = next(iter(providers.get(extra.module, ())), extra.package)
        found[name] = PackageReport(package, _version(package), extra.oldest)
    return found


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> list[int]:
    """The numbers of a release: [1, 20] for "1.20"; what comes after them, such as "rc1", does not count."""
    release = re.match(r"[\d.]*", version)
    return [int(number) for number in re.findall(r"\d+", release.group() if release else "")]
