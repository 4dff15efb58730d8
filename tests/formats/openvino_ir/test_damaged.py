"""Damaged files: whatever is changed in them, they are read or refused, and what was read can be walked and written."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest
from example_counts import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from splitgraph.findings.diagnostics import ModelError
from splitgraph.formats import load_ir, save_ir
from splitgraph.formats.openvino_ir import Graph, OpenVINOModel

from .small_ir import BIN, VERSION_10, XML, archived, write

SEEDS = [(XML.encode(), BIN), (VERSION_10.encode(), b""), *archived("bodies.zip").values()]
# Bits of XML that damage in the interesting places is made of.
PIECES = [
    *(b"<", b">", b"/>", b'"', b"'", b"&", b"&#0;", b"&#65;", b"&x;", b"<!--", b"-->", b"<![CDATA[", b"]]>", b"<?x ?>"),
    *(b"<!DOCTYPE net>", b"\0", b"\xff", b"\xc3", b"\xef\xbb\xbf", b"\r", b"-1", b"0", b"99999999999999999999", b"1e9"),
    *(b" ", b"...", b"?", b"2..1", b",", b"\\,", b'id="0"', b'offset="9"', b'size="0"', b'type="Const"', b"<layers />"),
    *(
        b"<edges />",
        b"<body />",
        b"<then_body><layers /></then_body>",
        b"<port />",
        b"<dim />",
        b"<data />",
        b"<layer />",
    ),
]
TOKEN = re.compile(rb'"[^"]*"|</?\w+|[<>]|\d+')


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


FUZZ = settings(
    derandomize=True,
    deadline=None,
    max_examples=examples(200),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def walk(model: OpenVINOModel, graph: Graph) -> None:
    known = {layer.id for layer in graph.layers}
    for (reader, _), (source, _) in graph.sources.items():
        assert {reader, source} <= known
    for layer in graph.layers:
        if layer.type == "Const":
            assert len(model.constant(layer)) == int(layer.data["size"])
        for body in layer.bodies.values():
            walk(model, body)


def read_or_refuse(folder: Path, xml: bytes, weights: bytes) -> bool:
    try:
        model = load_ir(write(folder, xml, weights))
    except ModelError as error:
        (finding,) = error.diagnostics
        assert finding.code in ("SG101", "SG106", "SG107", "SG111") and "\n" not in str(error)
        return False
    walk(model, model.graph)
    save_ir(model, folder / "out.xml")
    again = load_ir(folder / "out.xml")
    assert [layer.name for layer in again.graph.layers] == [layer.name for layer in model.graph.layers]
    assert again.graph.sources == model.graph.sources
    return True


@FUZZ
@given(
    seed=st.sampled_from(SEEDS),
    changes=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.binary(max_size=3), st.integers(0, 6)), max_size=4
    ),
    keep=st.floats(0, 1),
)
def test_damaged_bytes(
    tmp_path: Path, seed: tuple[bytes, bytes], changes: list[tuple[float, bytes, int]], keep: float
) -> None:
    xml = seed[0]
    for place, new, removed in changes:
        start = int(place * len(xml))
        xml = xml[:start] + new + xml[start + removed :]
    read_or_refuse(tmp_path, xml, seed[1][: int(len(seed[1]) * keep * 2)])


def test_damaged_tokens(tmp_path: Path) -> None:
    """Names, numbers and tags exchanged for each other, which leaves most files well-formed."""
    random_numbers, read = random.Random(5), 0
    for _ in range(500):
        xml, weights = random_numbers.choice(SEEDS)
        for _ in range(random_numbers.choice((1, 1, 2, 5))):
            tokens = list(TOKEN.finditer(xml))
            old = random_numbers.choice(tokens)
            kind = old.group()[:1]
            alike = [token.group() for token in tokens if token.group()[:1] == kind or kind.isdigit()]
            new = random_numbers.choice(alike if random_numbers.random() < 0.8 else PIECES)
            xml = xml[: old.start()] + new + xml[old.end() :]
        read += read_or_refuse(tmp_path, xml, weights)
    # Both happen, so that neither half of the check is empty.
    assert 50 < read < 450


def test_damaged_elements(tmp_path: Path) -> None:
    """Whole elements removed, repeated or moved."""
    random_numbers, read = random.Random(6), 0
    for _ in range(300):
        xml, weights = random_numbers.choice(SEEDS)
        lines = xml.split(b"\n")
        elements = [index for index, line in enumerate(lines) if re.fullmatch(rb"\s*<(\w+).*(/>|</\1>)", line)]
        for _ in range(random_numbers.choice((1, 2))):
            taken = lines[random_numbers.choice(elements)]
            index = random_numbers.choice(elements)
            lines[index : index + random_numbers.choice((0, 1))] = random_numbers.choice(([], [taken]))
            elements = [number for number in elements if number < len(lines)]
        read += read_or_refuse(tmp_path, b"\n".join(lines), weights)
    assert 50 < read < 250


@FUZZ
@given(content=st.binary(max_size=200))
def test_random_bytes(tmp_path: Path, content: bytes) -> None:
    read_or_refuse(tmp_path, content, BIN)


def test_every_truncation(tmp_path: Path) -> None:
    content = XML.encode()
    for length in range(0, len(content.rstrip()), 7):
        assert not read_or_refuse(tmp_path, content[:length], BIN)
