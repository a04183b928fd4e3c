"""Ops of the torch dialect by hand: by name, with regions, and in functions."""

from __future__ import annotations

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
