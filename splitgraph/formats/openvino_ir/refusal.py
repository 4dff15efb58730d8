"""How this package refuses a file: one line that names the file, what was found, and what to do about it."""

from __future__ import annotations

import os

from splitgraph.diagnostics import ModelError
from splitgraph.formats.model_error import model_error

_MOST_SHOWN = 80
_HELP = {
    "SG101": "Check the path; an IR is a pair of an .xml and a .bin file, as OpenVINO's save_model writes them.",
    "SG106": "Convert the original model again with a current OpenVINO, which writes IR version 11.",
    "SG107": "Put the .bin that belongs to this .xml beside it, under the same name, or convert the model again.",
    "SG111": "Convert the original model to IR again.",
}


def refusal(code: str, message: str, path: str | os.PathLike[str] | None) -> ModelError:
    """A ModelError about an IR, with the help that fits IR files."""
    return model_error(code, message, "" if path is None else path, help=_HELP.get(code))


def quoted(text: str) -> str:
    """A part of the file as messages show it: on one line, and not longer than a line."""
    return repr(text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}...")
