"""Schemas are read as PyTorch writes them: in native_functions.yaml and in its own printer's notation."""

import pickle
import re
from importlib.resources import files

import pytest
import torch

from tenfold.ops.schema import MISSING, Type, parse

NATIVE = re.findall(
    r"^- func: (.*)$",
    files("torchgen").joinpath("packaged/ATen/native/native_functions.yaml").read_text(),
    re.MULTILINE,
)
PRINTED = [str(s) for s in torch._C._jit_get_all_schemas() if s.name.startswith("aten::")]


def canonical(text: str) -> str:
    """What `parse` promises to print for a schema of native_functions.yaml, worked out on the text alone."""
    text = text.replace("=Mean", "=1")
    text = re.sub(r"(float \w+=-?\d+)(?=[,)])", r"\1.0", text)
    return re.sub(r'"([^"\\]*)"', r"'\1'", text)


def test_pytorch_lists_its_operators():
    assert len(NATIVE) > 2000 and len(PRINTED) > 3000


def test_every_native_schema_prints_as_it_was_written():
    plain = [text for text in NATIVE if "\\" not in text]  # one has escaped quotes, tested below
    assert len(plain) == len(NATIVE) - 1
    assert [str(parse(text)) for text in plain] == [canonical(text) for text in plain]


@pytest.mark.parametrize("texts", [NATIVE, PRINTED], ids=["native", "printed"])
def test_canonical_text_reads_back_as_itself(texts):
    once = [str(parse(text)) for text in texts]
    assert [str(parse(text)) for text in once] == once


def test_both_notations_of_an_operator_mean_the_same():
    native = {parse(text).qualified: str(parse(text)) for text in NATIVE}
    printed = {parse(text).qualified: str(parse(text)) for text in PRINTED}
    assert native.keys() <= printed.keys()
    differ = {name for name in native if native[name] != printed[name]}
    # The printer shows a DeviceIndex as the int that it is.
    assert differ == {name for name in native if "DeviceIndex" in native[name]}


def test_pytorch_reads_the_canonical_text_as_the_same_schema():
    texts = [str(parse(text)) for text in NATIVE]
    ours = [torch._C.parse_schema(f"aten::{text}") for text in texts]
    theirs = [torch._C.parse_schema(f"aten::{text}") for text in NATIVE]
    assert list(map(str, ours)) == list(map(str, theirs))


def test_the_parts_of_a_schema():
    schema = parse("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
    assert (schema.namespace, schema.name, schema.overload, schema.qualified) == (
        "aten",
        "add",
        "Tensor",
        "add.Tensor",
    )
    assert [a.name for a in schema.arguments] == ["self", "other", "alpha"]
    assert [a.name for a in schema.positional] == ["self", "other"]
    assert [a.name for a in schema.keyword_only] == ["alpha"]
    assert [a.default for a in schema.arguments] == [MISSING, MISSING, 1]
    assert [a.keyword_only for a in schema.arguments] == [False, False, True]
    assert [str(r.type) for r in schema.returns] == ["Tensor"]
    assert str(schema) == "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"


def test_an_unnamed_overload_and_another_namespace():
    assert parse("relu(Tensor self) -> Tensor").qualified == "relu"
    text = "prims::sum(Tensor inp, int[]? dims) -> Tensor"
    assert parse(text).namespace == "prims" and str(parse(text)) == text


@pytest.mark.parametrize(
    ("text", "base", "kind", "optional", "list_size", "element_optional", "alias"),
    [
        ("Tensor", "Tensor", "Tensor", False, None, False, None),
        ("Tensor?", "Tensor", "Tensor", True, None, False, None),
        ("Tensor[]", "Tensor", "Tensor", False, -1, False, None),
        ("Tensor?[]", "Tensor", "Tensor", False, -1, True, None),
        ("Tensor?[]?", "Tensor", "Tensor", True, -1, True, None),
        ("Tensor(a!)", "Tensor", "Tensor", False, None, False, "a!"),
        ("Tensor(a -> *)", "Tensor", "Tensor", False, None, False, "a -> *"),
        ("Tensor(a)[]", "Tensor", "Tensor", False, -1, False, "a"),
        ("int[2]", "int", "int", False, 2, False, None),
        ("int[1]?", "int", "int", True, 1, False, None),
        ("SymInt[]?", "SymInt", "int", True, -1, False, None),
        ("SymInt", "SymInt", "int", False, None, False, None),
        ("bool[3]", "bool", "bool", False, 3, False, None),
        ("float[]?", "float", "float", True, -1, False, None),
        ("ScalarType?", "ScalarType", "ScalarType", True, None, False, None),
        ("DeviceIndex", "DeviceIndex", "int", False, None, False, None),
        ("Dict(str, Tensor)", "Dict(str, Tensor)", "Dict(str, Tensor)", False, None, False, None),
        ("(str, t)[]", "(str, t)", "(str, t)", False, -1, False, None),
    ],
)
def test_the_parts_of_a_type(text, base, kind, optional, list_size, element_optional, alias):
    type = parse(f"f({text} x) -> ()").arguments[0].type
    assert (type.base, type.kind, type.optional) == (base, kind, optional)
    assert (type.list_size, type.element_optional, type.alias) == (list_size, element_optional, alias)
    assert str(type) == text


def test_a_type_is_one_object_however_it_came_about():
    schema = parse("f(int[2] x, int[2] y) -> ()")
    assert schema.arguments[0].type is schema.arguments[1].type
    assert isinstance(schema.arguments[0].type, Type)


def test_an_alias_may_be_the_list_s_own():
    type = parse("append.t(t[](a!) self, t(c -> *) el) -> t[](a!)").arguments[0].type
    assert (type.alias, type.list_alias, type.is_written) == (None, "a!", True)


@pytest.mark.parametrize(
    ("argument", "default"),
    [
        ("int x=-1", -1),
        ("int x=Mean", 1),
        ("Scalar x=1", 1),
        ("Scalar x=1.0", 1.0),
        ("Scalar x=True", True),
        ("float x=2", 2.0),
        ("float x=1.0000000000000001e-05", 1e-05),
        ("bool x=False", False),
        ("Tensor? x=None", None),
        ("str x='none'", "none"),
        ('str x="none"', "none"),
        (r'''str x="\"'\\"''', "\"'\\"),
        (r"""str x='"\'\\'""", "\"'\\"),
        (r'str x=" \n\t"', " \n\t"),
        ("str x='é'", "é"),
        ("int[] x=[0,1]", (0, 1)),
        ("int[] x=[0, 1]", (0, 1)),
        ("int[1] x=[]", ()),
        ("int[2] x=1", (1, 1)),
        ("int[2] x=[1, 1]", (1, 1)),
        ("int[1] x=[-2,-1]", (-2, -1)),
        ("bool[3] x=[True,False,True]", (True, False, True)),
        ("ScalarType x=long", "long"),
        ("ScalarType x=4", "long"),
        ("MemoryFormat? x=contiguous_format", "contiguous_format"),
        ("MemoryFormat? x=0", "contiguous_format"),
    ],
)
def test_defaults_become_python_values_and_survive_printing(argument, default):
    schema = parse(f"f({argument}) -> ()")
    for read in (schema, parse(str(schema))):
        value = read.arguments[0].default
        assert value == default and type(value) is type(default)


def test_results():
    named = parse("max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
    assert [r.name for r in named.returns] == ["values", "indices"]
    assert parse("f(Tensor self) -> ()").returns == ()
    assert [str(r) for r in parse("f(Tensor self) -> Tensor[]").returns] == ["Tensor[]"]
    assert [str(r) for r in parse("f(Tensor self) -> Tensor grid").returns] == ["Tensor grid"]
    assert [str(r) for r in parse("f(Dict(str, t) self) -> ((str, t)[])").returns] == ["(str, t)[]"]


@pytest.mark.parametrize(
    ("text", "is_view", "is_inplace"),
    [
        ("transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", True, False),
        ("split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]", True, False),
        ("add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)", False, True),
        ("transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)", False, True),
        ("abs(Tensor self) -> Tensor", False, False),
        ("abs.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", False, False),
        ("_foreach_neg_(Tensor(a!)[] self) -> ()", False, False),
    ],
)
def test_aliases_tell_views_and_in_place_operators(text, is_view, is_inplace):
    schema = parse(text)
    assert (schema.is_view, schema.is_inplace) == (is_view, is_inplace)


def test_variadic_schemas():
    schema = parse("aten::format(str self, ...) -> str")
    assert schema.variadic and str(schema) == "format(str self, ...) -> str"
    assert not parse("relu(Tensor self) -> Tensor").variadic


def test_a_schema_pickles():
    schema = parse("sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False) -> Tensor")
    copy = pickle.loads(pickle.dumps(schema))
    assert str(copy) == str(schema) and copy.arguments[0].default is MISSING


@pytest.mark.parametrize(
    ("text", "caret", "problem"),
    [
        ("", 0, "a schema starts with a name and '('"),
        ("add Tensor", 0, "a schema starts with a name and '('"),
        ("f(Tensor", 8, "the arguments end without ')'"),
        ("f(Tensor self", 13, "the arguments end without ')'"),
        ("f(Tenser self) -> Tensor", 2, "unknown type 'Tenser'"),
        ("f(Tensor self,) -> Tensor", 14, "expected an argument"),
        ("f(Tensor) -> Tensor", 8, "the argument of type 'Tensor' has no name"),
        ("f(Tensor x y) -> Tensor", 11, "expected ',' or ')' after the argument 'x'"),
        ("f(Tensor x, int x) -> Tensor", 2, "two arguments are called 'x'"),
        ("f(Tensor(!a) x) -> Tensor", 2, "'(!a)' is not an alias"),
        ("f(Tensor?? x) -> Tensor", 2, "'Tensor??' is not a type"),
        ("f(int[0] x) -> Tensor", 2, "a list's fixed size is at least 1"),
        ("f(int x=) -> Tensor", 8, "the default of 'x' is missing or never closed"),
        ("f(str x='a) -> Tensor", 8, "the default of 'x' is missing or never closed"),
        ("f(int x=None) -> Tensor", 8, "None is no default for int: write int?"),
        ("f(int x=1.5) -> Tensor", 8, "1.5 is no default for int"),
        ("f(bool x=1) -> Tensor", 9, "1 is no default for bool"),
        ("f(str x=abc) -> Tensor", 8, "abc is no default for str"),
        ("f(int[] x=1) -> Tensor", 10, "1 is no default for int[]"),
        ("f(int[] x=[1,]) -> Tensor", 10, "[1,] is no default for int[]"),
        ("f(Generator x=word) -> Tensor", 14, "word is no default for Generator"),
        ("f(ScalarType x=99) -> Tensor", 15, "99 is no default for ScalarType"),
        ("f(Tensor x, *) -> Tensor", 12, "'*' comes once, before the keyword-only arguments"),
        ("f(*, int x, *, int y) -> Tensor", 12, "'*' comes once, before the keyword-only arguments"),
        ("f(..., int x) -> Tensor", 2, "'...' comes last, and not after '*'"),
        ("f(Tensor x) Tensor", 12, "the arguments are followed by ' -> ' and the results"),
        ("f(Tensor x) ->", 14, "expected a type, or several in parentheses"),
        ("f(Tensor x) -> Tensor, Tensor", 15, "expected a type, or several in parentheses"),
        ("f(Tensor x) -> (Tensor", 22, "expected ',' or ')' after a result"),
        ("f(Tensor x) -> (Tensor, *)", 24, "expected the type of a result"),
        ("f(Tensor x) -> (Tensor,)", 23, "expected the type of a result"),
        ("f(Tensor x) -> (Tensor) x", 23, "nothing may follow the results"),
    ],
)
def test_a_malformed_schema_is_refused_with_the_place(text, caret, problem):
    with pytest.raises(ValueError) as caught:
        parse(text)
    first, shown, pointer = str(caught.value).split("\n")[:3]
    assert first.startswith(f"schema: {problem}")
    assert shown == f"    {text}" and pointer == " " * (4 + caret) + "^"


def test_an_unknown_type_gets_a_suggestion():
    with pytest.raises(ValueError, match="did you mean Tensor?"):
        parse("f(Tenser self) -> Tensor")
