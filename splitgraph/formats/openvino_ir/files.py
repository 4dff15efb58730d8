"""Reading and writing the pair of files that an IR is.

Source: OpenVINO's IR frontend, which looks for the .bin beside the .xml under the same name.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from pathlib import Path

from splitgraph.findings.diagnostics import meant_file
from splitgraph.formats.atomic_write import WriteTogether, writable_target
from splitgraph.formats.external_data import is_inside
from splitgraph.formats.onnx_file import holds_model, require_path
from splitgraph.formats.openvino_ir.model import OpenVINOModel, Weights
from splitgraph.formats.openvino_ir.xml_tree import parse_xml, quoted, refusal, write_xml
from splitgraph.formats.recognition import describe_content, model_error, shown, system_reason

StrPath = str | os.PathLike[str]

VERSIONS = (10, 11)
_ONNX = "an ONNX model; give it a name that ends in .onnx"
# The first bytes of XML in UTF-8 and in encodings that agree with it, or in UTF-16.
_STARTS = (b"<", b"\xff\xfe", b"\xfe\xff", b"\0<")


def load_ir(path: StrPath) -> OpenVINOModel:
    """Read an IR: the .xml, and the .bin of the same name beside it, which is read only where a constant is
    asked for.

    Raises ModelError: SG101 not a readable file or not well-formed XML, SG106 a version of IR other than 10 and 11,
    SG107 a .bin that is missing, is a link out of its folder or does not hold what the .xml says, SG111 an .xml that
    describes no graph. A cycle and a layer of unknown type are not the file's fault: inference reports them.
    """
    require_path(path)
    path = Path(path)
    try:
        data = _read(path)
        root, style = parse_xml(data, path)
        _require_net(root.tag, root.get("version"), data, path)
        del data
        return OpenVINOModel(root, _open_weights(path), path, style=style)
    except MemoryError:
        raise refusal("SG101", "does not fit into this machine's memory", path) from None


def weights_path(path: StrPath) -> Path:
    """Return the .bin that belongs to an .xml."""
    return Path(path).with_suffix(".bin")


def _require_net(tag: str, version: str | None, data: bytes, path: Path) -> None:
    if tag != "net":
        looks_like = describe_content(data)
        known = f"; it looks like {looks_like}" if looks_like and looks_like != "an XML file" else ""
        raise refusal("SG101", f"is not OpenVINO IR: its root is <{quoted(tag)[1:-1]}>, not <net>{known}", path)
    if version is None:
        raise refusal("SG101", "is not OpenVINO IR: its <net> has no version", path)
    if version.strip() not in map(str, VERSIONS):
        raise refusal("SG106", f"has IR version {quoted(version)}; versions 10 and 11 are read", path)


def _read(path: Path) -> bytes:
    try:
        _require_regular(path, path)
        data = path.read_bytes()
    except FileNotFoundError:
        raise refusal("SG101", f"no such file{meant_file(path)}", path) from None
    except OSError as error:
        raise refusal("SG101", f"cannot be read: {system_reason(error)}", path) from error
    if not data:
        raise refusal("SG101", "is empty", path)
    if not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(_STARTS):
        looks_like = _ONNX if holds_model(data) else describe_content(data)
        raise refusal("SG101", f"is not XML{f'; it looks like {looks_like}' if looks_like else ''}", path)
    return data


def _open_weights(path: Path) -> Weights | None:
    weights = weights_path(path)
    if weights == path:
        raise refusal("SG101", "is named .bin; an IR is read by its .xml", path)
    if not is_inside(path.parent, weights.name):
        # As for external data of ONNX: a model from a stranger must not name the reader's other files as its weights.
        raise refusal("SG107", f"its {shown(weights.name)} is a link that leads outside its folder", path)
    try:
        _require_regular(weights, path)
        return Weights(weights, path)
    except FileNotFoundError:
        return None
    except OSError as error:
        reason = system_reason(error)
        raise refusal("SG107", f"its weights {shown(weights.name)} cannot be read: {reason}", path) from error


def _require_regular(file: Path, path: Path) -> None:
    """Raise ModelError for a folder or a pipe, which to open could take forever, and OSError."""
    mode = os.stat(file).st_mode
    if stat.S_ISREG(mode):
        return
    what = "is a folder, not a file" if stat.S_ISDIR(mode) else "is not a regular file"
    if file == path:
        raise refusal("SG101", what, path)
    raise refusal("SG107", f"its weights cannot be read: {shown(file.name)} {what}", path)


def save_ir(model: OpenVINOModel, path: StrPath, *, overwrite: bool = True, kept: Collection[Path] = ()) -> None:
    """Write an IR: the .xml at `path`, and the .bin of the same name beside it; both are there whole afterwards, or
    what was there before is unchanged. kept: files that are not replaced, not even with `overwrite`.

    Raises ModelError: SG101 not a file name that ends in .xml, SG108 one of the files exists and overwrite is False,
    or is one of those kept, SG109 cannot be written.
    """
    require_path(path)
    if Path(path).suffix.lower() != ".xml":
        raise refusal("SG101", "is not the name of an IR, which ends in .xml", path)
    try:
        content = write_xml(model.root, model.style)
    except UnicodeEncodeError as error:
        raise model_error("SG109", f"cannot be written: a name is not UTF-8 ({error.reason})", path) from None
    try:
        _save(model, content, path, overwrite, kept)
    except OSError as error:
        raise model_error("SG109", f"cannot be written: {system_reason(error)}", path) from error


def _save(model: OpenVINOModel, content: bytes, path: StrPath, overwrite: bool, kept: Collection[Path]) -> None:
    target = writable_target(path, overwrite)
    weights = weights_path(path)
    weights_target = None
    if model.has_weights and not _holds_weights(model, weights):
        weights_target = writable_target(weights, overwrite)
    with WriteTogether(kept, overwrite=overwrite) as files:
        if weights_target is not None:
            with files.open(weights_target) as file:
                for block in () if model.weights is None else model.weights.blocks():
                    file.write(block)
                file.write(model.appended)
        with files.open(target) as file:
            file.write(content)


def _holds_weights(model: OpenVINOModel, weights: Path) -> bool:
    """Return True when the .bin is the one that the model was read from, and nothing was appended."""
    if model.appended or model.path is None or not weights.exists():
        return False
    source = weights_path(model.path)
    return source.exists() and os.path.samefile(source, weights)
