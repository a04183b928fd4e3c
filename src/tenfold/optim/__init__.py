"""`tenfold.optim`: PyTorch's optimizers and schedules of the learning rate."""

from tenfold.base.errors import unknown_name
from tenfold.optim import lr_scheduler, swa_utils
from tenfold.optim.adafactor import Adafactor
from tenfold.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam
from tenfold.optim.adaptive import Adadelta, Adagrad, RMSprop, Rprop
from tenfold.optim.lbfgs import LBFGS
from tenfold.optim.muon import Muon
from tenfold.optim.optimizer import Optimizer
from tenfold.optim.sgd import ASGD, SGD
from tenfold.optim.sparse_adam import SparseAdam

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


def __getattr__(name: str):
    raise unknown_name("tenfold.optim", name, globals())
