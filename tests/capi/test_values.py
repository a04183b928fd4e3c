"""Values and stacks: everything an operator takes or gives, made and taken apart again."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from tenfold.capi.binding import Device, Scalar
from tests.capi.bridge import Bridge, nothing_left, numbers
from tests.capi.exchange import array_of


class Values(Bridge):
    """A bridge that frees its values, too."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[int] = []

    def value(self, handle: int) -> int:
        self.values.append(handle)
        return handle

    def of(self, given: Any) -> int:
        """A Python value as libtenfold's."""
        if given is None:
            return self.value(self.tn_value_none())
        if isinstance(given, str):
            return self.value(self.tn_value_string(given.encode()))
        if isinstance(given, (bool, int, float, complex)):
            return self.value(self.tn_value_scalar(Scalar.of(given)))
        if isinstance(given, dict):
            keys, items = [self.of(k) for k in given], [self.of(v) for v in given.values()]
            arrays = array_of(ctypes.c_void_p, keys), array_of(ctypes.c_void_p, items)
            return self.value(self.tn_value_dict(*arrays, len(keys)))
        entries = array_of(ctypes.c_void_p, [self.of(each) for each in given])
        make = self.tn_value_list if isinstance(given, list) else self.tn_value_tuple
        return self.value(make(entries, len(given)))

    def read(self, handle: int) -> Any:
        tag = self.tn_value_tag(handle)
        if tag == 0:
            return None
        if tag in (2, 3, 4, 5):
            scalar = Scalar()
            self.tn_value_to_scalar(handle, ctypes.byref(scalar))
            return scalar.number
        if tag == 6:
            return self.lib.text("tn_value_to_string", handle)
        entries = [
            self.read(self.value(self.tn_value_at(handle, i))) for i in range(self.tn_value_count(handle))
        ]
        if tag == 11:
            keys = [self.read(self.value(self.tn_value_key_at(handle, i))) for i in range(len(entries))]
            return dict(zip(keys, entries, strict=True))
        return entries if tag == 9 else tuple(entries)

    def close(self) -> None:
        for each in self.values:
            self.tn_value_free(each)
        self.values.clear()
        super().close()


@pytest.fixture
def tn() -> Any:
    values = Values()
    with nothing_left(values):
        yield values


@pytest.mark.parametrize(
    "given",
    [
        None, True, -(1 << 63), 0.1, float("inf"), 1 - 2j, "", "t\u00e4nz", [],
        [1, 2], [1.5], [True], ["a", "b"], [None],
        [[1], [2, 3]], (), (1, "a", None), ((1,), [2]), {}, {"a": 1, "b": 2},
        {1: "x"}, {True: [1]}, {2.5: (1,)},
        [1, "mixed"], {"deep": {"er": [({},)]}},
    ],
    ids=repr,
)  # fmt: skip
def test_a_value_comes_back_as_it_went_in(tn: Values, given: Any) -> None:
    assert tn.read(tn.of(given)) == given


def test_lists_of_one_type_have_the_type_that_operators_take(tn: Values) -> None:
    assert tn.lib.text("tn_value_type", tn.value(tn.tn_value_int_list(None, 0))) == "int[]"
    for given, name in (
        ([1], "int[]"),
        ([1.0], "float[]"),
        (["a"], "str[]"),
        ([True], "bool[]"),
        ([1, "a"], "Any[]"),
    ):
        assert tn.lib.text("tn_value_type", tn.of(given)) == name


def test_typed_lists_are_read_at_once(tn: Values) -> None:
    out = (ctypes.c_int64 * 2)()
    assert tn.tn_value_to_ints(tn.of([1, 2, 3]), out, 2) == 3 and list(out) == [1, 2]
    doubles = (ctypes.c_double * 3)()
    assert tn.tn_value_to_doubles(tn.of([1.5, 2.5]), doubles, 3) == 2 and list(doubles) == [1.5, 2.5, 0]
    many, count = ctypes.c_void_p(), ctypes.c_int64()
    tensors = array_of(ctypes.c_void_p, [tn.tensor([1.0]), tn.tensor([2.0])])
    listed = tn.value(tn.tn_value_tensor_list(tensors, 2))
    tn.tn_value_to_tensors(listed, ctypes.byref(many), ctypes.byref(count))
    assert count.value == 2
    tn.tn_free_all(many, count)


def test_devices_dtypes_and_generators_are_values(tn: Values) -> None:
    device, dtype = Device(), ctypes.c_int32()
    tn.tn_value_to_device(tn.value(tn.tn_value_device(Device(1, 3))), ctypes.byref(device))
    assert (device.type, device.index) == (1, 3)
    tn.tn_value_to_dtype(tn.value(tn.tn_value_dtype(15)), ctypes.byref(dtype))
    assert dtype.value == 15
    generator = tn.tn_generator_new(Device(0, -1), 5)
    again = tn.tn_value_to_generator(tn.value(tn.tn_value_generator(generator)))
    tn.tn_generator_set_seed(again, 9)
    states = [tn.array(tn.keep(tn.tn_generator_state(each))).tobytes() for each in (generator, again)]
    assert states[0] == states[1]
    tn.tn_generator_free(generator)
    tn.tn_generator_free(again)


def test_a_generator_repeats_itself_from_a_state(tn: Values) -> None:
    generator = tn.tn_generator_new(Device(0, -1), 5)
    draw = lambda: tn.array(tn.keep(tn.library.tn_rand_generator_with(*numbers([3]), generator, *[None] * 4)))
    tn.library.tn_rand_generator_with.restype = ctypes.c_void_p
    tn.library.tn_rand_generator_with.argtypes = [ctypes.c_void_p, ctypes.c_int64, *[ctypes.c_void_p] * 5]
    state = tn.keep(tn.tn_generator_state(generator))
    first, second = draw(), draw()
    tn.tn_generator_set_state(generator, state)
    assert (draw() == first).all() and (draw() == second).all() and (first != second).any()
    tn.tn_generator_free(generator)


def test_a_state_that_leads_outside_of_itself_is_refused(tn: Values) -> None:
    generator = tn.tn_generator_new(Device(0, -1), 5)
    before = tn.array(tn.keep(tn.tn_generator_state(generator)))
    for left, place in ((624, 624), (2, 624), (600, 26), (-5, 3), (1, 625)):
        wrong = before.copy()
        wrong[8:12] = np.array([left], np.int32).view(np.uint8)
        wrong[16:24] = np.array([place], np.uint64).view(np.uint8)
        assert tn.raw("tn_generator_set_state")(generator, tn.tensor(wrong, "uint8")) != 0, (left, place)
        assert (tn.array(tn.keep(tn.tn_generator_state(generator))) == before).all()
    tn.tn_generator_free(generator)


@pytest.mark.parametrize(
    ("name", "given", "code"),
    [
        ("tn_value_to_int", "text", 3),
        ("tn_value_to_double", True, 3),
        ("tn_value_to_bool", 1, 3),
        ("tn_value_to_dtype", 99, 1),
        ("tn_value_to_dtype", 10**12, 3),
        ("tn_value_to_device", None, 3),
        ("tn_value_to_scalar", [1], 3),
    ],
)
def test_a_value_of_another_kind_is_an_error(tn: Values, name: str, given: Any, code: int) -> None:
    assert tn.raw(name)(tn.of(given), ctypes.create_string_buffer(64)) == code


def test_entries_out_of_range_and_missing_keys_are_errors(tn: Values) -> None:
    for handle, index in ((tn.of([1]), 1), (tn.of((1,)), -2), (tn.of({"a": 1}), 5)):
        assert tn.raw("tn_value_at")(handle, index) is None and tn.tn_error_code() == 2
    assert tn.raw("tn_value_get_string")(tn.of({"a": 1}), b"b") is None and tn.tn_error_code() == 5
    assert tn.raw("tn_value_get_string")(tn.of({1: 1}), b"b") is None and tn.tn_error_code() == 5
    mixed = array_of(ctypes.c_void_p, [tn.of(1), tn.of("a")])
    assert tn.raw("tn_value_dict")(mixed, mixed, 2) is None and tn.tn_error_code() == 3


def test_equal_values_are_equal(tn: Values) -> None:
    assert tn.tn_value_equal(tn.of([1, 2]), tn.of([1, 2])) == 1
    assert tn.tn_value_equal(tn.of([1, 2]), tn.of([1, 3])) == 0
    assert tn.tn_value_equal(tn.of({"a": 1}), tn.of({"a": 1})) == 1
    assert tn.tn_value_equal(tn.of({"a": [1]}), tn.of({"a": [2]})) == 0
    assert tn.tn_value_equal(tn.of({"a": 1}), tn.of({1: 1})) == 0
    assert tn.tn_value_equal(tn.of([1]), tn.of((1,))) == 0


def test_tensors_in_values_are_equal_by_being_the_same_one(tn: Values) -> None:
    x, y = tn.tensor([1.0, 2.0]), tn.tensor([1.0, 2.0])

    def both(a: int, b: int) -> tuple[int, int]:
        entries = array_of(ctypes.c_void_p, [tn.value(tn.tn_value_tensor(each)) for each in (a, b)])
        return tn.value(tn.tn_value_list(entries, 2)), tn.value(tn.tn_value_tuple(entries, 2))

    for these, same, other in zip(both(x, y), both(x, y), both(y, x), strict=True):
        assert tn.tn_value_equal(these, same) == 1 and tn.tn_value_equal(these, other) == 0


def test_values_that_share_much_are_compared_in_a_moment(tn: Values) -> None:
    def pairs_of_pairs() -> int:
        made = tn.of(1)
        for _ in range(100):
            made = tn.value(tn.tn_value_tuple(array_of(ctypes.c_void_p, [made, made]), 2))
        return made

    assert tn.tn_value_equal(pairs_of_pairs(), pairs_of_pairs()) == 1


def test_a_stack_pushes_pops_and_replaces(tn: Values) -> None:
    stack = tn.tn_stack_new()
    tn.tn_stack_push(stack, tn.of("text"))
    tn.tn_stack_push_int(stack, 3)
    tn.tn_stack_push_double(stack, 0.5)
    tn.tn_stack_push_bool(stack, True)
    tn.tn_stack_push_none(stack)
    tn.tn_stack_push_ints(stack, *numbers([1, 2]))
    tn.tn_stack_set(stack, 0, tn.of("other"))
    read = [tn.read(tn.value(tn.tn_stack_at(stack, i))) for i in range(tn.tn_stack_count(stack))]
    assert read == ["other", 3, 0.5, True, None, [1, 2]]
    assert tn.read(tn.value(tn.tn_stack_pop(stack))) == [1, 2]
    assert tn.raw("tn_stack_pop_tensor")(stack) is None and tn.tn_error_code() == 3
    assert tn.raw("tn_stack_at")(stack, 9) is None and tn.tn_error_code() == 2
    tn.tn_stack_clear(stack)
    assert tn.raw("tn_stack_pop")(stack) is None and tn.tn_error_code() == 2
    tn.tn_stack_free(stack)


def test_a_value_that_found_no_memory_stays_on_its_stack(tn: Values) -> None:
    stack = tn.tn_stack_new()
    tn.tn_stack_push_int(stack, 7)
    tn.tn_debug_fail_allocation(1)
    assert tn.raw("tn_stack_pop")(stack) is None and tn.tn_error_code() == 6
    assert tn.read(tn.value(tn.tn_stack_pop(stack))) == 7
    tn.tn_stack_free(stack)


def test_values_that_a_script_nests_without_bound_are_freed(tn: Values) -> None:
    wrapped = "x: List[Any] = []\n  for i in range(n):\n    y: List[Any] = [1, x]\n    x = y\n  return x"
    module, stack = tn.tn_module_compile(f"def f(n: int):\n  {wrapped}".encode()), tn.tn_stack_new()
    for keep in (True, False):
        tn.tn_stack_push_int(stack, 300_000)
        tn.tn_module_call(module, b"f", stack)
        if keep:
            value = tn.tn_stack_pop(stack)
            assert tn.tn_value_count(value) == 2
            tn.tn_value_free(value)
    tn.tn_stack_free(stack)
    tn.tn_module_free(module)
