"""`verify_models` with the keywords of `splitgraph.verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from splitgraph.options import ATOL, RTOL, Running
from splitgraph.verification.verification import Verification
from splitgraph.verification.verify import verify_models as verify_with

if TYPE_CHECKING:
    from splitgraph.formats import Model


def verify_models(before: Model, after: Model, **options: Any) -> Verification:
    """Verify two models. options: of `splitgraph.verify`, and of `verify_models`."""
    running = {name: options.pop(name) for name in Running._fields if name in options}
    running = {"rtol": RTOL, "atol": ATOL, "try_sizes": options.pop("bind", None), **running}
    return verify_with(before, after, Running(**running), **options)
