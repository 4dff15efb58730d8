"""`splitgraph infer`."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from splitgraph import api
from splitgraph.arguments import output_path, parse_bindings, parse_input_shapes, refuse_existing
from splitgraph.commands.files import write_model
from splitgraph.exit_codes import CLEAN, FINDINGS
from splitgraph.formats import ExternalData, open_model
from splitgraph.graph.names import dimension_names
from splitgraph.inference.analysis import Analysis
from splitgraph.onnx_proto import ModelProto
from splitgraph.report.printing import print_document, print_result, say_error

if TYPE_CHECKING:
    from splitgraph.formats import Model


def infer(
    model: Path,
    *,
    output: str | None,
    force: bool,
    external_data: ExternalData | None,
    bind: Sequence[str],
    input_shape: Sequence[str],
    assume_defaults: bool,
    accept: Sequence[str],
    with_values: bool,
    as_json: bool,
) -> int:
    """Infer a model and print a report; write the model with its types only if it has no errors."""
    bindings = parse_bindings(bind)
    path = None if output is None else output_path(output, model.name)
    if path is not None:
        refuse_existing(path, model, force=force, advice="give another name with -o")
    loaded = open_model(model, weights="leave")
    shapes = parse_input_shapes(input_shape, *_known_names(loaded.content)) if input_shape else {}
    # Not its content, which the verb would check once more.
    opened: Any = loaded
    analysis = api.infer(opened, bind=bindings, input_shapes=shapes, assume_defaults=assume_defaults, accept=accept)
    written = path if analysis.ok else None
    if written is not None:
        write_model(analysis.model, written, loaded, overwrite=force, external_data=external_data)
    if as_json:
        _print_document(analysis, model, with_values)
    else:
        _print_page(analysis, model, with_values, written)
    return CLEAN if analysis.ok else _say_errors(analysis, model)


def _print_document(analysis: Analysis, model: Path, with_values: bool) -> None:
    from splitgraph.report.documents import analysis_json

    print_document(analysis_json(analysis, str(model), with_values))


def _print_page(analysis: Analysis, model: Path, with_values: bool, written: Path | None) -> None:
    from splitgraph.report.layout import line
    from splitgraph.report.pages import analysis_page

    page = analysis_page(analysis, str(model), with_values=with_values, brief=sys.stdout.isatty())
    print_result([*page, line("wrote ", (str(written), "bold"))] if written else page)


def _known_names(model: Model) -> tuple[Collection[str], Collection[str]]:
    """The names of a model's dimensions, and of its inputs. IR has no names for dimensions."""
    if not isinstance(model, ModelProto):
        from splitgraph.inference.openvino_ir import input_names

        return (), input_names(model)
    return dimension_names(model), [value.name for value in model.graph.input]


def _say_errors(analysis: Analysis, model: Path) -> int:
    from splitgraph.report.pages import findings_phrase

    errors = [d for d in analysis.diagnostics if d.severity == "error"]
    say_error(f"{model}: {findings_phrase(errors)}")
    return FINDINGS
