"""What `dynamic` says of a call, by the places of its tensors; and what it may not say."""

import pytest

import tenfold as tn
from tenfold.base.dim import Dim
from tenfold.tensor.dynamic import call_dimensions, open_dimensions, tensors_of

X, Y, Z = tn.ones(2, 3), tn.ones(4), tn.ones(2)


def shown(open_dims):
    return {place: {axis: dim.name for axis, dim in dims.items()} for place, dims in open_dims.items()}


def test_arguments_are_named_by_place_by_name_or_all_in_turn():
    expected = {0: {0: "n"}, 1: {0: "m"}}
    for dynamic in ({0: {0: "n"}, 1: {0: "m"}}, {"x": {0: "n"}, "y": {-1: "m"}}, [{0: "n"}, {0: "m"}]):
        assert shown(open_dimensions(dynamic, [X, Y], {}, ["x", "y"])) == expected
    assert shown(open_dimensions({"y": {0: "m"}}, [X], {"z": Z, "y": Y}, ["x"])) == {2: {0: "m"}}
    assert shown(open_dimensions([None, {0: "m"}], [X, Y], {}, [])) == {1: {0: "m"}}


def test_tensors_in_containers_have_places_of_their_own():
    args = [[X, {"a": Y, "b": Z}], Z]
    assert tensors_of(args, {"k": X}) == [X, Y, Z, Z, X]
    dynamic = {0: [{0: "n"}, {"b": {0: "n"}}], 1: {0: "n"}}
    assert shown(open_dimensions(dynamic, args, {}, [])) == {0: {0: "n"}, 2: {0: "n"}, 3: {0: "n"}}


def test_names_are_those_of_the_function_or_of_a_modules_forward():
    class Layer(tn.nn.Module):
        def forward(self, rows):
            return rows

    for function in (lambda rows: rows, Layer(), Layer().forward):
        assert shown(call_dimensions({"rows": {0: "n"}}, function, [X], {})) == {0: {0: "n"}}


MISTAKES = {
    "'batch' does not": ("batch", [X]),
    "names an argument 3, which the call does not have": ({3: {0: "n"}}, [X]),
    "names an argument True": ({True: {0: "n"}}, [X, Y]),
    "the call has no arguments": ({0: {0: "n"}}, []),
    "is about an argument that is no tensor but int": ({0: {0: "n"}}, [5]),
    "it holds the same for each, not 'n'": ({0: "n"}, [[X]]),
    "names 1, which the argument does not have": ({0: {1: {0: "n"}}}, [[X]]),
    "says which dimensions are open, and 'n' does not": ({0: "n"}, [X]),
    "names a dimension 2, and the argument is": ({0: {2: "n"}}, [X]),
    "names a dimension -3, and the argument is": ({0: {-3: "n"}}, [X]),
    "is the name of a dimension or a Dim, not 4": ({0: {0: 4}}, [X]),
    "contradicts itself: dimension 0 is": ({0: {0: "n", -2: "m"}}, [X]),
    "dynamic contradicts itself: ": ({0: {0: Dim("n", max=8)}, 1: {0: Dim("n", max=9)}}, [X, Z]),
    "n is one size, and the example has 2 and 4 for it": ({0: {0: "n"}, 1: {0: "n"}}, [X, Y]),
    "n must be ": ({0: {0: Dim("n", min=3)}}, [X]),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_what_contradicts_the_call_or_itself_is_refused(message):
    dynamic, args = MISTAKES[message]
    with pytest.raises(tn.ArgumentError) as raised:
        open_dimensions(dynamic, args, {}, [])
    assert message in str(raised.value)
