"""The forms of split that runtimes are measured on: a small model of each, with inputs and expected outputs.

The first letters of a name group the forms:

    a b c   Split-2 and Split-11: the attribute `split`, or equal parts
    d d2    Split-13 with constant lengths: in the open, or behind other nodes and inputs
    e f     equal parts
    g       `num_outputs` that does not divide the size
    h i     lengths of Split-18; lengths that are computed or given
    j k     a dynamic dimension
    l m     SplitToSequence
    n       an empty part
    o p     Slice instead, with bounds in inputs or in attributes
    q r     element types, ranks
    s       local functions
    t u v   Gather, StringSplit, a chain of splits
    w       no attribute `axis`
    x       models that are not valid
    y       a split between other nodes
    z       other operators
    zz      opsets and IR versions
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from cases import Case, write_case
from other_recipes import (
    add,
    computed_slices,
    empty_constant,
    function_of_lengths,
    function_of_slices,
    function_of_split,
    gathers,
    identity,
    joined_sequence,
    reduced,
    sequence,
    sequence_at_last,
    slices,
    slices_with_attributes,
    string_split,
)
from recipes import IR_VERSIONS, Form, Recipe, build
from split_recipes import (
    behind_cast,
    behind_identity,
    chain,
    computed,
    constant_ints,
    constant_tensor,
    graph_input,
    initializer,
    left_empty,
    shared_lengths,
    split,
    zero_then_concat,
)

TWO, THREE, SIX = [2, 4], [1, 2, 3], [1] * 6
BATCH = ("b", "n", 8)
SEVEN, IMAGE, LARGE = (2, 7, 8), (1, 7, 4, 4), (6, 6, 8)
# The greatest int64.
LAST = 2**63 - 1


def _given(lengths: Sequence[int], axis: int = 1) -> dict[str, object]:
    return {"axis": axis, "split": lengths}


def _number(count: int, axis: int = 1) -> dict[str, int]:
    return {"axis": axis, "num_outputs": count}


OLD = {
    "a_s2_attr": split(9, TWO, _given(TWO)),
    "a_s2_attr_42": split(9, [4, 2], _given([4, 2])),
    "a_s2_attr_op7": split(7, TWO, _given(TWO)),
    "b_s2_equal": split(9, [3, 3]),
    "c_s11_attr_123": split(11, THREE, _given(THREE)),
    "c_s11_attr_equal_given": split(11, [3, 3], _given([3, 3])),
    "c_s11_negaxis": split(11, TWO, _given(TWO, -2)),
    "c_s11_negaxis_equal": split(11, [4, 4], {"axis": -1}),
}

CONSTANT = {
    "d2_s13_cast_const": split(13, TWO, source=behind_cast),
    "d2_s13_identity_const": split(13, TWO, source=behind_identity),
    "d2_s13_init_as_input_ir3": split(13, TWO, source=initializer, listed=["s"], ir_version=3),
    "d2_s13_init_as_input_ir8": split(13, TWO, source=initializer, listed=["s"], ir_version=8),
    "d2_s13_shared_lengths": shared_lengths(),
    "d_s13_axis0": split(13, [1, 3], {}, initializer, shape=(4, 6, 8)),
    "d_s13_constnode": split(13, TWO, source=constant_tensor),
    "d_s13_constnode_ints": split(13, TWO, source=constant_ints),
    "d_s13_empty_out": split(13, THREE, source=initializer, outputs=["y0", "", "y2"], returned=[0, 2]),
    "d_s13_init": split(13, TWO, source=initializer),
    "d_s13_init_123": split(13, THREE, source=initializer),
    "d_s13_init_dynax": split(13, TWO, source=initializer, dims=BATCH),
    "d_s13_init_neg": split(13, TWO, {"axis": -2}, initializer),
    "d_s13_init_op17": split(17, TWO, source=initializer),
    "d_s13_single": split(13, [6], source=initializer),
    "d_s13_unused_out": split(13, THREE, source=initializer, outputs=["y0", "u", "y2"], returned=[0, 2]),
    "d_s13_wrapped": split(13, TWO, source=initializer, wrapped=True),
}

EQUAL = {
    "e_s13_equal": split(13, [3, 3]),
    "e_s13_equal_dynax": split(13, [3, 3], dims=BATCH, unknown=[None, None]),
    "e_s13_equal_emptyin": split(13, [3, 3], source=left_empty),
    "f_s18_num1": split(18, [6], _number(1)),
    "f_s18_num_even": split(18, [3, 3], _number(2)),
    "f_s18_num_even_neg": split(18, [2, 2, 2], _number(3, -2)),
}

UNEVEN = {
    "g_s18_num_10into4_3331": split(18, [3, 3, 3, 1], _number(4), shape=(2, 10, 4)),
    "g_s18_num_5into2_32": split(18, [3, 2], _number(2), shape=(2, 5, 4)),
    "g_s18_num_6into4": split(18, [2, 2, 2, 0], _number(4)),
    "g_s18_num_8into3_332": split(18, [3, 3, 2], _number(3), shape=(2, 8, 4)),
    "g_s18_num_9into4": split(18, [3, 3, 3, 0], _number(4), shape=(2, 9, 8)),
    "g_s18_num_uneven": split(18, [3, 3, 1], _number(3), shape=SEVEN),
    "g_s18_num_uneven_wrapped": split(18, [3, 3, 1], _number(3), shape=SEVEN, wrapped=True),
}

COMPUTED = {
    "h_s18_const": split(18, TWO, source=initializer),
    "i_s13_computed": split(13, TWO, source=computed),
    "i_s13_computed_dyn": split(13, TWO, source=computed, dims=BATCH, unknown=[None, None]),
    "i_s13_runtime_input": split(13, TWO, source=graph_input, unknown=["a", "b"]),
    "i_s18_computed": split(18, TWO, source=computed),
    "i_s18_computed_dyn": split(18, TWO, source=computed, dims=BATCH, unknown=[None, None]),
    "j_s18_num_dyn_even": split(18, [3, 3], _number(2), dims=(2, "n", 8), unknown=[None] * 2),
    "k_s18_num_dyn_uneven": split(18, [3, 3, 1], _number(3), shape=SEVEN, dims=(2, "n", 8), unknown=[None] * 3),
}

SEQUENCE = {
    "l_seq11_lens": sequence(11, TWO, TWO),
    "l_seq13_lens": sequence(13, TWO, TWO),
    "l_seq24_lens": sequence(24, TWO, TWO),
    "m_seq_lens_keep0": sequence(11, TWO, TWO, keepdims=0),
    "m_seq_nosplit_keep0": sequence(11, SIX, keepdims=0),
    "m_seq_nosplit_keep1": sequence(11, SIX),
    "m_seq_scalar1_keep0": sequence(11, SIX, 1, keepdims=0),
    "m_seq_scalar2": sequence(11, [2, 2, 2], 2),
    "m_seq_scalar4_uneven": sequence(11, [4, 2], 4),
    "l_seq11_lens_int32": sequence(11, TWO, TWO, integers="int32"),
}

EMPTY = {
    "n_s11_zero_mid": split(11, [2, 0, 4], _given([2, 0, 4])),
    "n_s13_zero_first": split(13, [0, 6], source=initializer),
    "n_s13_zero_mid": split(13, [2, 0, 4], source=initializer),
    "n_s13_zero_mid_concat": zero_then_concat(),
    "n_s13_zero_dropped": zero_then_concat("dropped"),
    "n_const_empty": empty_constant(),
    "n_const_empty_concat": zero_then_concat("constant"),
}

SLICE = {
    "o_slice10": slices(10, TWO),
    "o_slice11": slices(11, TWO),
    "o_slice13": slices(13, TWO),
    "o_slice13_computed": computed_slices(),
    "o_slice13_computed_dyn": computed_slices(dims=BATCH),
    "o_slice13_dynax": slices(13, TWO, dims=BATCH),
    "o_slice13_int32": slices(13, TWO, integers="int32"),
    "o_slice13_maxend": slices(13, TWO, last_end=LAST),
    "o_slice13_negbounds": slices(13, [2, 1, 3], from_end=1),
    "o_slice13_negbounds_maxend": slices(13, TWO, from_end=1, last_end=LAST),
    "o_slice13_negaxis": slices(13, TWO, axis=-2),
    "o_slice13_shared": slices(13, TWO, shared=True),
    "o_slice13_steps": slices(13, TWO, step=True),
    "o_slice13_zero": slices(13, [2, 0, 4], shared=True),
    "o_slice18": slices(18, TWO),
    "o_slice24": slices(24, TWO),
    "p_slice1": slices_with_attributes(9, TWO),
    "p_slice1_op7": slices_with_attributes(7, TWO),
}

TYPES = {
    "q_s13_bool": split(13, TWO, source=initializer, kind="bool"),
    "q_s13_f16": split(13, TWO, source=initializer, kind="float16"),
    "q_s13_f64": split(13, TWO, source=initializer, kind="float64"),
    "q_s13_i32": split(13, TWO, source=initializer, kind="int32"),
    "q_s13_i64": split(13, TWO, source=initializer, kind="int64"),
    "q_s13_i8": split(13, TWO, source=initializer, kind="int8"),
    "q_s13_str": split(13, TWO, source=initializer, kind="str"),
    "q_s13_u8": split(13, TWO, source=initializer, kind="uint8"),
    "q_slice13_bool": slices(13, TWO, kind="bool"),
    "q_slice13_i64": slices(13, TWO, kind="int64"),
    "q_slice13_str": slices(13, TWO, kind="str"),
}

RANKS = {
    "r_s11_rank1": split(11, TWO, _given(TWO, 0), shape=(6,)),
    "r_s13_rank1": split(13, TWO, {"axis": 0}, initializer, shape=(6,)),
    "r_s13_rank4": split(13, TWO, source=initializer, shape=(1, 6, 4, 4)),
    "r_s13_rank4_dyn": split(13, TWO, source=initializer, shape=(2, 6, 4, 4), dims=("b", 6, "h", "w")),
    "r_s18_rank1_uneven": split(18, [3, 3, 1], _number(3, 0), shape=(7,)),
    "r_s18_rank4_uneven": split(18, [3, 3, 1], _number(3), shape=IMAGE),
    "r_slice13_rank1": slices(13, TWO, axis=0, shape=(6,)),
}

OTHERS = {
    "s_fn_slices": function_of_slices(),
    "s_fn_split_other_domain": function_of_split(),
    "s_fn_variadic3in": function_of_lengths(),
    "t_gather": gathers(13, TWO),
    "t_gather9": gathers(9, TWO),
    "u_stringsplit20": string_split(),
    "v_chain2": chain(),
    "w_s11_defaxis_nosplit": split(11, [3, 3], {}, shape=LARGE),
    "w_s13_defaxis": split(13, TWO, {}, initializer, shape=LARGE),
    "w_s13_defaxis_nosplit": split(13, [3, 3], {}, shape=LARGE),
    "w_s18_defaxis_num": split(18, [3, 3], {"num_outputs": 2}, shape=LARGE),
    "w_s9_defaxis": split(9, TWO, {"split": TWO}, shape=LARGE),
}

# Operators around splits of which a runtime was seen to compute something else.
AROUND = {
    "z_concat_from_sequence": joined_sequence(),
    "z_reduce_max18": reduced("ReduceMax", np.max),
    "z_reduce_mean18": reduced("ReduceMean", np.mean),
    "z_sequence_at_last": sequence_at_last(),
}

# What a runtime that does not refuse them is likely to give is taken as expected.
INVALID = {
    "x_op11_input_split": split(11, TWO, source=initializer),
    "x_op13_attr_split": split(13, TWO, _given(TWO)),
    "x_op13_num_outputs": split(13, [3, 3], _number(2)),
    "x_s13_nosplit_uneven": split(13, [4, 3], shape=SEVEN),
    "x_s13_sum_short": split(13, [2, 3], source=initializer),
    # Three chunks of 2 reach beyond 5, which the specification leaves open.
    "x_s18_num_5into4": split(18, [2, 2, 1, 0], _number(4), shape=(2, 5, 4)),
    "x_s18_neither": split(18, [3, 3]),
    "x_s18_num_mismatch": split(18, [3, 3], _number(3)),
}

BETWEEN = {
    "y_identity_single_wrapped": identity(),
    "y_gather_24_wrapped": gathers(13, TWO, wrapped=True),
    "y_s13_224_wrapped4d": split(13, [2, 2, 4], source=initializer, wrapped=True, shape=(1, 8, 4, 4)),
    "y_s13_331_wrapped": split(13, [3, 3, 1], source=initializer, wrapped=True, shape=SEVEN),
    "y_s13_331_wrapped4d": split(13, [3, 3, 1], source=initializer, wrapped=True, shape=IMAGE),
    "y_s13_even_wrapped": split(13, [3, 3], wrapped=True),
    "y_s13_last_wrapped": split(13, [3, 5], {"axis": -1}, initializer, wrapped=True),
    "y_s18_331_wrapped4d": split(18, [3, 3, 1], _number(3), wrapped=True, shape=IMAGE),
    "y_s18_even_wrapped": split(18, [3, 3], _number(2), wrapped=True),
    "y_s9_24_wrapped": split(9, TWO, _given(TWO), wrapped=True),
    "y_s9_331_wrapped": split(9, [3, 3, 1], _given([3, 3, 1]), wrapped=True, shape=SEVEN),
    "y_slice13_24_wrapped": slices(13, TWO, shared=True, wrapped=True),
    "y_slice13_331_wrapped": slices(13, [3, 3, 1], shared=True, wrapped=True, shape=SEVEN),
    "y_slice13_331_wrapped4d": slices(13, [3, 3, 1], shared=True, wrapped=True, shape=IMAGE),
    "y_slice1_24_wrapped": slices_with_attributes(9, TWO, wrapped=True),
}


def _versions() -> dict[str, Recipe]:
    """Opsets with IR version 8 or older, IR versions with opset 13, and opsets with the IR version of their release."""
    old = {9: 4, 11: 6, 13: 7}
    opsets = [9, 11, 13, *range(17, 31), 40]
    adds = {f"zz_add_op{opset}_ir8": add(opset, old.get(opset, 8)) for opset in opsets}
    irs = {f"zz_ir{ir}_op13": add(13, ir) for ir in (3, 4, 6, *range(8, 16), 20, 99)}
    splits = {
        f"zz_split_op{opset}_ir8": split(opset, TWO, source=initializer, ir_version=old.get(opset, 8))
        for opset in (13, *range(17, 29))
    }
    releases = {
        f"zz_nat_op{opset}_ir{IR_VERSIONS[opset]}": split(opset, TWO, source=initializer) for opset in range(21, 27)
    }
    return {**adds, **irs, **splits, **releases}


FORMS: dict[str, Recipe] = {
    **OLD,
    **CONSTANT,
    **EQUAL,
    **UNEVEN,
    **COMPUTED,
    **SEQUENCE,
    **EMPTY,
    **SLICE,
    **TYPES,
    **RANKS,
    **OTHERS,
    **AROUND,
    **INVALID,
    **BETWEEN,
    **_versions(),
}


def make(name: str) -> Form:
    """The form of this name. Raises KeyError where there is none."""
    return build(name, FORMS[name])


def write(folder: Path, names: Sequence[str] = ()) -> list[Case]:
    """Write the forms of these names, or all forms, into a folder."""
    made = {name: make(name) for name in names or FORMS}
    return [
        write_case(folder, name, form.model.SerializeToString(), form.inputs, form.expected)
        for name, form in made.items()
    ]
