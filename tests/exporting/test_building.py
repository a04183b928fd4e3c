"""Modules of the torch dialect built as a block goes on: SSA values, ops by hand, regions and functions."""

from __future__ import annotations

import threading

import pytest

import tenfold as tn
from tenfold import nn
from tenfold.mlir import module_context, torch_dialect
from tenfold.mlir.torch_operations import signature

# One type for each kind of operand that an op of the dialect may take.
KINDS = [
    "vtensor<[2,2],f32>", "tensor<[2,2],f32>", "int", "float", "bool", "str", "Device", "Generator",
    "list<int>", "list<float>", "list<bool>", "list<str>", "list<vtensor<[2,2],f32>>", "list<tensor>",
    "list<optional<vtensor<[2,2],f32>>>", "list<optional<int>>", "dict<str, int>", "tuple<int, int>",
    "LinearParams", "any",
]  # fmt: skip


def test_a_tensor_prints_as_the_op_that_makes_it():
    with module_context() as module:
        x = tn.ones(3)
        y = x.tanh()
        assert "torch.aten.tanh %1" in repr(y) and "-> !torch.vtensor<[3],f32>" in repr(y)
        value = module.value(x)
        assert value.type == "!torch.vtensor<[3],f32>" and value.op == "torch.aten.ones"
        assert value.uses == ["torch.aten.tanh"]
    assert "torch.aten.tanh" in str(module)


def test_an_op_by_hand_joins_those_of_tensors():
    with module_context() as module:
        x = nn.Linear(3, 4)(tn.ones(2, 3))
        rows = module.aten.size.int(x, 0)
        assert rows.type == "!torch.int" and str(rows).startswith("%")
        scaled = module.aten.mul.Scalar(x, rows * 2 + 1)
        assert isinstance(scaled, tn.Tensor) and scaled.shape == (2, 4)
        kept = scaled.relu()
        flat = module.aten.view(x, [rows * 4])
        assert flat.type == "!torch.vtensor"
    text = str(module)
    assert "torch.aten.mul.int" in text and "torch.aten.relu" in text and kept.shape == (2, 4)
    torch_dialect.read(text)


def test_python_values_are_what_the_op_takes():
    with module_context() as module:
        assert module.aten.add(2, 3).op == "torch.aten.add.int"
        assert module.aten.add("a", "b").op == "torch.aten.add.str"
        assert module.aten.mul.float(2, 0.5).type == "!torch.float"
        assert module.aten.ne.int_list([1, 2], []).type == "!torch.bool"
        assert module.aten.len.t([1.0, 2.0]).type == "!torch.int"
        assert module.prim.TupleIndex((1, "a"), 1, results="str").type == "!torch.str"
        assert module.aten.__getitem__.t([1, 2], 0, results="!torch.int").type == "!torch.int"
        assert module.aten.slice.t([1, 2, 3], 0, 2, 1).type == "!torch.list<int>"
        assert module.aten.nonzero(tn.ones(2)).type == "!torch.vtensor"


def test_what_the_verifier_refuses_is_refused_at_once():
    with module_context() as module:
        x = tn.ones(2)
        with pytest.raises(tn.ArgumentError, match=r"operand 1 must be Torch IntType, not !torch.str"):
            module.aten.add.int(1, "a")
        with pytest.raises(tn.ArgumentError, match="no overload takes these operands"):
            module.aten.add("a", 2.5)
        with pytest.raises(tn.ArgumentError, match="may be of several types"):
            module.prim.unchecked_cast(x)
        with pytest.raises(AttributeError, match="has no op torch.aten.ad.int"):
            module.aten.ad.int(1, 2)
        with pytest.raises(tn.ArgumentError, match="regions, not 0"):
            module.prim.If(True, results=["int"])
        kept = x + 1
    assert "torch.aten.add.int" not in str(module) and kept.shape == (2,)


def test_operators_on_values_build_ops():
    with module_context() as module:
        n = module.aten.size.int(tn.ones(2), 0)
        ops = [value.op for value in (3 / n, 7 // n, 7 % n, n**2, n == 2, n != 2, n / 2 < 1)]
        with pytest.raises(tn.TraceError, match="has no value while"):
            n in [n + 1]  # noqa: B015
        with pytest.raises(tn.ArgumentError, match="64 bits, too few for 1180591620717411303424"):
            n + 2**70
    names = ["div.int", "floordiv.int", "remainder.int", "pow.int_float", "eq.int", "ne.int", "lt.float_int"]
    assert ops == [f"torch.aten.{name}" for name in names]


def test_an_empty_block_is_printed_while_it_is_open():
    with module_context() as module:
        assert "func.func @main() {\n    return" in str(module)
        kept = tn.ones(2)
    assert kept.shape == (2,)


def test_ops_are_refused_where_another_block_or_thread_records():
    refused = []

    def elsewhere(build):
        try:
            build()
        except tn.TraceError as error:
            refused.append(str(error).splitlines()[0])

    with module_context() as module:
        x = tn.ones(2)
        for build in (lambda: module.aten.tanh(x), lambda: module.aten.size.int(x, 0)):
            thread = threading.Thread(target=elsewhere, args=(build,))
            thread.start()
            thread.join()
        with module_context():
            y = tn.zeros(2)
            elsewhere(lambda: module.aten.exp(y))
    elsewhere(lambda: module.aten.exp(y))
    assert [("another block or thread" in line, "has ended" in line) for line in refused] == [
        (True, False)
    ] * 3 + [(False, True)]


def test_results_are_said_once_and_in_main():
    with module_context() as module:
        x = tn.ones(2)
        with pytest.raises(tn.TraceError, match="another function or a region"):
            module.if_(True, lambda: module.returns(x.tanh()), lambda: None)
        module.returns(x)
        with pytest.raises(tn.TraceError, match="said already"):
            module.returns(1)
    assert "@main() -> !torch.vtensor<[2],f32>" in str(module)


def test_choices_and_loops_are_regions():
    with module_context() as module:
        x = tn.ones(3)
        count = module.aten.size.int(x, 0)
        chosen = module.if_(count > 2, lambda: (x.relu(), 1), lambda: (x.tanh(), count))
        assert chosen[0].shape == (3,) and chosen[1].type == "!torch.int"
        doubled = module.loop(chosen[1], lambda i, carried: carried * 2 + x, chosen[0])
        total = module.loop(10, lambda i, n: (i < 5, n + i), 0, while_=True)
        module.returns(doubled, total)
    text = str(module)
    assert "@main() -> (!torch.vtensor<[3],f32>, !torch.int)" in text
    assert text.count("torch.prim.Loop ") == 2 and text.count("torch.prim.If.yield") == 2
    torch_dialect.read(text)


def test_branches_of_other_types_and_leaked_values_are_refused():
    leaked = []
    with module_context() as module:
        x = tn.ones(3)
        with pytest.raises(tn.TraceError, match="the choice gives"):
            module.if_(True, lambda: x.sum(), lambda: x)
        module.if_(True, lambda: leaked.append(x.tanh()), lambda: None)
        with pytest.raises(tn.TraceError, match="a region that has ended"):
            module.value(leaked[0])
        with pytest.raises(tn.TraceError, match="has no value while the module is built"):
            bool(module.aten.size.int(x, 0) > 2)


def test_a_module_has_several_functions():
    with module_context() as module:

        @module.function("vtensor<[2,3],f32>", "int")
        def scaled(x, n):
            return module.aten.mul.Scalar(x, n).relu()

        y = scaled(tn.ones(2, 3), 4)
        with pytest.raises(tn.ArgumentError, match="takes"):
            scaled(tn.ones(3, 2), 4)
        with pytest.raises(tn.ArgumentError, match="already"):
            module.function(name="scaled")(lambda: 1)
        assert y.shape == (2, 3)
    text = str(module)
    assert "call @scaled" in text and "func.func @scaled(%arg0: !torch.vtensor<[2,3],f32>, %arg1" in text
    assert "func.func @main() -> !torch.vtensor<[2,3],f32>" in text


def test_a_module_of_functions_alone_has_no_main():
    with module_context() as module:
        module.function("vtensor<[2],f32>", name="f")(lambda x: x * 2)
        with module.top_level():
            end = lambda: (module.attr("n", module.parsed("int")), module.class_type_terminator())
            module.op("class_type", "c", regions=[((), end)])
    text = str(module)
    assert "@main" not in text and "func.func @f" in text and 'torch.attr "n" : !torch.int' in text


def test_a_block_inside_another_builds_its_own_module():
    with module_context() as outer:
        x = tn.ones(2)
        with module_context() as inner:
            y = tn.zeros(3).exp()
        with pytest.raises(tn.TraceError, match="the module around"), module_context():
            x.tanh()
        z = x.tanh()
    assert "exp" in str(inner) and "exp" not in str(outer) and "tanh" in str(outer)
    assert y.tolist() == [1, 1, 1] and z.shape == (2,)


def test_a_block_inside_a_compiled_function_is_refused():
    def function(x):
        with module_context():
            return x + 1

    with pytest.raises(tn.TraceError, match="inside something else"):
        tn.compile(function)(tn.ones(2))


def _operands(module, name):
    """Types that the verifier accepts for the operands of an op."""
    of = signature(name)
    wanted = [each for each in of.given if each.name in of.operands and not each.optional]
    none, types = ["!torch.none"] * len(of.result_names), []
    for place in range(len(wanted)):
        for kind in KINDS:
            rest = [f"!torch.{kind}"] * (len(wanted) - place)
            objection = module.verifier.objection(name, [*types, *rest], none)
            if objection is None or objection[0] == "result" or objection[1] > place:
                types.append(rest[0])
                break
    return types


@pytest.mark.slow
def test_every_aten_op_of_the_dialect_is_built_on_what_its_verifier_takes():
    refused = []
    with module_context() as module:
        for count, qualified in enumerate(torch_dialect.aten_ops()):
            name = f"torch.aten.{qualified}"
            of, types = signature(name), _operands(module, name)

            def body(*values, of=of, qualified=qualified):
                given = [[value] if each.many else value for each, value in zip(of.given, values)]
                try:
                    module.op(f"aten.{qualified}", *given)
                except tn.ArgumentError:  # a list's element, or whatever an op hands on
                    module.op(f"aten.{qualified}", *given, results=["any"])

            try:
                module.function(*types, name=f"f{count}")(body)
            except tn.TenfoldError as error:
                refused.append((qualified, str(error).splitlines()[0]))
    # A row says more of shapes and dtypes than the verifier, and some ops have checks of their own.
    unknown = [each for each in refused if not _is_checked(each[0])]
    assert [name for name, _ in unknown] == [], unknown


def _is_checked(qualified):
    from tenfold.ops.table import TABLE

    return qualified.partition(".")[0] in TABLE
