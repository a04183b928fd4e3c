"""What `tenfold capi build` writes before it compiles: tenfold_ops.h, the stubs of libtenfold.so, the table
that joins its two halves, and the typed functions' C++ in shards."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Container, Iterator, Sequence

from tenfold.capi import needs
from tenfold.capi.arguments import call_of
from tenfold.capi.describe import Description, Function
from tenfold.capi.locate import Libtorch
from tenfold.capi.typed import TypedForm, typed_forms

__all__ = ["generate"]


def generate(description: Description, libtorch: Libtorch, shards: int) -> dict[str, str]:
    """File names and their text."""
    entries = [function for function in description.functions if not function.here]
    abi = int(hashlib.sha256("\n".join(entry.declaration for entry in entries).encode()).hexdigest()[:16], 16)
    files = {
        "tenfold_ops.h": _header(description),
        "stubs.c": _stubs(entries, abi),
        "table.cpp": _table(entries, abi),
        "needs_table.h": needs.header(libtorch.schemas),
    }
    checked = frozenset(needs.needs_of(libtorch.schemas))
    parts: list[list[TypedForm]] = [[] for _ in range(shards)]
    for form in typed_forms(libtorch.schemas, description.taken):
        part = zlib.crc32(form.row.name.encode()) % shards  # by name, so that a new row changes one of them
        parts[part].append(form)
    for number, forms in enumerate(parts):
        files[f"typed_{number}.cpp"] = _shard(forms, checked)
    return files


def _header(description: Description) -> str:
    lines = [
        "/* tenfold_ops.h: the operators, by `tenfold capi build` from the op table. See tenfold.h. */",
        "#ifndef TENFOLD_OPS_H",
        "#define TENFOLD_OPS_H",
        "",
        '#include "tenfold.h"',
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
    ]
    for function in description.functions:
        if function.op is not None:
            lines += [f"/** {function.doc.replace('*/', '* /')} */", f"TN_API {function.declaration};"]
    lines += ["", "#ifdef __cplusplus", "}", "#endif", "", "#endif"]
    return "\n".join(lines) + "\n"


def _stubs(entries: Sequence[Function], abi: int) -> str:
    """Each entry jumps through its slot; at first a slot holds a function that loads the other half."""
    lines = ['#include "loader.h"', "", f"const uint64_t tn_abi = UINT64_C({abi});"]
    lines += [f"const int64_t tn_slot_count = {len(entries)};", ""]
    failing = {"null": "NULL", "status": "TN_ERROR_NOT_AVAILABLE", "minus_one": "-1", "never": "0"}
    for slot, entry in enumerate(entries):
        names = ", ".join(parameter.name for parameter in entry.parameters)
        pointer = f"({entry.returns} (*)({', '.join(p.ctype for p in entry.parameters) or 'void'}))"
        jump = f"({pointer}atomic_load_explicit(&tn_slots[{slot}], memory_order_acquire))({names});"
        first = entry.declaration.replace(f"{entry.name}(", f"first_{slot}(", 1)
        first = f"static __attribute__((cold)) {first}"  # apart, so that the jumps fill few pages of memory
        if entry.returns == "void":
            lines += [
                f'{first} {{ if (tn_loader_ready("{entry.name}")) {jump} }}',
                f"{entry.declaration} {{ {jump} }}",
            ]
        else:
            lines += [
                f"{first} {{",
                f'    if (!tn_loader_ready("{entry.name}")) return {failing[entry.errors]};',
                f"    return {jump}",
                "}",
                f"{entry.declaration} {{ return {jump} }}",
            ]
    lines += ["", "_Atomic(tn_entry) tn_slots[] = {"]
    lines += [f"    (tn_entry)first_{slot}," for slot in range(len(entries))]
    return "\n".join([*lines, "};"]) + "\n"


def _table(entries: Sequence[Function], abi: int) -> str:
    includes = [f'#include "{each}"' for each in ("internal.h", "tenfold_ops.h", "link.h")]
    lines = [*includes, "", "namespace tenfold {", ""]
    lines += ["static const tn_entry entries[] = {"]
    lines += [f"    reinterpret_cast<tn_entry>(&{entry.name})," for entry in entries]
    lines += ["};", "", "extern const tn_link_table table;"]
    lines += [f"const tn_link_table table = {{{abi}u, TENFOLD_TORCH_VERSION, {len(entries)}, entries}};"]
    return "\n".join([*lines, "", "}  // namespace tenfold"]) + "\n"


def _shard(forms: Sequence[TypedForm], checked: Container[str]) -> str:
    headers = sorted({form.installed.header for form in forms if form.installed is not None})
    lines = ['#include "typed.h"', "", *(f"#include <ATen/ops/{header}>" for header in headers), ""]
    lines += ["using namespace tenfold;", "", 'extern "C" {', ""]
    for form in forms:
        lines += [*_typed(form, checked), ""]
    return "\n".join([*lines, "}"]) + "\n"


def _typed(form: TypedForm, checked: Container[str]) -> Iterator[str]:
    tensor = form.result == "tensor"
    parameters = ", ".join(
        f"{p.ctype}{'' if p.ctype.endswith('*') else ' '}{p.name}" for p in form.parameters
    )
    yield f"{'tn_tensor *' if tensor else 'tn_status '}{form.name}({parameters}) {{"
    guard = f'guarded("{form.name}", (tn_tensor *)nullptr, ' if tensor else f'guarded_status("{form.name}", '
    if form.installed is None:
        body = f'lacking("aten::{form.schema.qualified}");'
        yield f"    return {guard}[&]{'() -> tn_tensor *' if tensor else ''} {{ {body} }});"
    else:
        yield f"    return {guard}[&] {{"
        yield from (f"        {line}" for line in call_of(form, checked))
        yield "    });"
    yield "}"
