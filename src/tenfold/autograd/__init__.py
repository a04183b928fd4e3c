"""`tenfold.autograd`: gradients of tensors, with PyTorch's names and rules."""

from tenfold.autograd import function, functional, graph
from tenfold.autograd.anomaly import detect_anomaly, set_detect_anomaly
from tenfold.autograd.checking import gradcheck, gradgradcheck
from tenfold.autograd.flow import Function, RemovableHandle, backward, grad, is_grad_enabled, survey
from tenfold.autograd.older import Variable
from tenfold.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled, set_grad_mode

__all__ = [
    "Function",
    "RemovableHandle",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "function",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_grad_mode",
    "survey",
]
