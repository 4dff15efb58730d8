"""Recognises what kind of file a file is, by its name and its first bytes; and makes the error that refuses one."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from splitgraph.findings.diagnostics import ModelError, diagnostic

# What a file looks like ----------------------------------------------------------------------------------------------


_PREFIXES: tuple[tuple[bytes, str], ...] = (
    (b"version https://git-lfs", "a Git LFS pointer; fetch the file itself with `git lfs pull`"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file (Keras?)"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x1f\x8b", "a gzip file; unpack it first"),
    (b"BZh", "a bzip2 file; unpack it first"),
    (b"\xfd7zXZ\x00", "an xz file; unpack it first"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file; unpack it first"),
    (b"GGUF", "a GGUF file"),
    (b"ftrt", "a TensorRT engine"),
    (b"ptrt", "a TensorRT engine"),
    (b"%PDF-", "a PDF document"),
)
_MAGIC_AT_4 = {b"TFL3": "a TensorFlow Lite model", b"ORTM": "a model in onnxruntime's own ORT format"}
# The first bytes of a frozen graph (field 1 is a node) and of a SavedModel (schema version, graph), and typical nodes.
_TENSORFLOW_STARTS = (b"\n", b"\x08\x01\x12")
_TENSORFLOW_NODES = (b"\x12\x05Const", b"\x12\x0bPlaceholder", b"\x12\x04NoOp", b"\x12\x0cVarHandleOp")
_PICKLE_PROTOCOLS = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


def describe_content(data: bytes) -> str | None:
    """Return what the bytes look like ("an HTML page ..."), None when they look like nothing known.

    Only asked once the bytes have turned out not to be a model, so a chance resemblance refuses nothing.
    """
    for prefix, description in _PREFIXES:
        if data.startswith(prefix):
            return description
    if data[4:8] in _MAGIC_AT_4:
        return _MAGIC_AT_4[data[4:8]]
    if data[:4] == b"PK\x03\x04":
        return _describe_zip(data)
    if data.startswith(_PICKLE_PROTOCOLS):
        return "a Python pickle (an old PyTorch file?); export it to ONNX first"
    if data[8:10] == b'{"' and int.from_bytes(data[:8], "little") <= len(data):
        return "a safetensors file: weights without a graph"
    if data.startswith(_TENSORFLOW_STARTS) and any(node in data[:65536] for node in _TENSORFLOW_NODES):
        return "a TensorFlow model; export it to ONNX first, with tf2onnx say"
    if not data.strip(b"\0"):
        return "nothing but zero bytes (an interrupted download or copy?)"
    return _describe_text(data[:1024])


def _describe_zip(data: bytes) -> str:
    import io
    import zipfile

    try:
        names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError):
        return "a damaged zip archive"
    if any(name.endswith("data.pkl") for name in names):
        return "a PyTorch file; export it with torch.onnx.export"
    models = [name for name in names if name.endswith(".onnx")]
    return f"a zip archive that holds {models[0]!r}; unpack it first" if models else "a zip archive"


def _describe_text(start: bytes) -> str | None:
    try:
        # The end of the part that is read may cut a character in two.
        text = start.decode("utf-8", errors="strict" if len(start) < 1024 else "ignore").lstrip("\ufeff \t\r\n").lower()
    except UnicodeDecodeError:
        return None
    if text.startswith(("<!doctype html", "<html")):
        return "an HTML page (a failed download?)"
    if text.startswith("<?xml") and "<net" not in text:
        return "an XML file"
    if text.startswith(("<?xml", "<net")):
        return "an OpenVINO IR file"
    if any(not (character.isprintable() or character.isspace()) for character in text):
        return None
    if text.startswith(("{", "[")):
        return "JSON text"
    return "plain text"


def is_ir(path: Path) -> bool:
    """Return True for an .xml by name, or a file that begins as an IR does."""
    return path.suffix.lower() == ".xml" or begins_as_ir(path)


def begins_as_ir(path: Path) -> bool:
    """Return True for a file that begins as an IR does; False for one that cannot be read, whose reader says what is
    wrong.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as file:
            start = file.read(1024)
    except OSError:
        return False
    return describe_content(start) == "an OpenVINO IR file"


# Refusing a file -----------------------------------------------------------------------------------------------------


def shown(path: str | os.PathLike[str]) -> str:
    """Return a path as messages write it: escaped if it would break the line or the terminal."""
    text = os.fspath(path)
    return text if text.isprintable() else repr(text)


def model_error(code: str, message: str, path: str | os.PathLike[str] = "", *, help: str | None = None) -> ModelError:
    """Return a ModelError about one file, with the diagnostic of the same words."""
    location = shown(path)
    line = f"{location}: {message}" if location else message
    return ModelError(line, (diagnostic(code, message, location, help=help),))


def system_reason(error: OSError) -> str:
    """Return what the operating system says went wrong, in its own words but without its numbers."""
    return error.strerror or str(error) or type(error).__name__
