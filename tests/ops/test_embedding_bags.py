"""Bags of rows: those that are empty, those that the last offset ends, and offsets that are none."""

import pytest
import torch

import tenfold as tn

ROWS = [[1.0, -2.0], [3.0, 5.0], [-4.0, 0.5], [7.0, 7.0]]
INDICES = [3, 0, 0, 2, 1, 3]
ENDS = {
    "none is empty": [0, 2, 3, 6],
    "the first": [0, 0, 4, 6],
    "the last two": [0, 6, 6, 6],
    "one bag": [0, 6],
}


def bags(L, mode, offsets, last, padding):
    weight, indices = L.tensor(ROWS), L.tensor(INDICES)
    call = L.ops.aten.embedding_bag.padding_idx
    return call(weight, indices, L.tensor(offsets), False, mode, False, None, last, padding)


@pytest.mark.parametrize("padding", [None, 0, -1])
@pytest.mark.parametrize("mode", [0, 1, 2], ids=["sum", "mean", "max"])
@pytest.mark.parametrize("name", ENDS)
def test_the_last_offset_may_end_the_last_bag(name, mode, padding):
    for offsets, last in ((ENDS[name], True), (ENDS[name][:-1], False)):
        ours, theirs = (bags(L, mode, offsets, last, padding) for L in (tn, torch))
        assert ours[0].tolist() == theirs[0].tolist()
        if mode:
            assert [each.tolist() for each in ours[1:3]] == [each.tolist() for each in theirs[1:3]]
        if mode == 2:
            assert ours[3].tolist() == theirs[3].tolist()


@pytest.mark.parametrize("offsets", [[1, 2], [0, 7], [0, -1]])
def test_offsets_that_are_none_are_found_as_the_program_runs(offsets):
    with pytest.raises(tn.ArgumentError, match=r"the first offset is not 0|an offset is not between 0 and"):
        tn.eval(*bags(tn, 0, offsets, False, None))


@pytest.mark.parametrize("padding", [4, -5])
def test_padding_that_is_no_row_is_refused(padding):
    with pytest.raises(tn.ArgumentError, match=f"padding_idx {padding} is none of the 4 rows"):
        bags(tn, 0, [0], False, padding)
    assert bags(tn, 0, [0], False, padding + 1 if padding < 0 else padding - 1)[0].shape == (1, 2)
