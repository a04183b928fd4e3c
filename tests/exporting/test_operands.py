"""Python values as operands of ops by hand."""

from __future__ import annotations

import tenfold as tn
from tenfold.mlir import module_context


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
