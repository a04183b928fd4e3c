"""`tenfold.autograd`: gradients of tensors, with PyTorch's names and rules."""

from typing import TYPE_CHECKING, Any

from tenfold.autograd import forward_ad, grad_mode, graph
from tenfold.autograd.anomaly import detect_anomaly, set_detect_anomaly
from tenfold.autograd.custom import Function
from tenfold.autograd.flow import backward, grad, is_grad_enabled
from tenfold.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled, set_grad_mode
from tenfold.autograd.old_names import Variable, set_multithreading_enabled
from tenfold.autograd.sweep import survey
from tenfold.base.errors import unknown_name
from tenfold.base.hooks import RemovableHandle

if TYPE_CHECKING:
    from tenfold.autograd import function, functional
    from tenfold.autograd.checking import gradcheck, gradgradcheck

__all__ = [
    "Function",
    "RemovableHandle",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_grad_mode",
    "set_multithreading_enabled",
    "survey",
]


def __getattr__(name: str) -> Any:
    if name in ("gradcheck", "gradgradcheck"):
        from tenfold.autograd import checking

        return getattr(checking, name)
    if name == "functional":
        import tenfold.autograd.functional as functional

        return functional
    if name == "function":
        import tenfold.autograd.function as function

        return function
    raise unknown_name(__name__, name, __all__)
