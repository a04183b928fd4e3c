"""Ops of the torch dialect in a block, for type checkers: a line that is wrong says so."""

import tenfold as tn
from tenfold.exporting.context import module_context
from tenfold.exporting.ssa import SSAValue
from tenfold.tensor import Tensor

with module_context() as module:
    x = tn.ones(2, 3)
    sum: Tensor = module.aten.add.Tensor(x, x, alpha=2)
    chosen: Tensor = module.aten.add(x, 1)
    linear: Tensor = module.aten.linear(x, tn.ones(4, 3), None)
    size: SSAValue = module.aten.size.int(x, 0)
    number: SSAValue = module.aten.Int.Tensor(tn.ones(()))
    root: SSAValue = module.aten.ceil.float(2.5)
    scaled: Tensor | SSAValue = module.aten.mul.Scalar(x, size)
    listed: SSAValue = module.prim.ListConstruct([1, 2], results=["list<int>"])
    module.aten.linear(x)  # wrong
    module.aten.relu("text")  # wrong
    module.aten.ceil.float("text")  # wrong
    module.aten.Int.Tensor(2)  # wrong
    module.aten.no_such_op(x)  # wrong
    shape: int = module.aten.size.int(x, 0)  # wrong
    unknown: Tensor = module.aten.mul.Scalar(x, size)  # wrong
