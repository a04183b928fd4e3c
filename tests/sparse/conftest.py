"""These tests are about which elements are stored; NumPy computes them without compiling."""

import pytest

import tenfold as tn


@pytest.fixture(autouse=True)
def numpy_engine():
    before = tn.get_engine()
    tn.set_engine("numpy")
    yield
    tn.set_engine(before)
