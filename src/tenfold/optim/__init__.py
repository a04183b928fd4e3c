"""`tenfold.optim`: PyTorch's optimizers and schedules of the learning rate.

A file of them loads when one of its names is first used.
"""

from typing import TYPE_CHECKING

from tenfold.base.late import late_names
from tenfold.optim.optimizer import Optimizer

if TYPE_CHECKING:
    from tenfold.optim import lr_scheduler, swa_utils
    from tenfold.optim.adafactor import Adafactor
    from tenfold.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam
    from tenfold.optim.adaptive import Adadelta, Adagrad, RMSprop, Rprop
    from tenfold.optim.lbfgs import LBFGS
    from tenfold.optim.muon import Muon
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

__getattr__, __dir__ = late_names(
    __name__,
    {
        "adafactor": ("Adafactor",),
        "adam": ("Adam", "AdamW", "Adamax", "NAdam", "RAdam"),
        "adaptive": ("Adadelta", "Adagrad", "RMSprop", "Rprop"),
        "lbfgs": ("LBFGS",),
        "lr_scheduler": (),
        "muon": ("Muon",),
        "sgd": ("ASGD", "SGD"),
        "sparse_adam": ("SparseAdam",),
        "swa_utils": (),
    },
)
