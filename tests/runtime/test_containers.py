"""What names are looked up in: each container gives, binds and unbinds like the Python object behind it."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque

import pytest

from tenfold.runtime.containers import (
    LENGTHS,
    MISSING,
    Absent,
    Attributes,
    Cells,
    Count,
    Entries,
    Has,
    Queue,
    Slots,
    bound_to,
)


class Slotted:
    __slots__ = ("weight",)


class Plain:
    limit = 3


def enclosed():
    count = 1

    def read():
        return count

    return read, Cells([("count", read.__closure__[0])])


def test_variables_of_enclosing_functions():
    read, cells = enclosed()
    (cell,) = cells
    assert cells[cell] == 1 and "`count`" in cells.label(cell)
    cells[cell] = 2
    assert read() == 2
    del cells[cell]
    assert bound_to(cells, cell) is MISSING


def test_attributes_of_classes_are_their_own_alone():
    class Derived(Plain):
        pass

    own = Attributes(Derived)
    assert bound_to(own, "limit") is MISSING  # it is inherited
    own["limit"] = 5
    assert Derived.limit == 5 and Plain.limit == 3
    del own["limit"]
    assert Derived.limit == 3
    assert own.label("limit").endswith("Derived.limit`")


def test_attributes_in_slots():
    holder = Slotted()
    slots = Slots(holder)
    assert bound_to(slots, "weight") is MISSING
    slots["weight"] = 4
    assert holder.weight == 4 and slots["weight"] == 4
    del slots["weight"]
    assert not hasattr(holder, "weight")
    assert slots.label("weight") == "the attribute `weight` of a Slotted"


def test_a_deque_is_one_thing():
    queue = deque([1, 2], maxlen=3)
    contents = Queue(queue)
    assert contents[None] == [1, 2]
    contents[None] = [3, 4, 5]
    assert queue == deque([3, 4, 5]) and queue.maxlen == 3


def test_whether_names_are_bound():
    has = Has({"a": None})
    assert has["a"] is True and has["b"] is False


def test_names_that_an_object_lacks():
    owner = Plain()
    absent = Absent("a Plain", vars(owner))
    assert absent[frozenset({"scale", "shift"})]
    owner.shift = 0
    assert not absent[frozenset({"scale", "shift"})] and absent[frozenset({"scale"})]


def test_how_much_there_is():
    owner = Plain()
    count = Count(owner)
    assert count[None] == 0
    owner.shift = 0
    assert count[None] == 1
    assert LENGTHS[[1, 2, 3]] == 3 and LENGTHS.label({}) == "the number of entries of a dict"


@pytest.mark.parametrize("kind", [OrderedDict, lambda: defaultdict(list)], ids=["OrderedDict", "defaultdict"])
def test_looking_into_a_dict_makes_nothing(kind):
    entries = kind()
    assert bound_to(Entries(entries), "a") is MISSING and bound_to(entries, "a") is MISSING
    assert len(entries) == 0
    entries["a"] = 1
    assert bound_to(Entries(entries), "a") == 1


def test_a_list_is_looked_up_by_its_places():
    assert bound_to([5, 6], 1) == 6 and bound_to([5, 6], 2) is MISSING
