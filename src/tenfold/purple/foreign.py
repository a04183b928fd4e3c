"""External C functions, as `ffi-declare` describes them: prototypes, and calls that check and convert what
crosses over."""

from __future__ import annotations

import functools

from tenfold.purple import core
from tenfold.purple.constants import c_string

# How a Value becomes what C takes (true on success, through a pointer), and back.
TAKEN = {
    "int": ("int64_t", "pu_foreign_int"),
    "int32": ("int32_t", "pu_foreign_int32"),
    "float": ("double", "pu_foreign_float"),
    "float32": ("float", "pu_foreign_float32"),
    "bool": ("bool", "pu_foreign_bool"),
    "string": ("const char *", "pu_foreign_string"),
    "pointer": ("void *", "pu_foreign_pointer"),
    "tensor": ("tn_tensor *", "pu_foreign_tensor"),
}
GIVEN = {"string": "pu_from_string", "pointer": "pu_from_pointer", "tensor": "pu_from_tensor"}


@functools.lru_cache(maxsize=2)  # each of the program's C files asks
def prototypes(program: core.Program) -> list[str]:
    """Declarations of what the program calls; libtenfold's own are in its header."""
    found = {}
    for form in program.forms:
        if isinstance(form, core.Ffi) and not form.symbol.startswith("tn_"):
            params = ", ".join(core.FOREIGN_TYPES[parameter.type] for parameter in form.parameters) or "void"
            # By another name, so that it agrees with whatever a header of the runtime says of it.
            found[form.symbol] = (
                f"extern {core.FOREIGN_TYPES[form.result.type]} foreign_{form.symbol}({params}) "
                f'__asm__("{form.symbol}");'
            )
    return list(found.values())


def call(declared: core.Ffi, args: list[str], target: str, fails: str) -> list[str]:
    """C statements that call it and set `target`."""
    symbol = declared.symbol if declared.symbol.startswith("tn_") else f"foreign_{declared.symbol}"
    name = c_string(core.shown(declared.name))
    lines, checks, names = ["{"], [], []
    for i, (passed, arg) in enumerate(zip(declared.parameters, args)):
        ctype, convert = TAKEN[passed.type]
        lines.append(f"    {ctype} given_{i};")
        checks.append(f"{convert}({name}, {arg}, {'true' if passed.owned else 'false'}, &given_{i})")
        names.append(f"given_{i}")
    if checks:
        lines.append(f"    if (PU_BAD({' && '.join(checks)})) {fails}")
    invoke = f"{symbol}({', '.join(names)})"
    result = declared.result
    if result.type == "void":
        lines.append(f"    {invoke};")
        lines += [f"    {target} = PU_UNSPECIFIED;"] if target else []
    elif result.type in GIVEN:
        wrapped = f"{GIVEN[result.type]}({name}, {invoke}, {'true' if result.owned else 'false'})"
        lines.append(f"    if (PU_UNLIKELY(!({f'{target} = ' if target else ''}{wrapped}))) {fails}")
    else:
        lines.append(f"    {f'{target} = ' if target else '(void)'}{invoke};")
    return [*lines, "}"]


def libraries(program: core.Program) -> list[str]:
    """The libraries that the declarations name."""
    named = [form.library for form in program.forms if isinstance(form, core.Ffi) and form.library]
    return list(dict.fromkeys(named))
