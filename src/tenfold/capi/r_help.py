"""Help pages of the R package's operators, in R's own documentation format."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tenfold.capi.bindings_r import ROperator, argument_names, functional_signature, signature_of
from tenfold.capi.r_examples import example

__all__ = ["help_page", "parts_page"]


def help_page(op: ROperator) -> str:
    doc = op.forms[0].function.doc.split(" aten::")[0]
    if doc.startswith("aten::") or not doc:
        doc = f"The operator {op.name}"
    arguments = []
    own = [each.split(" = ")[0] for each in re.split(r", ", op.own_signature or "") if each]
    for name in own or op.arguments:
        types = {
            str(a): None
            for form in op.forms
            for slot, a in zip(argument_names(form), form.schema.arguments, strict=True)
            if slot == name
        }
        told = ", or ".join(types) or "see below"
        arguments.append(("\\dots" if op.takes_sizes and name == "size" else name, told))
    if op.is_factory and not own:
        arguments.append(("requires_grad", "whether gradients are to be computed for it"))
    if op.takes_names and not own:
        arguments.append(("names", "refused: libtorch no longer has named dimensions"))
    items = "\n".join(f"\\item{{{name}}}{{\\code{{{_rd(text)}}}}}" for name, text in arguments)
    signature = signature_of(op).replace("...", "\\dots")
    usage = _wrapped(f"torch_{op.name}({signature})")
    alias = ""
    if op.functional:
        alias = f"\n\\alias{{{op.functional}}}"
        usage += "\n\n" + _wrapped(f"{op.functional}({functional_signature(op)})")
        if "self" in op.arguments:
            items += "\n\\item{input}{the same as \\code{self}}"
        if op.in_place:
            items += "\n\\item{inplace}{whether the result is written into the input}"
    schemas = "\n".join(_rd(str(form.schema)) for form in op.forms)
    shown = example(op)
    examples = f"\\examples{{\n{_wrapped(shown)}\n}}\n" if shown else ""
    return f"""\\name{{torch_{op.name}}}
\\alias{{torch_{op.name}}}{alias}
\\title{{{_rd(op.name)}}}
\\description{{{_rd(doc)}}}
\\usage{{
{usage}
}}
\\arguments{{
{items}
}}
\\details{{
\\preformatted{{
{schemas}
}}
An argument that is \\code{{NULL}} has its default. Dimensions and positions count from 1.
}}
\\value{{What the schema gives: a tensor, a list of tensors, or a number.}}
{examples}"""


def _wrapped(usage: str) -> str:
    """A usage within Rd's 90 columns."""
    lines, line = [], ""
    for word in usage.split(" "):
        if len(line) + len(word) > 84:
            lines.append(line)
            line = "   "
        line = f"{line} {word}" if line else word
    return "\n".join([*lines, line])


def parts_page(ops: Sequence[ROperator]) -> str:
    """One page for all operators that others are made of: their schemas say what they take."""
    aliases = "\n".join(f"\\alias{{torch_{op.name}}}" for op in ops)
    schemas = "\n".join(_rd(str(form.schema)) for op in ops for form in op.forms)
    return f"""\\name{{parts_of_operators}}
{aliases}
\\title{{Parts of operators}}
\\description{{Operators that others are made of. They may change with libtorch.}}
\\details{{
\\preformatted{{
{schemas}
}}
}}
\\value{{What the schema gives: a tensor, a list of tensors, or a number.}}
\\keyword{{internal}}
"""


def _rd(text: str) -> str:
    plain = text.replace("…", "...").replace("·", "*").replace("×", "x").replace("≤", "<=").replace("≥", ">=")
    plain = plain.encode("ascii", "replace").decode()
    return plain.replace("\\", "\\\\").replace("%", "\\%").replace("{", "\\{").replace("}", "\\}")
