"""Colours: texts are legible on what they stand on, light and dark, and a picture of a split has the page's colours."""

from __future__ import annotations

import re

import pytest

from splitgraph.reports.html.page import asset

COLOURS = {
    name: (light, dark)
    for name, light, dark in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", asset("theme.css"))
}
# What the guidelines of the W3C for accessibility ask for (level AA, texts of normal size).
LEAST = 4.5
ON = {
    "text": ["ground", "surface", "raised", "hover", "frame", *(f"p{part}" for part in range(8))],
    "muted": ["ground", "surface", "raised", "hover", "frame", "accent-soft"],
    "accent": ["ground", "surface", "accent-soft"],
    "on-accent": ["accent"],
    **{kind: [f"{kind}-soft"] for kind in ("error", "warning", "info", "added", "removed", "changed")},
}


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_of_known_colours() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("text", "ground"), [(text, ground) for text, grounds in ON.items() for ground in grounds])
def test_texts_are_legible(text: str, ground: str, scheme: int) -> None:
    assert contrast(COLOURS[text][scheme], COLOURS[ground][scheme]) >= LEAST


def test_a_picture_has_the_colours_of_the_page() -> None:
    light, dark = asset("split.css").split("@media (prefers-color-scheme: dark)")
    for scheme, style in enumerate((light, dark)):
        for part in range(8):
            [fill] = re.findall(rf"\.p{part} \.fill \{{\s*fill: (#\w+);", style)
            [edge] = re.findall(rf"\.p{part} \.edge,\s*\.swatch\.p{part} \{{\s*fill: (#\w+);", style)
            assert fill == COLOURS[f"p{part}"][scheme]
            assert edge == COLOURS[f"e{part}"][scheme]
        assert f"fill: {COLOURS['text'][scheme]}" in style
