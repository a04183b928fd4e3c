"""What R counts from one follows from arguments' names and from what rows state."""

import pytest

from tenfold.capi.r_places import counts_from_one, result_places
from tenfold.ops.schema import parse
from tenfold.ops.table import all_rows, find


def counted(row):
    return [each.name for each in row.schema.arguments if counts_from_one(row.schema, each)]


def test_every_name_that_a_row_states_is_an_argument_or_a_result_of_it():
    for row in (each for each in all_rows() if each.positions):
        arguments, _, results = row.positions.partition("->")
        names = {each.name for each in row.schema.arguments}
        assert set(arguments.split()) - {"not"} <= names, row.qualified
        assert all(int(each) < len(row.schema.returns) for each in results.split()), row.qualified


def test_what_a_row_states_adds_to_what_names_tell():
    assert counted(find("nll_loss")) == ["target", "ignore_index"]
    assert counted(find("mse_loss")) == []
    assert counted(find("_embedding_bag")) == ["indices", "offsets"]
    assert counted(find("max_unpool2d")) == []
    assert result_places(find("argmax").schema) == (0,)
    assert result_places(find("topk").schema) == (1,)


@pytest.mark.parametrize("name", ["index_fill_.int_Scalar", "no_such_op"])
def test_a_schema_without_a_row_of_its_own_goes_by_names(name):
    schema = parse(f"{name}(Tensor self, int dim, Tensor index, Scalar value) -> Tensor")
    assert [each.name for each in schema.arguments if counts_from_one(schema, each)] == ["dim", "index"]
