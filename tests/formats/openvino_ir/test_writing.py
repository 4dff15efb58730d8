"""What is not edited is written back as it was; both files appear together or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import canonicalize

import onnx
import pytest

import splitgraph
from splitgraph.findings.diagnostics import ModelError
from splitgraph.formats import load_ir, save_ir

from ..tiny_models import add_model
from .small_ir import BIN, VERSION_10, XML, archived, changed, write

WRITTEN_BY_OPENVINO = {**archived("corpus.zip"), **archived("bodies.zip")}
OLD = b"what was there before"


def listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def refusal(model: Any, path: Any, **arguments: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        save_ir(model, path, **arguments)
    return caught.value


# Refusals and no-ops -------------------------------------------------------------------------------------------------


def test_name_that_is_not_of_an_ir(tmp_path: Path) -> None:
    model = load_ir(write(tmp_path))
    for name in ("model.onnx", "model", "model.bin", "model.xml.bak"):
        assert refusal(model, tmp_path / name).diagnostics[0].code == "SG101"
    assert refusal(model, b"a.xml").diagnostics[0].code == "SG101"
    assert listing(tmp_path) == ["model.bin", "model.xml"]


@pytest.mark.parametrize("model", ["model.xml", 7, None])
def test_what_is_no_model(tmp_path: Path, model: Any) -> None:
    with pytest.raises(ModelError):
        splitgraph.save(model, tmp_path / "out.xml")
    assert listing(tmp_path) == []


def test_an_ir_is_not_written_as_onnx(tmp_path: Path) -> None:
    model = load_ir(write(tmp_path))
    with pytest.raises(ModelError, match=r"ends in \.xml"):
        splitgraph.save(model, tmp_path / "out.onnx")
    assert listing(tmp_path) == ["model.bin", "model.xml"]


@pytest.mark.parametrize("existing", ["out.xml", "out.bin"])
def test_existing_file_is_kept_unless_asked(tmp_path: Path, existing: str) -> None:
    model = load_ir(write(tmp_path))
    (tmp_path / existing).write_bytes(OLD)
    assert refusal(model, tmp_path / "out.xml", overwrite=False).diagnostics[0].code == "SG108"
    assert listing(tmp_path) == sorted(["model.bin", "model.xml", existing])
    assert (tmp_path / existing).read_bytes() == OLD
    save_ir(model, tmp_path / "out.xml")
    assert (tmp_path / "out.bin").read_bytes() == BIN


@pytest.mark.parametrize("in_the_way", ["out.xml", "out.bin"])
def test_folder_in_the_way(tmp_path: Path, in_the_way: str) -> None:
    model = load_ir(write(tmp_path))
    (tmp_path / in_the_way).mkdir()
    assert "is a folder" in str(refusal(model, tmp_path / "out.xml"))
    assert listing(tmp_path) == sorted(["model.bin", "model.xml", in_the_way])


def test_missing_folder(tmp_path: Path) -> None:
    assert refusal(load_ir(write(tmp_path)), tmp_path / "no" / "out.xml").diagnostics[0].code == "SG109"


@pytest.mark.parametrize("failing", range(1, 5))
def test_failing_write_leaves_both_old_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int) -> None:
    model = load_ir(write(tmp_path))
    for suffix in ("xml", "bin"):
        (tmp_path / f"out.{suffix}").write_bytes(OLD + suffix.encode())
    sync, calls = os.fsync, []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == failing:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    if failing < 4:
        assert refusal(model, tmp_path / "out.xml").diagnostics[0].code == "SG109"
        assert [(tmp_path / f"out.{suffix}").read_bytes() for suffix in ("xml", "bin")] == [OLD + b"xml", OLD + b"bin"]
    else:
        # One sync for each file and one for their folder: this is the number of chances to fail.
        save_ir(model, tmp_path / "out.xml")
        assert len(calls) == 3
    assert listing(tmp_path) == ["model.bin", "model.xml", "out.bin", "out.xml"]


def test_weights_that_changed_since_are_not_written(tmp_path: Path) -> None:
    path = write(tmp_path)
    model = load_ir(path)
    path.with_suffix(".bin").write_bytes(b"other!")
    assert refusal(model, tmp_path / "out.xml").diagnostics[0].code == "SG107"
    assert listing(tmp_path) == ["model.bin", "model.xml"]


def test_weights_are_left_alone_in_place(tmp_path: Path) -> None:
    path = write(tmp_path)
    before = path.with_suffix(".bin").stat()
    model = load_ir(path)
    model.root.set("name", "renamed")
    save_ir(model, path)
    after = path.with_suffix(".bin").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert load_ir(path).name == "renamed"


# The same again ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WRITTEN_BY_OPENVINO)
def test_files_of_openvino_come_back_byte_for_byte(tmp_path: Path, name: str) -> None:
    xml, weights = WRITTEN_BY_OPENVINO[name]
    model = load_ir(write(tmp_path, xml, weights))
    for saved in (model, model.copy()):
        save_ir(saved, tmp_path / "out.xml")
        assert (tmp_path / "out.xml").read_bytes() == xml
        assert (tmp_path / "out.bin").read_bytes() == weights


SAME_BYTES = {
    "as OpenVINO writes": XML,
    "version 10": VERSION_10,
    "Windows": XML.replace("\n", "\r\n"),
    "byte order mark": "\ufeff" + XML,
    "no declaration": XML.split("\n", 1)[1],
    "encoding declared": XML.replace('"1.0"?>', '"1.0" encoding="UTF-8"?>'),
    "no last line break": XML.rstrip(),
    "blank lines": "\n".join(["", *XML.split("\n")[1:], "", ""]),
    "one line": XML.replace("\n", "").replace("\t", ""),
    "comments": "<!-- before -->\n"
    + XML.split("\n", 1)[1].replace("<layer ", "<!-- <&> --><?pi layer?><?pi?><layer ")
    + "<!-- behind -->\n",
    "other languages": changed('name="split"', 'name="разбить/分割/é/\U0001f600/>\'"'),
    "text": changed("<rt_info>", "<rt_info><t>a &amp; b &lt; c &gt; \"d\" 'e'</t>\n\t\t"),
    "colons": changed("<rt_info>", '<rt_info><a:b c:d="1" xmlns="e" /><xml:f xml:g="h" />'),
}


@pytest.mark.parametrize("xml", SAME_BYTES.values(), ids=SAME_BYTES)
def test_written_back_byte_for_byte(tmp_path: Path, xml: str) -> None:
    save_ir(load_ir(write(tmp_path, xml)), tmp_path / "out.xml")
    assert (tmp_path / "out.xml").read_bytes() == xml.encode()


SAME_CONTENT = {
    "CDATA": changed("<dim>2</dim>", "<dim><![CDATA[2]]></dim>"),
    "quotes": XML.replace('"2,6"', "'2,6'"),
    "spaces in tags": XML.replace("<layer ", "<layer \n  ").replace('" />', '"   />'),
    "empty elements": XML.replace('precision="I64" />', 'precision="I64"></port>'),
    "references": XML.replace("&#10;", "&#xA;"),
    "Latin-1": XML.replace('"1.0"?>', '"1.0" encoding="iso-8859-1"?>')
    .replace('name="x"', 'name="\xe9"')
    .encode("latin-1"),
    "UTF-16": XML.replace('"1.0"?>', '"1.0" encoding="utf-16"?>').encode("utf-16"),
}


@pytest.mark.parametrize("xml", SAME_CONTENT.values(), ids=SAME_CONTENT)
def test_written_back_with_the_same_content(tmp_path: Path, xml: str | bytes) -> None:
    path = write(tmp_path, xml)
    save_ir(load_ir(path), tmp_path / "out.xml")
    assert canonicalize(from_file=tmp_path / "out.xml", with_comments=True) == canonicalize(
        from_file=path, with_comments=True
    )
    save_ir(load_ir(tmp_path / "out.xml"), tmp_path / "again.xml")
    assert (tmp_path / "again.xml").read_bytes() == (tmp_path / "out.xml").read_bytes()


# Edits ---------------------------------------------------------------------------------------------------------------


def test_edit_changes_nothing_else(tmp_path: Path) -> None:
    model = load_ir(write(tmp_path))
    copy = model.copy()
    copy.graph.layers[2].element.set("name", 'a "b" <c> & d')
    assert copy.refresh().layers[2].name == 'a "b" <c> & d'
    assert model.refresh().layers[2].name == "split"
    save_ir(copy, tmp_path / "out.xml")
    expected = changed('name="split"', 'name="a &quot;b&quot; &lt;c> &amp; d"')
    assert (tmp_path / "out.xml").read_text() == expected


def test_edit_that_breaks_the_graph_is_found(tmp_path: Path) -> None:
    model = load_ir(write(tmp_path))
    model.graph.layers[1].element.set("id", "7")
    with pytest.raises(ModelError, match="layer 1 does not exist"):
        model.refresh()


def appended_model(folder: Path, xml: str, weights: bytes | None) -> tuple[Any, int]:
    model = load_ir(write(folder, xml, weights))
    return model, model.append_constant(b"lengths!")


@pytest.mark.parametrize(("weights", "offset"), [(BIN, 64), (BIN * 8, 64), (BIN * 9, 128)])
def test_appended_constant(tmp_path: Path, weights: bytes, offset: int) -> None:
    model, given = appended_model(tmp_path, XML, weights)
    assert given == offset
    data = model.graph.layers[1].element.find("data")
    data.set("offset", str(offset))
    axis = model.refresh().layers[1]
    assert bytes(model.constant(axis)) == bytes(model.copy().constant(axis)) == b"lengths!"
    for name in ("out.xml", "model.xml"):
        save_ir(model, tmp_path / name)
        assert (tmp_path / name).with_suffix(".bin").read_bytes() == weights.ljust(offset, b"\0") + b"lengths!"
        read = load_ir(tmp_path / name)
        assert bytes(read.constant(read.graph.layers[1])) == b"lengths!"


def test_appended_to_a_copy_only(tmp_path: Path) -> None:
    model = load_ir(write(tmp_path))
    copy = model.copy()
    assert (copy.append_constant(b"a"), copy.append_constant(b"b"), model.weights_size) == (64, 128, 8)


def test_appended_where_there_were_no_weights(tmp_path: Path) -> None:
    model, offset = appended_model(tmp_path, VERSION_10, None)
    assert offset == 0
    save_ir(model, tmp_path / "out.xml")
    assert (tmp_path / "out.bin").read_bytes() == b"lengths!"


def test_constant_across_the_end_of_the_file(tmp_path: Path) -> None:
    model, _ = appended_model(tmp_path, XML, BIN)
    model.graph.layers[1].element.find("data").set("offset", "4")
    assert bytes(model.constant(model.refresh().layers[1])) == BIN[4:] + bytes(4)


def test_model_without_weights_leaves_no_bin(tmp_path: Path) -> None:
    save_ir(load_ir(write(tmp_path, VERSION_10, None)), tmp_path / "out.xml")
    assert listing(tmp_path) == ["model.xml", "out.xml"]


def test_links_are_written_through(tmp_path: Path) -> None:
    path = write(tmp_path)
    (tmp_path / "real").mkdir()
    for suffix in ("xml", "bin"):
        (tmp_path / "real" / f"out.{suffix}").write_bytes(OLD)
        (tmp_path / f"link.{suffix}").symlink_to(Path("real") / f"out.{suffix}")
    splitgraph.save(splitgraph.load(path), tmp_path / "link.xml")
    assert (tmp_path / "link.xml").is_symlink() and (tmp_path / "link.bin").is_symlink()
    assert [(tmp_path / "real" / f"out.{suffix}").read_bytes() for suffix in ("xml", "bin")] == [XML.encode(), BIN]


def test_an_onnx_model_is_still_written_as_onnx(tmp_path: Path) -> None:
    splitgraph.save(add_model(), tmp_path / "m.onnx")
    assert isinstance(splitgraph.load(tmp_path / "m.onnx"), onnx.ModelProto)
