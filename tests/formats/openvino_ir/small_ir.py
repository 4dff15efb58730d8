"""A small IR as text, to be changed by tests, and the archives of IR that OpenVINO itself wrote."""

from __future__ import annotations

import zipfile
from pathlib import Path

HERE = Path(__file__).parent

# x[2, 6] split in two along a constant axis.
XML = """<?xml version="1.0"?>
<net name="small" version="11">
	<layers>
		<layer id="0" name="x" type="Parameter" version="opset1">
			<data shape="2,6" element_type="f32" />
			<output>
				<port id="0" precision="FP32" names="x">
					<dim>2</dim>
					<dim>6</dim>
				</port>
			</output>
		</layer>
		<layer id="1" name="axis" type="Const" version="opset1">
			<data element_type="i64" shape="" offset="0" size="8" />
			<output>
				<port id="0" precision="I64" />
			</output>
		</layer>
		<layer id="2" name="split" type="Split" version="opset1">
			<data num_splits="2" />
			<input>
				<port id="0" precision="FP32">
					<dim>2</dim>
					<dim>6</dim>
				</port>
				<port id="1" precision="I64" />
			</input>
			<output>
				<port id="2" precision="FP32" names="a,a\\,b">
					<dim>2</dim>
					<dim>-1</dim>
				</port>
				<port id="3" precision="FP32" />
			</output>
		</layer>
		<layer id="3" name="Result_3" type="Result" version="opset1">
			<input>
				<port id="0" precision="FP32" />
			</input>
		</layer>
	</layers>
	<edges>
		<edge from-layer="0" from-port="0" to-layer="2" to-port="0" />
		<edge from-layer="1" from-port="0" to-layer="2" to-port="1" />
		<edge from-layer="2" from-port="3" to-layer="3" to-port="0" />
	</edges>
	<rt_info>
		<info name="key" value="value &quot;quoted&quot; &amp; > &lt; ' &#10;&#09;" />
	</rt_info>
</net>
"""
BIN = (1).to_bytes(8, "little")

# As Model Optimizer wrote version 10: no space before "/>", a space in the declaration, meta data.
VERSION_10 = """<?xml version="1.0" ?>
<net name="old" version="10">
	<layers>
		<layer id="0" name="x" type="Parameter" version="opset1">
			<data element_type="f32" shape="1, 3, 6"/>
			<output>
				<port id="0" precision="FP32">
					<dim>1</dim>
					<dim>3</dim>
					<dim>6</dim>
				</port>
			</output>
		</layer>
		<layer id="1" name="x/sink" type="Result" version="opset1">
			<input>
				<port id="0">
					<dim>1</dim>
					<dim>3</dim>
					<dim>6</dim>
				</port>
			</input>
		</layer>
	</layers>
	<edges>
		<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
	</edges>
	<meta_data>
		<MO_version value="2021.4.0"/>
		<cli_parameters>
			<caffe_parser_path value="DIR"/>
			<unset unset_cli_parameters="batch, counts"/>
		</cli_parameters>
	</meta_data>
</net>
"""


def changed(old: str, new: str, text: str = XML) -> str:
    """The text with one part replaced, which must be there."""
    assert old in text
    return text.replace(old, new, 1)


def write(folder: Path, xml: str | bytes = XML, weights: bytes | None = BIN) -> Path:
    """The pair of files in a folder; the path of the .xml."""
    path = folder / "model.xml"
    path.write_bytes(xml.encode() if isinstance(xml, str) else xml)
    if weights is not None:
        path.with_suffix(".bin").write_bytes(weights)
    return path


def archived(name: str) -> dict[str, tuple[bytes, bytes]]:
    """The .xml and .bin of each IR in an archive, by its name without suffix."""
    with zipfile.ZipFile(HERE / name) as archive:
        names = sorted(entry.removesuffix(".xml") for entry in archive.namelist() if entry.endswith(".xml"))
        return {entry: (archive.read(f"{entry}.xml"), archive.read(f"{entry}.bin")) for entry in names}
