"""NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: they do not change."""

from __future__ import annotations

from splitgraph.conversion.operators.registry import unchanged

unchanged("NegativeLogLikelihoodLoss", 13, 22)
unchanged("SoftmaxCrossEntropyLoss", 13)
