"""The committed selection of the backend tests of old onnx releases: of each form of each operator that has changed
since, the smallest case.

PYTHONPATH=tests python -m conformance.old_selection [--folder FOLDER] writes it anew from the releases, which
are downloaded.
"""

from __future__ import annotations

import argparse
import io
import tarfile
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import onnx

from .model_cases import ModelCase
from .old_archives import DATA, RELEASES, case_of, collect, fetch, folders_in
from .old_node_tests import FOLDER, fault_of

ARCHIVE = Path(__file__).with_name("old_models") / "cases.tar.xz"
# Operators of opsets above belong to onnx's node tests of today.
NEWEST = 12
# What is current at this opset has not changed since.
TODAY = 18
# Of a model and its data.
MOST_BYTES = 32_000

# Operator, version, names of the attributes, numbers of inputs and outputs.
Form = tuple[str, int, tuple[str, ...], int, int]


def selected() -> list[ModelCase]:
    """The cases of the committed archive."""
    folders: defaultdict[str, dict[str, bytes]] = defaultdict(dict)
    with tarfile.open(ARCHIVE) as archive:
        for member in archive:
            release, group, case, path = member.name.split("/", 3)
            folders[f"{release}/{group}/{case}"][path] = archive.extractfile(member).read()
    return [case_of(name, files) for name, files in folders.items()]


@cache
def versions_of(op_type: str) -> tuple[int, ...]:
    """The versions of an operator of ai.onnx up to the one of today, in order."""
    every = onnx.defs.get_all_schemas_with_history()
    found = {schema.since_version for schema in every if schema.name == op_type and schema.domain == ""}
    return tuple(sorted(version for version in found if version <= TODAY))


def forms_of(case: ModelCase) -> set[Form]:
    """The forms of operators in a case of which there is a newer version."""
    opset = case.opset or NEWEST + 1
    found = set()
    for node in case.model.graph.node:
        versions = [version for version in versions_of(node.op_type) if version <= opset]
        if opset <= NEWEST and versions and versions[-1] != versions_of(node.op_type)[-1]:
            names = tuple(sorted(attribute.name for attribute in node.attribute))
            found.add((node.op_type, versions[-1], names, len(node.input), len(node.output)))
    return found


def size_of(case: ModelCase) -> int:
    """Bytes of the model and of the tensors of its data."""
    tensors = (value for inputs, outputs in case.data_sets for value in (*inputs, *outputs))
    return case.model.ByteSize() + sum(getattr(value, "nbytes", 0) for value in tensors)


def choose(cases: Iterable[ModelCase]) -> list[ModelCase]:
    """The smallest valid case of each form, none above the limit; engines know no operators of other domains."""
    best: dict[Form, ModelCase] = {}
    for case in sorted(cases, key=lambda case: (size_of(case), case.name)):
        forms = forms_of(case)
        if forms and size_of(case) <= MOST_BYTES and len(case.model.opset_import) == 1 and not fault_of(case):
            for form in forms:
                best.setdefault(form, case)
    return list({case.name: case for case in best.values()}.values())


def write(folder: Path) -> None:
    """Write the archive, the same bytes for the same cases."""
    names = {case.name for case in choose(collect(folder))}
    ARCHIVE.parent.mkdir(exist_ok=True)
    # Of the tar formats that know names as long as these, this one has the least of headers.
    with tarfile.open(ARCHIVE, "w:xz", format=tarfile.USTAR_FORMAT) as archive:
        for release in RELEASES:
            for label, files in folders_in(fetch(release, folder), DATA):
                if f"{release}/{label}" in names:
                    for path, content in sorted(files.items()):
                        entry = tarfile.TarInfo(f"{release}/{label}/{path}")
                        entry.size = len(content)
                        archive.addfile(entry, io.BytesIO(content))


def main() -> None:
    """Write the archive and say what is in it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the releases are, or go")
    write(parser.parse_args().folder)
    forms = {form for case in selected() for form in forms_of(case)}
    print(f"{len(selected())} cases with {len(forms)} forms of operators, {ARCHIVE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
