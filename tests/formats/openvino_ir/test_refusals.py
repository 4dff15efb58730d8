"""What is not a readable IR is refused in one line that names the file, what is wrong with it, and what to do."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from splitgraph.findings.diagnostics import CODES, ModelError
from splitgraph.formats import load_ir, open_model

from .small_ir import BIN, XML, archived, changed, write

BODIES = {name: xml.decode() for name, (xml, _) in archived("bodies.zip").items()}
EDGE = '<edge from-layer="0" from-port="0" to-layer="2" to-port="0" />'
AXIS = '<data element_type="i64" shape="" offset="0" size="8" />'
SPLIT = '<layer id="2" name="split" type="Split" version="opset1">'
BOMB = '<!DOCTYPE net [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {new} "{f"&{old};" * 10}">' for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


def with_prolog(prolog: str, text: str = XML) -> str:
    return text.replace('<?xml version="1.0"?>\n', prolog, 1)


def refusal(path: Path) -> ModelError:
    with pytest.raises(ModelError) as caught:
        load_ir(path)
    (finding,) = caught.value.diagnostics
    assert finding.code in CODES and finding.help and finding.message in str(caught.value)
    assert "\n" not in str(caught.value) and str(caught.value).isprintable() and len(finding.message) < 700
    return caught.value


NOT_XML = [
    (b"", "is empty"),
    (b"\n\n", "is not XML"),
    (b"\x08\x08:\x00", "is not XML"),
    (random.Random(0).randbytes(400), "is not XML"),
    (b"{}", "looks like JSON text"),
    (b'\x08\x08:\x07\n\x05"\x03Abs', "is not XML; it looks like an ONNX model; give it a name that ends in .onnx"),
    (b"GGUF\x03\0\0\0", "looks like a GGUF file"),
    (b"<!DOCTYPE html>\n<html></html>", "document type declaration"),
    (b"<html><body/></html>", "root is <html>, not <net>; it looks like an HTML page"),
    (b'<?xml version="1.0"?><note/>', "root is <note>"),
    (b'<?xml version="1.0"?><!-- only this -->', "not well-formed"),
    (XML[:-9], "not well-formed XML: unclosed token (line"),
    (XML[:700], "not well-formed"),
    (XML + XML, "not well-formed"),
    (XML + "text", "not well-formed"),
    (changed("</net>", "</nett>"), "mismatched tag"),
    (changed('id="2" name', 'id="2" id="2" name'), "duplicate attribute"),
    (changed("shape", "sha pe"), "not well-formed"),
    (changed('name="split"', 'name="&unknown;"'), "undefined entity"),
    (changed('name="split"', 'name="&#0;"'), "reference to invalid character number"),
    (XML.encode().replace(b"split", b"spl\xfft"), "not well-formed (invalid token)"),
    (XML.encode("utf-16")[:-41], "not well-formed"),
    (with_prolog('<?xml version="1.0" encoding="klingon"?>'), "encoding"),
    (with_prolog('<?xml version="1.0" encoding="utf-7"?>'), "encoding"),
    (with_prolog('<?xml version="1.0" encoding="utf-16"?>'), "encoding"),
    (with_prolog('<?xml version="1.0"?><!DOCTYPE net>'), "document type declaration"),
    (with_prolog('<?xml version="1.0"?><!DOCTYPE net SYSTEM "file:///etc/passwd">'), "document type declaration"),
    (with_prolog(BOMB + "]>", changed('name="split"', 'name="&i;"')), "document type declaration"),
    (
        with_prolog('<!DOCTYPE net [<!ENTITY e SYSTEM "file:///etc/passwd">]>', changed("<rt_info>", "<rt_info>&e;")),
        "document type declaration",
    ),
    (with_prolog('<!DOCTYPE net [<!ENTITY % p SYSTEM "http://localhost/p"> %p;]>'), "document type declaration"),
    ("<a>" * 500 + "</a>" * 500, "nested deeper than 128 levels"),
    ("<a>" * 100_000, "nested deeper than 128 levels"),
    (changed("<rt_info>", "<rt_info>" + "<i>" * 200 + "</i>" * 200), "nested deeper"),
    (changed("<net name", "<model name").replace("</net>", "</model>"), "root is <model>"),
    (changed(' version="11"', ""), "has no version"),
]


@pytest.mark.parametrize(("content", "words"), NOT_XML)
def test_not_readable(tmp_path: Path, content: str | bytes, words: str) -> None:
    error = refusal(write(tmp_path, content))
    assert words in str(error)
    assert error.diagnostics[0].code == "SG101"
    assert "passwd" not in str(error) and "root:" not in str(error)


@pytest.mark.parametrize("version", ["9", "12", "7", "", "x", "11.5", "-11", "1" * 5000])
def test_version_that_is_not_read(tmp_path: Path, version: str) -> None:
    error = refusal(write(tmp_path, changed('version="11"', f'version="{version}"')))
    assert error.diagnostics[0].code == "SG106" and "versions 10 and 11" in str(error)


BAD_NUMBERS = ["-1", "a", "", "0x1", "1.0", "1e3", "١", "9" * 19, "9" * 40, "9" * 5000, "1_0"]

MALFORMED = [
    *((changed('<layer id="2"', f'<layer id="{bad}"'), f"layer 'split' has the id '{bad[:40]}") for bad in BAD_NUMBERS),
    *((changed('<port id="2"', f'<port id="{bad}"'), "a port of layer 'split' has the id") for bad in BAD_NUMBERS),
    *((changed('to-port="1"', f'to-port="{bad}"'), "an edge of the <net> has the to-port") for bad in BAD_NUMBERS),
    *((changed('from-layer="1"', f'from-layer="{bad}"'), "has the from-layer") for bad in BAD_NUMBERS),
    *((changed("<dim>6</dim>", f"<dim>{bad}</dim>"), "has the dimension") for bad in ["-2", *BAD_NUMBERS[1:]]),
    (changed("<dim>6</dim>", "<dim />"), "port 0 of layer 'x' has the dimension ''"),
    (changed("<dim>6</dim>", "<dim><i>6</i></dim>"), "has the dimension ''"),
    (changed('<layer id="2" ', "<layer "), "layer 'split' has no id"),
    (changed(SPLIT, SPLIT.replace(' name="split"', "")), "layer '' (id 2) has no name"),
    (changed(SPLIT, SPLIT.replace(' type="Split"', "")), "layer 'split' (id 2) has no type"),
    (changed(SPLIT, SPLIT.replace(' version="opset1"', "")), "layer 'split' (id 2) has no version"),
    (changed('<layer id="2"', '<layer id="1"'), "the <net> has two layers of id 1: 'axis' and 'split'"),
    (changed('<port id="3"', '<port id="2"'), "layer 'split' has two ports of id 2"),
    (changed('<port id="1" precision="I64" />', '<port id="0" />'), "layer 'split' has two ports of id 0"),
    (changed('from-port="0" to-layer="2"', 'to-layer="2"'), "an edge of the <net> has no from-port"),
    (changed('from-layer="1"', 'from-layer="7"'), "leads nowhere: layer 7 does not exist"),
    (changed('to-layer="3"', 'to-layer="8"'), "leads nowhere: layer 8 does not exist"),
    (changed('from-port="3"', 'from-port="9"'), "leads nowhere: layer 2 has no output port 9"),
    (changed('to-port="1"', 'to-port="5"'), "leads nowhere: layer 2 has no input port 5"),
    (changed('from-port="3"', 'from-port="1"'), "layer 2 has no output port 1"),
    (changed(EDGE, EDGE + EDGE), "is the second one into that port"),
    (changed('to-port="1"', 'to-port="0"'), "is the second one into that port"),
    (changed("<layers>", "<layers /><layers>"), "the <net> has 2 <layers>"),
    (changed("<edges>", "<edges /><edges>"), "the <net> has 2 <edges>"),
    ('<net name="m" version="11"></net>', "the <net> has no <layers>"),
    ('<net version="11"/>', "the <net> has no <layers>"),
    *(
        (changed('shape="2,6"', f'shape="{bad}"'), "layer 'x' has the shape")
        for bad in (
            *(
                ",",
                "2,,6",
                "2,6,",
                "a,6",
                "2x",
                "+2",
                "-2",
                "1.5",
                "5..2",
                "2..-1",
                "2...5",
                "..5..",
                "2,...",
                "[2",
                "2]",
            ),
            *("?..3", "2 .. 5", "9" * 19, "9" * 5000, "2;6", "(2,6)", "[[2]]", "0x10"),
        )
    ),
    *(
        (changed(AXIS, AXIS.replace('shape=""', f'shape="{bad}"')), "layer 'axis'")
        for bad in ("?", "...", "-1", "1..2", "1,,1", "a", "[]", "[1]", "9" * 30)
    ),
    *(
        (changed(AXIS, AXIS.replace(f' {name}="{value}"', "")), f"layer 'axis' (id 1) is a Const without {name}")
        for name, value in (("element_type", "i64"), ("shape", ""), ("offset", "0"), ("size", "8"))
    ),
    *((changed('offset="0"', f'offset="{bad}"'), "has the offset") for bad in ("-8", "a", "", "9" * 20, "0x0")),
    *((changed('size="8"', f'size="{bad}"'), "and the size") for bad in ("-8", "a", "", "9" * 20)),
    (changed('size="8"', 'size="4"'), "has 4 bytes, but 'i64' of shape '' takes 8"),
    (changed('size="8"', 'size="16"'), "has 16 bytes, but 'i64' of shape '' takes 8"),
    (changed('element_type="i64" shape=""', 'element_type="i64" shape="3"'), "takes 24"),
    (changed('shape="" offset', f'shape="{",".join(["9" * 18] * 50)}" offset'), "more elements than any file holds"),
    (changed('shape="" offset', f'shape="{"9," * 99_999}9" offset'), "more elements than any file holds"),
    (changed(AXIS, ""), "is a Const without element_type"),
]


@pytest.mark.parametrize(("xml", "words"), MALFORMED)
def test_malformed(tmp_path: Path, xml: str, words: str) -> None:
    error = refusal(write(tmp_path, xml, BIN * 4))
    assert words in str(error)
    assert error.diagnostics[0].code == "SG111"


def in_body(name: str, old: str, new: str) -> str:
    return changed(old, new, BODIES[name])


BAD_BODIES = [
    (in_body("if", "<then_body>", "<then_bodyx>").replace("</then_body>", "</then_bodyx>"), "but no <then_body>"),
    (in_body("loop", "<body>", "<x>").replace("</body>", "</x>"), "but no <body>"),
    (
        in_body("if", '<input external_port_id="1"', '<input external_port_id="5"'),
        "external_port_id '5', which is no input",
    ),
    (in_body("if", '<output external_port_id="2"', '<output external_port_id="-2"'), "which is no output port"),
    (in_body("loop", 'external_port_id="-1"', 'external_port_id="x"'), "external_port_id 'x'"),
    (in_body("loop", ' internal_layer_id="1"', ""), "internal_layer_id '', which is no Parameter"),
    (in_body("loop", 'internal_layer_id="1"', 'internal_layer_id="99"'), "which is no Parameter"),
    (in_body("loop", 'internal_layer_id="1"', 'internal_layer_id="8"'), "'8', which is no Parameter"),
    (in_body("tensor_iterator", '<edge from-layer="5" to-layer="1" />', '<edge from-layer="5" />'), "to-layer ''"),
    (in_body("tensor_iterator", '<edge from-layer="5" to-layer="1"', '<edge from-layer="1" to-layer="1"'), "no Result"),
    (in_body("if", '<layer id="3" name="then_split"', '<layer id="2" name="then_split"'), "two layers of id 2"),
    (
        in_body("if", 'from-layer="1" from-port="0" to-layer="3"', 'from-layer="1" from-port="0" to-layer="9"'),
        "<then_body>",
    ),
]


@pytest.mark.parametrize(("xml", "words"), BAD_BODIES)
def test_bad_body(tmp_path: Path, xml: str, words: str) -> None:
    error = refusal(write(tmp_path, xml, archived("bodies.zip")["if"][1] * 4))
    assert words in str(error)
    assert error.diagnostics[0].code == "SG111"


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (None, "layer 'axis' (id 1) is in the .bin, but there is none beside the .xml"),
        (b"", "which has only 0"),
        (BIN[:7], "layer 'axis' (id 1) needs 8 bytes from byte 0 of the .bin, which has only 7"),
    ],
)
def test_weights_that_are_not_there(tmp_path: Path, weights: bytes | None, words: str) -> None:
    error = refusal(write(tmp_path, XML, weights))
    assert words in str(error)
    assert error.diagnostics[0].code == "SG107" and ".bin" in error.diagnostics[0].help


@pytest.mark.parametrize("offset", ["1", "8", "9" * 18, str(2**63 - 1), str(2**63 - 8)])
def test_offset_beyond_the_weights(tmp_path: Path, offset: str) -> None:
    error = refusal(write(tmp_path, changed('offset="0"', f'offset="{offset}"')))
    assert error.diagnostics[0].code == "SG107"


def test_constant_in_a_body_beyond_the_weights(tmp_path: Path) -> None:
    xml, weights = archived("bodies.zip")["if"]
    error = refusal(write(tmp_path, xml, weights[:-1]))
    assert error.diagnostics[0].code == "SG107"


def test_weights_that_are_a_folder(tmp_path: Path) -> None:
    path = write(tmp_path, XML, None)
    path.with_suffix(".bin").mkdir()
    assert "model.bin is a folder" in str(refusal(path))


def test_weights_that_are_a_pipe_are_not_waited_for(tmp_path: Path) -> None:
    path = write(tmp_path, XML, None)
    os.mkfifo(path.with_suffix(".bin"))
    assert "model.bin is not a regular file" in str(refusal(path))


def test_weights_that_link_to_themselves(tmp_path: Path) -> None:
    path = write(tmp_path, XML, None)
    path.with_suffix(".bin").symlink_to("model.bin")
    assert refusal(path).diagnostics[0].code == "SG107"


@pytest.mark.parametrize(
    "link",
    ["../secret.bin", "/etc/hostname", "up/secret.bin", "../nothing.bin", "hop.bin", "../beside", "../models/w.bin"],
)
def test_weights_that_link_out_of_the_folder(tmp_path: Path, link: str) -> None:
    (tmp_path / "secret.bin").write_bytes(BIN)
    folder = tmp_path / "model"
    (folder / "inner").mkdir(parents=True)
    # A folder whose name begins as the model's does is not in it.
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "w.bin").write_bytes(BIN)
    (tmp_path / "beside").symlink_to("models/w.bin")
    (folder / "up").symlink_to("..")
    (folder / "hop.bin").symlink_to("../secret.bin")
    path = write(folder, XML, None)
    path.with_suffix(".bin").symlink_to(link)
    error = refusal(path)
    assert "model.bin is a link that leads outside its folder" in str(error) and error.diagnostics[0].code == "SG107"


@pytest.mark.parametrize("link", ["inner/w.bin", "hop.bin", "../model/inner/w.bin"])
def test_weights_that_link_within_the_folder(tmp_path: Path, link: str) -> None:
    folder = tmp_path / "model"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "w.bin").write_bytes(BIN)
    (folder / "hop.bin").symlink_to("inner/w.bin")
    path = write(folder, XML, None)
    path.with_suffix(".bin").symlink_to(link)
    assert load_ir(path).has_weights


def test_missing_file(tmp_path: Path) -> None:
    assert "no such file" in str(refusal(tmp_path / "nowhere.xml"))


def test_folder_and_pipe(tmp_path: Path) -> None:
    (tmp_path / "folder.xml").mkdir()
    assert "is a folder" in str(refusal(tmp_path / "folder.xml"))
    os.mkfifo(tmp_path / "pipe.xml")
    assert "not a regular file" in str(refusal(tmp_path / "pipe.xml"))


def test_weights_given_as_the_model(tmp_path: Path) -> None:
    path = write(tmp_path)
    (tmp_path / "other.bin").write_text(XML)
    assert "read by its .xml" in str(refusal(tmp_path / "other.bin"))
    assert "is not XML" in str(refusal(path.with_suffix(".bin")))


@pytest.mark.parametrize("path", [b"model.xml", 0, None, "", "a\0.xml"])
def test_what_is_not_a_path(path: object) -> None:
    with pytest.raises(ModelError):
        load_ir(path)  # type: ignore[arg-type]


def test_name_that_would_break_the_line(tmp_path: Path) -> None:
    path = tmp_path / "a\nb\x1b[31m.xml"
    path.write_text(changed('name="split"', 'name="&#10;spl\u202eit"').replace('type="Split" ', ""))
    assert "'\\nspl\\u202eit'" in str(refusal(path))


def test_what_is_only_onnx_says_so_of_an_ir(tmp_path: Path) -> None:
    path = write(tmp_path)
    with pytest.raises(ModelError, match="an ONNX model is needed here"):
        _ = open_model(path).model
