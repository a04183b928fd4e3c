"""`tenfold.optim`: PyTorch's optimizers and schedules of the learning rate."""

from typing import TYPE_CHECKING

from tenfold.base.late import late_names
from tenfold.optim.adafactor import Adafactor
from tenfold.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam
from tenfold.optim.adaptive import Adadelta, Adagrad, RMSprop, Rprop
from tenfold.optim.lbfgs import LBFGS
from tenfold.optim.muon import Muon
from tenfold.optim.optimizer import Optimizer
from tenfold.optim.sgd import ASGD, SGD
from tenfold.optim.sparse_adam import SparseAdam

if TYPE_CHECKING:
    from tenfold.optim import lr_scheduler, swa_utils

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
    "swa_utils",
]

__getattr__, __dir__ = late_names(__name__, {"lr_scheduler": (), "swa_utils": ()})
