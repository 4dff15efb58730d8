"""Abs, Exp, Sin and other functions of one number: they do not change."""

from __future__ import annotations

from splitgraph.conversion.operators.registry import unchanged

unchanged("Abs Ceil Exp Floor Log Neg Reciprocal Sqrt", 6, 13)
unchanged("Acos Acosh Asin Asinh Atan Atanh Cos Cosh Sin Sinh Tan", 22)
