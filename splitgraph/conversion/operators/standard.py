"""The registry of standard forms: an operator of another domain in operators of ai.onnx.

`standard` registers the step that writes a node of such an operator with a `Formula`, as a step at a boundary does. It
is written at the opset of the result, or at the oldest opset that has what the step needs (`node.needs`); from there
the nodes go to the opset of the result as any others. `without_form` says of operators why they have none.

What an operator computes is what its kernel in onnxruntime computes on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from splitgraph.conversion.notation.node_at_boundary import OLDEST_DIALECT
from splitgraph.conversion.operators.registry import Step
from splitgraph.model.attributes import make_attribute
from splitgraph.model.onnx_proto import NodeProto
from splitgraph.model.schemas.operator_version import FormalAttribute, OperatorVersion
from splitgraph.model.scopes import MACHINE_LEARNING, plain_domain

MICROSOFT = "com.microsoft"
# More inputs or outputs than any operator has.
_MANY = 2**31 - 1


@dataclass(frozen=True, slots=True)
class StandardForm:
    """How an operator of another domain is written.

    version: in place of a schema; has the defaults of the attributes. write: the step. opset: the oldest one at which
    the step writes. below: the opset from which on ai.onnx has the operator; None if it never has.
    """

    version: OperatorVersion
    write: Step
    opset: int
    below: int | None


_FORMS: dict[tuple[str, str], StandardForm] = {}
_REASONS: dict[tuple[str, str], str] = {}


def standard(
    operators: str, *, domain: str = MICROSOFT, opset: int = OLDEST_DIALECT, below: int | None = None, **defaults: Any
) -> Callable[[Step], Step]:
    """Register the step that writes operators (separated by spaces) of a domain in those of ai.onnx.

    opset: the oldest one of ai.onnx at which the step writes. below: the opset from which on ai.onnx has the operator,
    so that only older models hold a node of onnxruntime. defaults: of the attributes.
    """

    def register(step: Step) -> Step:
        for operator in operators.split():
            _require_new(domain, operator)
            version = _stand_in(domain, operator, defaults)
            _FORMS[domain, operator] = StandardForm(version, step, max(opset, OLDEST_DIALECT), below)
        return step

    return register


def without_form(operators: str, reason: str, *, domain: str = MICROSOFT) -> None:
    """Say why operators (separated by spaces) have no standard form; completes "<operator> has no standard form: "."""
    for operator in operators.split():
        _require_new(domain, operator)
        _REASONS[domain, operator] = reason


def _require_new(domain: str, operator: str) -> None:
    if (domain, operator) in _FORMS or (domain, operator) in _REASONS:
        raise ValueError(f"two decisions about {operator} of {domain}")


def _stand_in(domain: str, operator: str, defaults: Mapping[str, Any]) -> OperatorVersion:
    """Return a version that takes all inputs and attributes, in place of a schema: what the operator takes is known to
    the step.
    """
    attributes = {
        name: FormalAttribute(name, make_attribute(name, default).type, False, default)
        for name, default in defaults.items()
    }
    return OperatorVersion(domain, operator, 1, False, False, attributes, (), (), 0, _MANY, _MANY)


# The room of the families of each domain. Operators of ai.onnx are those that onnxruntime writes beside its own.
_ROOMS = {"": "microsoft", MICROSOFT: "microsoft", MACHINE_LEARNING: "machine_learning"}


@cache
def _load(domain: str) -> None:
    """Import every family of a domain once. Each family registers its operators."""
    if domain in _ROOMS:
        package = import_module(f"{__package__}.{_ROOMS[domain]}")
        for family in iter_modules(package.__path__):
            import_module(f"{package.__name__}.{family.name}")


def standard_form(domain: str, operator: str, opset: int | None = None) -> StandardForm | None:
    """Return the form of an operator; None where it has none, and for one that ai.onnx itself has.

    opset: of ai.onnx, which a node of ai.onnx has.
    """
    _load(domain)
    form = _FORMS.get((domain, operator))
    if form is None or (form.below is not None and opset is not None and opset >= form.below):
        return None
    return form


def has_standard_form(node: NodeProto) -> bool:
    """Return True for a node of another domain that has a standard form."""
    domain = plain_domain(node.domain)
    return domain != "" and standard_form(domain, node.op_type) is not None


def why_not(domain: str, operator: str) -> str | None:
    """Return why an operator of a domain has no standard form; None for a domain of which nothing is known."""
    _load(domain)
    reason = _REASONS.get((domain, operator))
    if reason is None and domain == MICROSOFT and (domain, operator) not in _FORMS:
        return "onnxruntime has no kernel for it on a CPU, so that nothing can be compared with one"
    return reason


def registered(domain: str) -> tuple[set[str], set[str]]:
    """Return the operators of a domain that have a form, and those that have a reason."""
    _load(domain)
    forms, reasons = ({op for place, op in table if place == domain} for table in (_FORMS, _REASONS))
    return forms, reasons
