"""The C of operations: what a `Let` computes, and how it leaves when that fails."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tenfold.purple import core, foreign, ir
from tenfold.purple.blame import SPOKEN
from tenfold.purple.constants import c_string
from tenfold.purple.effects import PARTS
from tenfold.purple.emit_lines import Writer
from tenfold.purple.ir import BOOL, FLOAT, INT, VALUE, Atom, Function, Let, Variable
from tenfold.purple.names import PRIMITIVES, aten_name, row_of
from tenfold.purple.natives import Form, accepts
from tenfold.purple.usage import is_about_tensors
from tenfold.purple.values import Keyword

# C of operations that may release their operands: see PU_TAKING.
TAKING = re.compile(r"pu_(add|subtract|multiply)\(|pu_(add|subtract)_int\(")
COMPARISONS = ("<", ">", "<=", ">=", "=", "eq?", "eqv?", "equal?")


def drops_of_operands(block: ir.Block, at: int) -> list[ir.Drop]:
    """The drops after an arithmetic operation that release its operands."""
    each = block[at]
    if not isinstance(each, Let) or not isinstance(each.op, ir.Prim) or each.op.form is None:
        return []
    if not TAKING.match(each.op.form.c) or each.var.rep != VALUE:
        return []
    found: list[ir.Drop] = []
    for after in block[at + 1 :]:
        if not isinstance(after, ir.Drop) or after.cell is not None or after.var not in each.op.args:
            break
        found.append(after)
    return found


def blamable(op: ir.Op) -> list[str]:
    """What the message of a failed operation may begin with that is the operation's own name."""
    match op:
        case ir.Prim():
            if op.name in SPOKEN:
                return []
            return [op.name.removeprefix("%check-"), *([op.applied] if op.applied else [])]
        case ir.Reverse():
            return ["reverse"]
        case ir.FieldRef() | ir.SetField():
            shown = core.shown(op.type.name)
            return [f"{shown}-{op.type.fields[op.index].name}", shown]
        case ir.CheckField():
            return [core.shown(op.type.name)]
    return []


class Operations(Writer):
    dying: Sequence[ir.Drop] = ()  # those of operands, which the operation at hand releases

    def let(self, each: Let) -> None:
        op, var = each.op, each.var
        target = f"{self.name(var)} = " if var in self.read else ""
        calls = isinstance(
            op, ir.CallKnown | ir.CallClosure | ir.CallWithin
        )  # which note the call themselves
        note = self.at(each.place, blamable(op)) + self.applied(each)
        fails = self.leave(each.on_error, note) if ir.can_fail(op) and not calls else ""
        match op:
            case ir.Prim():
                self.prim(each, op, target, fails)
            case ir.Reuse():
                self.reuse(op, target, fails)
            case ir.Copy():
                if target:
                    owned = var.lender is None and not var.borrowed
                    self.line(f"{target}{self.atom(op.args[0], var.rep, owned=owned)};")
            case ir.Share():
                self.line(f"{target}pu_dup({self.atom(op.args[0])});")
            case ir.Take():
                remark = "/* its last use: the part moves out */"
                how = f"pu_take_{op.part}{'_unique' * op.unique}"
                if op.cell is None:
                    self.line(f"{target}{how}({self.atom(op.args[0])}); {remark}")
                else:
                    kept = self.keep(op.cell, None)
                    self.line(f"{kept}{how}_cell({self.atom(op.args[0])}, &{self.name(var)}); {remark}")
            case ir.Reverse():
                unique = "true" if op.unique else "false"
                call = f"pu_reverse_taking({self.atom(op.args[0])}, {unique})"
                self.line(f"if (PU_UNLIKELY(!({target}{call}))) {fails} /* in place */")
            case ir.Rebuild():
                self.rebuild(op, target)
            case ir.Convert():
                self.line(f"{target}{self.convert(op.args[0], op.rep)};")
            case ir.CallKnown():
                call = f"{op.function.cname}({self.passed(op.function, op.args)})"
                self.call(each, op.function, call, target)
            case ir.CallWithin():
                self.within(each, op, target)
            case ir.CallClosure():
                call = f"pu_call({self.atom(op.args[0])}, {self.array(op.args[1:], op.keywords)})"
                note = f"pu_in_call({self.atom(op.args[0])}, {self.where(each.place)}); "
                if each.place.copied:
                    note = f"pu_blame_given({self.atom(op.args[0])}); {self.within_copy(each.place)}"
                if core.is_unseen(each.place.file):
                    note = f"pu_blame_given({self.atom(op.args[0])}); "
                self.line(f"if (PU_UNLIKELY(!({target}{call}))) {self.leave(each.on_error, note)}")
            case ir.MakeClosure():
                if not op.args:
                    self.line(f"{target}pu_of_object(&closure_{op.function.cname});")
                else:
                    args = ", ".join(self.atom(arg, owned=True) for arg in op.args)
                    self.line(f"{target}pu_closure(&function_{op.function.cname}, {len(op.args)}, {args});")
            case ir.PrimClosure():
                ident = re.sub(r"[^A-Za-z0-9_]", lambda m: f"_{ord(m[0]):x}_", op.name)
                self.line(f"{target}pu_of_object(&closure_primitive_{ident});")
            case ir.LoadGlobal():
                load = "pu_load" if var.lender is None else "pu_load_of"
                load = f"{load}({self.names.globals(op.name)}, {c_string(core.shown(op.name))})"
                self.line(f"if (PU_BAD({target}{load})) {fails}")
            case ir.StoreGlobal():
                self.line(f"pu_store(&{self.names.globals(op.name)}, {self.atom(op.args[0], owned=True)});")
            case ir.Defined():
                self.line(f"if (PU_BAD(pu_defined({self.atom(op.args[0])}, {c_string(op.shown)}))) {fails}")
            case ir.IsAbsent():
                self.line(f"{target}{self.atom(op.args[0])} == PU_ABSENT;")
            case ir.Truth():
                value, truth = self.atom(op.args[0]), self.name(var)
                if op.fails:
                    self.line(f"if (PU_BAD(pu_truth({value}, &{truth}))) {fails}")
                else:
                    self.line(f"{truth} = pu_truthy({value});")
            case ir.CheckField():
                check = (
                    f"pu_check_field(&type_{self.names.type(op.type)}, {op.index}, {self.atom(op.args[0])})"
                )
                self.line(f"if (PU_BAD({check})) {fails}")
            case ir.MakeRecord():
                args = ", ".join(self.atom(arg, owned=not f.weak) for arg, f in zip(op.args, op.type.fields))
                array = f"(Value[]){{{args}}}" if op.args else "NULL"
                self.line(f"{target}pu_record(&type_{self.names.type(op.type)}, {array});")
            case ir.FieldRef(known=True):
                part = f"pu_field_known({op.index}, {self.atom(op.args[0])})"
                self.line(f"{target or '(void)'}{part if var.lender is not None else f'pu_dup({part})'};")
            case ir.FieldRef():
                call = "pu_field" if var.lender is None else "pu_field_of"
                call = f"{call}(&type_{self.names.type(op.type)}, {op.index}, {self.atom(op.args[0])})"
                self.line(f"if (PU_BAD({target}{call})) {fails}")
            case ir.SetField():
                args = ", ".join(self.atom(arg, owned=o) for arg, o in zip(op.args, op.owned()))
                call = f"pu_set_field(&type_{self.names.type(op.type)}, {op.index}, {args})"
                bad = (
                    "PU_UNLIKELY(!" if any(op.owned()) else "PU_BAD("
                )  # it releases what it owns where it fails
                self.line(f"if ({bad}{call})) {fails}")
                if target:
                    self.line(f"{target}PU_UNSPECIFIED;")
            case ir.IsRecord():
                self.line(f"{target}pu_is_record(&type_{self.names.type(op.type)}, {self.atom(op.args[0])});")
            case ir.Foreign():
                given = [self.atom(arg) for arg in op.args]
                for text in foreign.call(op.declaration, given, self.name(var) if target else "", fails):
                    self.line(text)

    def refused(self, op: ir.Prim) -> str:
        """C that tells in Purple's words of a call that failed; `pu_row_call` does so itself."""
        if op.form is None or not op.form.fails or not is_about_tensors(op.name):
            return ""
        if row_of(op.name) is not None and not op.form.c:
            return ""
        given = []
        for arg, rep in zip(op.args, op.form.args):
            text = self.atom(arg, rep)
            boxed = {INT: "pu_of_int", FLOAT: "pu_of_float", BOOL: "pu_of_bool"}.get(rep, "pu_dup")
            given.append(f"{boxed}({text})")
        count = len(op.args) - len(op.keywords)
        for i, word in enumerate(op.keywords):
            given.insert(count + 2 * i, f"pu_dup({self.names.constants.value(Keyword(word))})")
        array = f"(Value[]){{{', '.join(given)}}}" if given else "NULL"
        return f"pu_refused_all({c_string(op.name)}, {array}, {count}, {len(op.keywords)}); "

    def prim(self, each: Let, op: ir.Prim, target: str, fails: str) -> None:
        form = op.form
        if fails and not self.is_misused(op):
            fails = fails.replace("{ ", "{ " + self.refused(op), 1)
        if self.is_misused(op):
            for arg in op.args:
                if isinstance(arg, Variable):  # which nothing else may read
                    self.line(f"(void){self.name(arg)};")
            taken = [a for a, owned in zip(op.args, op.owned()) if owned and isinstance(a, Variable)]
            drops = "".join(f"pu_drop({self.name(each)}); " for each in taken if each.is_managed)
            self.line(f"if (PU_BAD({self.refusal(op)})) {{ {drops}{fails.removeprefix('{ ')}")
            if target:
                self.line(f"{target}PU_UNSPECIFIED;")
            return
        if op.name == "tensor" and op.keywords:
            given = dict(zip(op.keywords, op.args[1:]))
            words = [
                self.atom(given[k]) if k in given else "PU_ABSENT"
                for k in ("dtype", "device", "requires-grad")
            ]
            call = f"pu_tensor_with({', '.join([self.atom(op.args[0]), *words])})"
            self.line(f"if (PU_BAD({target}{call})) {fails}")
            return
        if not form.c:
            table = self.names.rows.table(op.name)
            call = f"pu_row_call(&{table}, {self.array(op.args, op.keywords, owned=False)})"
            self.line(f"if (PU_BAD({target}{call})) {fails}")
            return
        args = [self.atom(a, rep, owned=o) for a, rep, o in zip(op.args, form.args, op.owned())]
        if each.var.lender is not None and form.fails:
            form = Form(PARTS[op.name], form.args, VALUE, "zero")
        if op.name in COMPARISONS and "(" not in form.c and args[0] == args[1]:
            args[1] = f"pu_same_{form.args[1]}({args[1]})"  # compilers warn of what is compared with itself
        if form.fails == "status":
            result = self.name(each.var)
            self.line(f"if (PU_BAD({form.c.format(*args, r=result)})) {fails}")
            if not target:
                self.line(f"(void){result};")
        elif form.fails:
            call = self.taking(op, form.c, args) if self.dying else form.c.format(*args)
            if op.name == "%apply-tail" and not core.is_unseen(each.place.file):
                call = f"pu_tail_at({call}, {self.where(each.place)})"
            elif op.name == "%apply-tail" and not op.chosen:
                call = f"pu_tail_given({call})"
            remark = f" /* {self.dying[0].reason}: released with it */" if self.dying else ""
            if any(op.owned()):  # it releases what it owns where it fails: no test may fail it before
                self.line(f"if (PU_UNLIKELY(!({target}{call}))) {fails}")
            else:
                self.line(f"if (PU_BAD({target}{call})) {fails}{remark}")
        elif target:
            self.line(f"{target}{form.c.format(*args)};")
        else:
            self.line(f"(void)({form.c.format(*args)});")

    def taking(self, op: ir.Prim, form: str, args: list[str]) -> str:
        """The call of an arithmetic operation that releases the operands which die with it."""
        name, _, operands = form.partition("(")
        dead = [self.name(drop.var) for drop in self.dying]
        if not name.endswith("_int"):
            operands = operands.replace(")", f", {', '.join([*dead, 'PU_NIL'][:2])})")
        return f"{name}_taking({operands}".format(*args)

    def is_misused(self, op: ir.Prim) -> bool:
        """Whether a primitive takes no such arguments: the call will be refused."""
        count = len(op.args) - len(op.keywords)
        return not op.name.startswith("%check") and not accepts(op.name, count, op.keywords)

    def refusal(self, op: ir.Prim) -> str:
        """C that fails because a primitive does not take the arguments."""
        found = PRIMITIVES[op.name]
        name, count = c_string(op.name), len(op.args) - len(op.keywords)
        signature = c_string(found.signature())
        most = -1 if found.maximum is None else found.maximum
        if count < found.minimum or (found.maximum is not None and count > found.maximum):
            return f"pu_primitive_arity({name}, {signature}, {found.minimum}, {most}, {count})"
        unknown = next(word for word in op.keywords if word not in found.keywords)
        return f"pu_unknown_keyword({name}, {signature}, {c_string(unknown)})"

    def applied(self, each: Let) -> str:
        """C that names the procedure that `apply` was given, where that blames what it calls in turn."""
        op = each.op
        if not isinstance(op, ir.Prim) or op.name != "apply" or op.applied or not op.args:
            return ""
        chosen = op.chosen and (each.place.copied or core.is_unseen(each.place.file))
        return "" if chosen else f"pu_blame_given({self.atom(op.args[0])}); "

    def call(self, each: Let, function: Function, call: str, target: str) -> None:
        hidden = function.definition is None or function.definition.derived
        note = self.at(each.place._replace(copied="")) if hidden else self.called(function, each.place)
        if function.bounces:
            call = f"pu_land({call})"
        failed = self.leave(each.on_error, note)
        if function.rep == VALUE:
            self.line(f"if (PU_UNLIKELY(!({target}{call}))) {failed}")
            if function.lends is not None and target and each.var.is_managed:
                self.line(f"pu_dup({self.name(each.var)}); /* a share of what it goes on holding */")
        else:
            self.line(f"{target or '(void)'}{call};")
            self.line(f"if (PU_UNLIKELY(pu.pending)) {failed}")

    def within(self, each: Let, op: ir.CallWithin, target: str) -> None:
        given = op.args[: op.kind == "device"]
        enter = {"device": "pu_enter_device", "grad": "pu_enter_grad", "no-grad": "pu_enter_no_grad"}[op.kind]
        scope = f"scope_of_{self.name(each.var)}"
        self.line("{")
        self.depth += 1
        self.line(f"PuScope {scope} = {enter}({', '.join(self.atom(a) for a in given)});")
        call = f"{op.function.cname}({self.passed(op.function, op.args[len(given) :])})"
        if op.function.bounces:
            call = f"pu_land({call})"
        self.line(f"{self.name(each.var)} = {call};")
        self.line(f"pu_leave({scope});")
        self.depth -= 1
        self.line("}")
        failed = f"!{self.name(each.var)}" if op.function.rep == VALUE else "pu.pending"
        self.line(f"if (PU_UNLIKELY({failed})) {self.leave(each.on_error)}")
        if not target:
            self.line(f"(void){self.name(each.var)};")

    def reuse(self, op: ir.Reuse, target: str, fails: str) -> None:
        dying = self.atom(op.args[op.dying])
        if len(op.args) == 1:
            name = aten_name(op.name)
            call = f'pu_reuse_unary({dying}, tn_{name}_, tn_{name}, "{op.name}")'
        else:
            other = self.atom(op.args[1 - op.dying])
            turned = "true" if op.dying else "false"
            call = f'pu_reuse_binary("{op.name}", {dying}, {other}, {turned})'
        remark = f"/* {dying} dies here: its memory is used again */"
        self.line(f"if (PU_UNLIKELY(!({target}{call}))) {fails} {remark}")

    def rebuild(self, op: ir.Rebuild, target: str) -> None:
        made, cell = op.made, self.atom(op.args[-1])
        args = [self.atom(arg, owned=o) for arg, o in zip(op.args, op.owned())][:-1]
        if isinstance(made, ir.MakeRecord):
            array = f"(Value[]){{{', '.join(args)}}}"
            call = f"pu_record_in({cell}, &type_{self.names.type(made.type)}, {array})"
        elif made.name == "%hole":
            call = f"pu_extend_in({cell}, &hole, {args[0]})"
        else:
            call = f"pu_cons_in({cell}, {', '.join(args)})"
        self.line(f"{target or '(void)'}{call}; /* in memory used again */")

    def convert(self, arg: Atom, rep: str) -> str:
        assert isinstance(arg, Variable)
        name = self.name(arg)
        if rep == VALUE and arg.is_small:
            return f"pu_of_fixnum({name})"
        if rep == VALUE:
            return {INT: "pu_of_int", FLOAT: "pu_of_float", BOOL: "pu_of_bool"}[arg.rep] + f"({name})"
        return {INT: "pu_int", FLOAT: "pu_float", BOOL: "pu_truthy"}[rep] + f"({name})"
