"""Which models a call is about."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from splitgraph.findings.diagnostics import SplitgraphError
from splitgraph.many.sources import ModelSource, find_pairs, find_sources

IR = Path(__file__).parents[2] / "models" / "interval_split.xml"


def named(sources: list[ModelSource]) -> list[tuple[str, str | None]]:
    return [(source.name, None if source.relative is None else str(source.relative)) for source in sources]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["empty"], "there is no model in the folder empty"),
        (["zoo/*.pb"], "there is no model in the pattern zoo/*.pb"),
        (["zoo/*.txt"], "there is no model in the pattern zoo/*.txt"),
        (["zoo", "empty"], "there is no model in the folder empty"),
    ],
)
def test_nothing_found(arguments: list[str], told: str, zoo: Path) -> None:
    os.mkdir("empty")
    with pytest.raises(SplitgraphError, match=r"models are files that end in \.onnx") as caught:
        find_sources(arguments)
    assert str(caught.value).startswith(told)
    assert caught.value.diagnostics[0].code == "SG601"


def test_everything_excluded(zoo: Path) -> None:
    with pytest.raises(SplitgraphError, match="--exclude leaves out every model of zoo"):
        find_sources(["zoo"], ["*"])


A, B, NEW = ("zoo/a.onnx", "a.onnx"), ("zoo/deep/b.onnx", "deep/b.onnx"), ("zoo/deep/new.onnx", "deep/new.onnx")


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        # A file that was named is not looked at: whoever opens it says what is wrong.
        (["missing.onnx"], [("missing.onnx", None)]),
        (["zoo/readme.txt"], [("zoo/readme.txt", None)]),
        (["zoo/a.onnx", "zoo/a.onnx"], [("zoo/a.onnx", None)]),
        (["zoo/a.onnx", "zoo"], [("zoo/a.onnx", None), B, NEW]),
        (["zoo"], [A, B, NEW]),
        (["zoo/"], [A, B, NEW]),
        (["zoo/*.onnx"], [A]),
        (["zoo/**/*.onnx"], [A, B, NEW]),
        (["zoo/**"], [A, B, NEW]),
        (["zoo/d*"], [B, NEW]),
        (["*/deep/n?w.onnx"], [("zoo/deep/new.onnx", "zoo/deep/new.onnx")]),
        (["zoo/d*/../a.onnx"], [("zoo/deep/../a.onnx", "a.onnx")]),
        (["zoo/deep/../d*/../../zoo/a.onnx"], [("zoo/deep/../deep/../../zoo/a.onnx", "a.onnx")]),
        (["[z]oo/a.onnx"], [("zoo/a.onnx", "zoo/a.onnx")]),
    ],
)
def test_found(arguments: list[str], found: list[tuple[str, str | None]], zoo: Path) -> None:
    assert named(find_sources(arguments)) == found


@pytest.mark.parametrize(
    ("exclude", "found"),
    [
        (["*.txt"], [A, B, NEW]),
        (["b.onnx"], [A, NEW]),
        (["deep/b.onnx"], [A, NEW]),
        (["zoo/deep/b.onnx"], [A, NEW]),
        (["deep/"], [A]),
        (["deep"], [A]),
        (["new*", "a.*"], [B]),
        (["a.onnx/"], [A, B, NEW]),
    ],
)
def test_excluded(exclude: list[str], found: list[tuple[str, str]], zoo: Path) -> None:
    assert named(find_sources(["zoo"], exclude)) == found


def test_a_file_whose_name_is_a_pattern(zoo: Path) -> None:
    shutil.copy("zoo/a.onnx", "zoo/[x].onnx")
    assert named(find_sources(["zoo/[x].onnx"])) == [("zoo/[x].onnx", None)]


def test_results_are_no_models_of_the_next_call(zoo: Path) -> None:
    shutil.copytree("zoo/deep", "zoo/out")
    assert named(find_sources(["zoo"], below=Path("zoo/out"))) == [A, B, NEW]


def test_ir_is_found_by_its_content(zoo: Path) -> None:
    shutil.copy(IR, "zoo/ir.xml")
    assert named(find_sources(["zoo"])) == [A, ("zoo/ir.xml", "ir.xml"), B, NEW]
    assert named(find_sources(["zoo"], only_onnx=True)) == [A, B, NEW]
    assert named(find_sources(["zoo/ir.xml"], only_onnx=True)) == [("zoo/ir.xml", None)]


def test_a_circle_of_links_ends(zoo: Path) -> None:
    os.symlink("..", "zoo/deep/up")
    assert named(find_sources(["zoo"])) == [A, B, NEW]


@pytest.mark.parametrize(
    ("after", "found"),
    [
        (["a.onnx"], "after/a.onnx"),
        (["a.opset18.onnx"], "after/a.opset18.onnx"),
        (["a.onnx", "a.opset18.onnx"], "after/a.onnx"),
        (["a.opset18.onnx", "a.opset20.onnx"], None),
        (["a.variadic-split.xml"], "after/a.variadic-split.xml"),
        (["deep/a.onnx"], None),
        (["ab.onnx"], None),
        ([], None),
    ],
)
def test_pairs(after: list[str], found: str | None) -> None:
    def source(folder: str, name: str) -> ModelSource:
        return find(f"{folder}/{name}", name)

    assert find_pairs([source("before", "a.onnx")], [source("after", name) for name in after]) == [
        ("before/a.onnx", found)
    ]


def find(name: str, relative: str) -> ModelSource:
    from pathlib import PurePosixPath

    return ModelSource(name, PurePosixPath(relative))


def test_a_pair_whose_tag_was_replaced() -> None:
    before, after = find("b/m.opset11.onnx", "m.opset11.onnx"), find("a/m.opset18.onnx", "m.opset18.onnx")
    assert find_pairs([before], [after]) == [("b/m.opset11.onnx", "a/m.opset18.onnx")]
