"""Numbers with several readings: what is asked, what decides without a question, and that each answer is accepted."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser
from onnx.reference import ReferenceEvaluator

import splitgraph
from splitgraph.conversion.sizes.convert import convert_sizes
from splitgraph.findings.diagnostics import Diagnostic, SplitgraphError
from splitgraph.options import NewSizes

X = np.arange(18, dtype=np.float32).reshape(1, 9, 2)


def model(inside: str, opset: int = 17) -> ModelProto:
    """Return a model of x[1, 7, 2], whose first output is y."""
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g (float[1, 7, 2] x) => (float[a, b, c] y) {inside}'
    )


def questions(made: ModelProto, size: int | str = "T", **said: Any) -> tuple[Diagnostic, ...]:
    """Return what is asked for another length."""
    try:
        convert_sizes(made, NewSizes({"x": [1, size, 2]}, **said))
    except splitgraph.ConversionError as error:
        return tuple(error.diagnostics)
    return ()


def answered(made: ModelProto, *options: str, size: int | str = "T") -> ModelProto:
    """Return the model with another length. options: as a help text writes them."""
    said = {name: [text for kind, text in map(_option, options) if kind == name] for name in ("follow", "keep")}
    return splitgraph.reshape(made, {"x": [1, size, 2]}, **said).model


def _option(text: str) -> tuple[str, str]:
    kind, place = text.split(" ", 1)
    return kind.removeprefix("--"), place.strip('"')


def _options(text: str) -> list[str]:
    return re.findall(r'--(?:keep|follow) "[^"]*"', text)


def _out(made: ModelProto) -> list[int]:
    """Return the first column of y at a length of 9, or y if it has one dimension."""
    (found,) = ReferenceEvaluator(made).run(None, {"x": X[:, : X.shape[1]]})
    return [int(each) for each in (found[0, :, 0] if found.ndim == 3 else found.ravel())]


EVEN = [0, 2, 4, 6, 8, 10, 12, 14, 16]
# A model, and the first column of y for each answer.
ASKED: dict[str, tuple[ModelProto, dict[str, list[int]]]] = {
    "the last element": (
        model("<int64[1] i = {6}> { y = Gather <axis = 1> (x, i) }"),
        {'--keep "main/Gather#0[0]"': [12], '--follow "main/Gather#0[0]=T - 1"': [16]},
    ),
    "an element in the middle": (
        model("<int64[1] i = {3}> { y = Gather <axis = 1> (x, i) }"),
        {'--keep "main/Gather#0[0]"': [6], '--follow "main/Gather#0[0]=T - 4"': [10]},
    ),
    "the end of a slice": (
        model("<int64[1] a = {0}, int64[1] b = {6}, int64[1] c = {1}> { y = Slice (x, a, b, c) }"),
        {'--keep "main/Slice#0[0]"': EVEN[:6], '--follow "main/Slice#0[0]=T - 1"': EVEN[:8]},
    ),
    "the start of a slice": (
        model("<int64[1] a = {5}, int64[1] b = {7}, int64[1] c = {1}> { y = Slice (x, a, b, c) }"),
        {'--keep "main/Slice#0[1]"': EVEN[5:], '--follow "main/Slice#0[1]=T - 2"': EVEN[7:]},
    ),
    "the last ones, as many as a length": (
        model("""<int64[1] a = {-7}, int64[1] b = {14}, int64[1] c = {1}>
            { q = Concat <axis = 1> (x, x) y = Slice (q, a, b, c) }"""),
        {'--keep "main/Slice#1[1]"': EVEN[2:], '--follow "main/Slice#1[1]=-T"': EVEN},
    ),
    "half of an odd length, rounded down": (
        model("<int64[1] a = {0}, int64[1] b = {3}, int64[1] c = {1}> { y = Slice (x, a, b, c) }"),
        {'--keep "main/Slice#0[0]"': EVEN[:3], '--follow "main/Slice#0[0]=T//2"': EVEN[:4]},
    ),
    "half of an odd length, rounded up": (
        model("<int64[1] a = {4}, int64[1] b = {9999}, int64[1] c = {1}> { y = Slice (x, a, b, c) }"),
        {
            '--keep "main/Slice#0[1]"': EVEN[4:],
            '--follow "main/Slice#0[1]=T - 3"': EVEN[6:],
            '--follow "main/Slice#0[1]=(T + 1)//2"': EVEN[5:],
        },
    ),
    "a number by which a mean divides": (
        model("<float t = {7}, int64[1] c = {1}> { s = ReduceSum (x, c) r = Reciprocal (t) y = Mul (s, r) }"),
        {'--keep "main/Reciprocal#1[0]"': [10], '--follow "main/Reciprocal#1[0]=T"': [8]},
    ),
    "a slice behind a Pad": (
        model("""<int64[6] p = {0, 2, 0, 0, 0, 0}, int64[1] a = {0}, int64[1] b = {7}, int64[1] c = {1}>
            { q = Pad (x, p) y = Slice (q, a, b, c) }"""),
        {'--keep "main/Slice#1[0]"': [0, 0, *EVEN[:5]], '--follow "main/Slice#1[0]=T"': [0, 0, *EVEN[:7]]},
    ),
    "as many as there are, sorted": (
        model("<int64[1] k = {7}> { y, i = TopK <axis = 1> (x, k) }"),
        {'--keep "main/TopK#0[0]"': EVEN[:1:-1], '--follow "main/TopK#0[0]=T"': EVEN[::-1]},
    ),
    "half of what there is, sorted": (
        parser.parse_model(
            '<ir_version: 8, opset_import: ["": 17]> g (float[1, 6, 2] x) => (float[a, b, c] y) '
            "<int64[1] k = {3}> { y, i = TopK <axis = 1> (x, k) }"
        ),
        {'--keep "main/TopK#0[0]"': EVEN[:5:-1], '--follow "main/TopK#0[0]=T//2"': EVEN[:4:-1]},
    ),
    "a shape": (
        model("<int64[3] s = {1, 7, 2}> { z = ConstantOfShape (s) y = Concat <axis = 1> (x, z) }"),
        {
            '--keep "main/ConstantOfShape#0[1]"': [*EVEN, *[0] * 7],
            '--follow "main/ConstantOfShape#0[1]=T"': [*EVEN, *[0] * 9],
        },
    ),
    "the target of an Expand": (
        model("""<float[1, 1, 2] c = {5, 5}, int64[3] s = {1, 7, 2}>
            { z = Expand (c, s) y = Concat <axis = 1> (z, x) }"""),
        {'--keep "main/Expand#0[1]"': [*[5] * 7, *EVEN], '--follow "main/Expand#0[1]=T"': [*[5] * 9, *EVEN]},
    ),
    "the repeats of a Tile": (
        model("""<float[1, 1, 2] c = {5, 5}, int64[3] s = {1, 7, 1}>
            { z = Tile (c, s) y = Concat <axis = 1> (z, x) }"""),
        {'--keep "main/Tile#0[1]"': [*[5] * 7, *EVEN], '--follow "main/Tile#0[1]=T"': [*[5] * 9, *EVEN]},
    ),
    "the limit of a Range": (
        model("""<float a = {0}, float d = {1}, int64 s = {0}, int64 l = {7}, int64 e = {1}, int64[2] w = {0, 2}>
            { r = Range (s, l, e) f = Cast <to = 1> (r) u = Unsqueeze (f, w) v = Concat <axis = 2> (u, u)
              y = Concat <axis = 1> (v, x) }"""),
        {'--keep "main/Range#0[0]"': [*range(7), *EVEN], '--follow "main/Range#0[0]=T"': [*range(9), *EVEN]},
    ),
    "two lengths of a split": (
        model("<int64[2] s = {3, 4}> { y, z = Split <axis = 1> (x, s) }"),
        {'--follow "main/Split#0[0]=T - 4"': EVEN[:5], '--follow "main/Split#0[1]=T - 3"': EVEN[:3]},
    ),
    "the size of a crop": (
        model("<int64[1] s = {7}> { z = Concat <axis = 1> (x, x) y = CenterCropPad <axes = [1]> (z, s) }", 18),
        {'--keep "main/CenterCropPad#1[0]"': [10, 12, 14, 16, 0, 2, 4], '--follow "main/CenterCropPad#1[0]=T"': None},
    ),
    "steps of a loop": (
        model("""<int64 m = {7}, bool go = {1}>
            { y = Loop <body = b (int64 i, bool c, float[p, q, r] a) => (bool d, float[s, t, u] e)
                { d = Identity (c) e = Add (a, a) }> (m, go, x) }"""),
        {
            '--keep "main/Loop#0[0]"': [128 * each for each in EVEN],
            '--follow "main/Loop#0[0]=T"': [512 * each for each in EVEN],
        },
    ),
    "steps of a loop in a state that its condition reads": (
        model("""<int64 m = {99}, bool go = {1}, int64 z = {0}, int64 o = {1}, int64 n = {7}>
            { y, k, l = Loop <body = b (int64 i, bool c, float[p, q, r] a, int64 t, int64 g)
                => (bool d, float[s, t, u] e, int64 h, int64 j)
                { h = Add (t, o) d = Less (h, g) e = Add (a, a) j = Identity (g) }> (m, go, x, z, n) }"""),
        {
            '--keep "main/Loop#0[4]"': [128 * each for each in EVEN],
            '--follow "main/Loop#0[4]=T"': [512 * each for each in EVEN],
        },
    ),
    "the length of a sequence": (
        model("<int64[1] n = {7}> { y = ReverseSequence <batch_axis = 0, time_axis = 1> (x, n) }"),
        {
            '--keep "main/ReverseSequence#0[0]"': [*EVEN[6::-1], 14, 16],
            '--follow "main/ReverseSequence#0[0]=T"': EVEN[::-1],
        },
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_fits_twice_is_asked_and_each_answer_is_taken(name: str) -> None:
    made, answers = ASKED[name]
    (question,) = questions(made)
    assert question.code == "SG421" and _options(question.help or "") == [*answers]
    for option, expected in answers.items():
        after = answered(made, option)
        assert expected is None or _out(after) == expected


@pytest.mark.parametrize("name", ASKED)
def test_a_number_is_answered_in_terms_of_its_input(name: str) -> None:
    made, answers = ASKED[name]
    (question,) = questions(made, 9)
    options = _options(question.help or "")
    assert options == [*map(_spelled, answers)]
    for option, expected in zip(options, answers.values(), strict=True):
        after = answered(made, option, size=9)
        assert expected is None or _out(after) == expected


def _spelled(option: str) -> str:
    place, sign, says = option.partition("=")
    return place + sign + says.replace("T", "x[1]")


DECIDED: dict[str, tuple[ModelProto, list[int]]] = {
    "an element in the first half stays": (model("<int64[1] i = {2}> { y = Gather <axis = 1> (x, i) }"), [4]),
    "all elements are counted": (model("<int64[7] i = {0, 1, 2, 3, 4, 5, 6}> { y = Gather <axis = 1> (x, i) }"), EVEN),
    "all elements backwards": (
        model("<int64[7] i = {6, 5, 4, 3, 2, 1, 0}> { y = Gather <axis = 1> (x, i) }"),
        EVEN[::-1],
    ),
    "a later node needs the shape": (
        model("<int64[3] s = {1, 7, 2}> { z = ConstantOfShape (s) y = Add (x, z) }"),
        EVEN,
    ),
    "a later node needs the slice": (
        model("""<int64[6] p = {0, 2, 0, 0, 0, 0}, int64[1] a = {0}, int64[1] b = {7}, int64[1] c = {1}>
            { q = Pad (x, p) s = Slice (q, a, b, c) y = Add (x, s) }"""),
        [0, 2, *[2 * each - 4 for each in EVEN[2:]]],
    ),
    "a number that the model reads from a shape": (
        model("""<int64[6] p = {0, 0, 0, 0, 0, 5}, int64[1] c = {1}, int64[1] i = {2}>
            { q = Pad (x, p) h = Shape (q) g = Gather (h, i) f = Cast <to = 1> (g) s = ReduceSum (q, c)
              r = Reciprocal (f) y = Mul (s, r) }"""),
        [10],
    ),
    "another number stays": (
        model("<int64[3] s = {1, 5, 2}> { z = ConstantOfShape (s) y = Concat <axis = 1> (x, z) }"),
        [*EVEN, *[0] * 5],
    ),
    "all of it": (model("<int64[1] a = {0}, int64[1] b = {7}, int64[1] c = {1}> { y = Slice (x, a, b, c) }"), EVEN),
}


@pytest.mark.parametrize("name", DECIDED)
def test_what_one_reading_fits_is_not_asked(name: str) -> None:
    made, expected = DECIDED[name]
    assert _out(answered(made)) == expected
    assert _out(answered(made, size=9)) == expected


def test_elements_of_which_several_may_be_counted_from_the_end_are_asked_one_by_one() -> None:
    made = model("<int64[4] i = {0, 2, 4, 6}> { y = Gather <axis = 1> (x, i) }")
    found = questions(made)
    assert [each.message.partition(" can mean")[0] for each in found] == ["entry 2", "entry 3"]
    options = _options((found[0].help or "").partition("All questions")[2])
    assert options == ['--follow "main/Gather#0[2]=T - 3"', '--follow "main/Gather#0[3]=T - 1"']
    assert _out(answered(made, *options)) == [0, 4, 12, 16]
    assert _out(answered(made, '--keep "main/Gather#0[2]"', '--keep "main/Gather#0[3]"')) == [0, 4, 8, 12]


PLACES = {
    "GatherElements": "<int64[1, 2, 2] i = {0, 0, 6, 6}> { y = GatherElements <axis = 1> (x, i) }",
    "GatherND": "<int64[1, 2, 2] i = {0, 0, 0, 6}> { g = GatherND (x, i) y = Identity (g) }",
    "ScatterND": "<int64[1, 2, 2] i = {0, 0, 0, 6}, float[1, 2, 2] u = {1, 2, 3, 4}> { y = ScatterND (x, i, u) }",
}


@pytest.mark.parametrize("kind", PLACES)
def test_elements_by_their_places_are_refused(kind: str) -> None:
    assert [(each.code, each.location) for each in questions(model(PLACES[kind]))] == [("SG420", f"main/{kind}#0")]
    assert not questions(model(PLACES[kind].replace("6, 6}", "1, 1}").replace("6}", "1}")))


def test_answers_to_all_questions_at_once_fit_together() -> None:
    """Two slices whose sum has one size: both cannot count from the end."""
    made = model("""<int64[6] p = {0, 1, 0, 0, 0, 0}, int64[1] a = {0}, int64[1] b = {4}, int64[1] c = {1},
        int64[1] e = {9}>
        { q = Pad (x, p) s = Slice (q, a, b, c) t = Slice (q, b, e, c) y = Add (s, t) }""")
    found = questions(made)
    assert len(found) == 2
    options = _options((found[0].help or "").partition("All questions")[2])
    assert len(options) == 2 and answered(made, *options)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"keep": ["main/Gather#0"]}, "names no number of a node"),
        ({"keep": ["main/Gather#0[4]"]}, "no constant with an entry 4"),
        ({"follow": ["main/Gather#0[0]=9"]}, "say it in terms of x[1]"),
        ({"keep": "main/Gather#0[0]"}, "give a list of texts"),
    ],
)
def test_a_wrong_answer(said: dict[str, Any], text: str) -> None:
    made, _ = ASKED["the last element"]
    with pytest.raises(SplitgraphError) as caught:
        splitgraph.reshape(made, {"x": [1, 9, 2]}, **said)
    assert text in str(caught.value)


@pytest.mark.parametrize("node", ["resize0", "size0"])
def test_a_question_names_the_node_whatever_it_is_called(node: str) -> None:
    """A size that is a number before and after stands in formulas under a name of its own."""
    made = model("<int64[1] i = {6}> { [NODE] y = Gather <axis = 1> (x, i) }".replace("NODE", node))
    help = questions(made, size=9)[0].help or ""
    assert _options(help) == [f'--keep "main/{node}[0]"', f'--follow "main/{node}[0]=x[1] - 1"']
    assert _out(answered(made, _options(help)[1], size=9)) == [16]


def test_an_answer_in_terms_of_an_input_is_verified() -> None:
    made, _ = ASKED["the last element"]
    found = splitgraph.reshape(made, {"x": [1, 9, 2]}, follow=["main/Gather#0[0]=x[1] - 1"], verify=True).verification
    assert found is not None and found.verdict == "equal"


def test_what_one_number_decides_is_verified_without_a_question() -> None:
    """8 to [4, 2] are pairs or halves; 6 are no four parts, so that they are pairs."""
    made = parser.parse_model("""<ir_version: 8, opset_import: ["": 17]> g (float[1, 8, 2] x) => (float[a, b, c] y)
        <int64[4] s = {1, 4, 2, 2}, int64[1] n = {-1}> { p = Reshape (x, s) y = ReduceSum <keepdims = 0> (p, n) }""")
    assert [each.code for each in questions(made)] == ["SG421"]
    found = splitgraph.reshape(made, {"x": [1, 6, 2]}, verify=True)
    assert found.verification is not None and found.verification.verdict == "equal"
    (output,) = found.model.graph.output
    assert [dim.dim_value for dim in output.type.tensor_type.shape.dim] == [1, 3, 2]


def test_items_beside_what_is_cut_are_told_from_a_number() -> None:
    """Nothing is said of the items where -1 stands for them, and a length beside them is cut."""
    made = parser.parse_model("""<ir_version: 8, opset_import: ["": 17]> g (float[1, 4, 2] x) => (float[a, b, c, d] y)
        <int64[4] s = {-1, 2, 2, 2}> { y = Reshape (x, s) }""")
    after = splitgraph.reshape(made, {"x": ["N", "T", 2]}, follow=["main/Reshape#0[1]=T//2"]).model
    data = np.arange(36, dtype=np.float32).reshape(3, 6, 2)
    (found,) = ReferenceEvaluator(after).run(None, {"x": data})
    assert np.array_equal(found, data.reshape(3, 3, 2, 2))


def test_a_number_in_an_attribute_is_asked_about_after_an_upgrade() -> None:
    made = model("{ y = Slice <starts = [0], ends = [6], axes = [1]> (x) }", 9)
    (question,) = questions(made)
    assert question.code == "SG421" and "Upgrade the model" in (question.help or "")
    upgraded = splitgraph.upgrade(made, 13).model
    assert len(_options(questions(upgraded)[0].help or "")) == 2
