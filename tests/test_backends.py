"""Switches of `tenfold.backends` that can be frozen."""

import pytest
import torch

import tenfold as tn
from tenfold import backends


@pytest.fixture
def frozen():
    tn.backends.disable_global_flags()
    yield
    backends._frozen.clear()


def test_frozen_switches_change_for_blocks_alone(frozen):
    assert tn.backends.flags_frozen()
    before = tn.backends.cudnn.benchmark
    with pytest.raises(RuntimeError, match="cudnn.benchmark cannot be set after disable_global_flags"):
        tn.backends.cudnn.benchmark = not before
    with tn.backends.cudnn.flags(benchmark=not before):
        assert tn.backends.cudnn.benchmark is not before
    assert tn.backends.cudnn.benchmark is before


def test_switches_are_set_while_nothing_is_frozen():
    before = tn.backends.cudnn.benchmark
    tn.backends.cudnn.benchmark = not before
    assert tn.backends.cudnn.benchmark is not before
    tn.backends.cudnn.benchmark = before


@pytest.mark.skipif(
    tn.cuda.is_available() or torch.cuda.is_available(), reason="needs a machine without GPUs"
)
def test_without_gpus_none_reaches_another():
    for library in (tn, torch):
        with pytest.raises((RuntimeError, AssertionError)):
            library.cuda.can_device_access_peer(0, 1)


@pytest.mark.skipif(
    tn.cuda.is_available() or torch.cuda.is_available(), reason="needs a machine without GPUs"
)
def test_without_gpus_cuda_is_not_initialized():
    assert tn.cuda._initialized is tn.cuda.is_initialized() is False
    assert torch.cuda._initialized is torch.cuda.is_initialized() is False


def test_preferred_libraries_are_kept():
    cuda = tn.backends.cuda
    for ask, name in ((cuda.preferred_linalg_library, "cusolver"), (cuda.preferred_blas_library, "cublaslt")):
        default = ask()
        assert str(default).endswith(".Default") and ask(name) is ask() is not default
        assert str(ask()).lower().endswith(name) and ask(default) is default
        for other in ("fastest", 3):
            with pytest.raises(RuntimeError):
                ask(other)
