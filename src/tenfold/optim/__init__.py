"""`tenfold.optim`: PyTorch's optimizers and schedules of the learning rate.

A file of them loads when one of its names is first used.
"""

from tenfold.base.late import late_imports
from tenfold.optim.optimizer import Optimizer as Optimizer

with late_imports(__name__) as late:
    from tenfold.optim import lr_scheduler as lr_scheduler, swa_utils as swa_utils
    from tenfold.optim.adafactor import Adafactor as Adafactor
    from tenfold.optim.adam import (
        Adam as Adam,
        Adamax as Adamax,
        AdamW as AdamW,
        NAdam as NAdam,
        RAdam as RAdam,
    )
    from tenfold.optim.adaptive import (
        Adadelta as Adadelta,
        Adagrad as Adagrad,
        RMSprop as RMSprop,
        Rprop as Rprop,
    )
    from tenfold.optim.lbfgs import LBFGS as LBFGS
    from tenfold.optim.muon import Muon as Muon
    from tenfold.optim.sgd import ASGD as ASGD, SGD as SGD
    from tenfold.optim.sparse_adam import SparseAdam as SparseAdam

__getattr__, __dir__, __all__ = late.attributes()
