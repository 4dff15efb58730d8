"""Inference rules by family of operators; each module registers its rules when it is imported."""

from __future__ import annotations

from importlib import import_module

FAMILIES = (
    "constants",
    "control_flow",
    "convolution",
    "elementwise",
    "indexing",
    "joining",
    "matmul",
    "recurrent",
    "reduction",
    "resampling",
    "reshape",
    "sequence",
    "shape",
    "slicing",
)


def load_rules() -> None:
    """Import every family, once; rules import the walk's types, so this cannot happen while the package is being
    imported.
    """
    for family in FAMILIES:
        import_module(f"{__name__}.{family}")
