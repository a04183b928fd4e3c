"""Docstrings of functions from the table: their parts, and that their examples run."""

import inspect
import pydoc
import types

import pytest

import tenfold as tn
from tenfold.ops.table import OTHERS, TABLE
from tenfold.tensor import Tensor
from tenfold.tensor.documentation import Docstring


def examples(docstring):
    return [line.partition(">>> ")[2] for line in docstring.splitlines() if line.startswith("    >>> tn.")]


def documented():
    """The functions of the table in their modules, by address."""
    modules = {"tn": tn, "tn.linalg": tn.linalg, "tn.fft": tn.fft, "tn.special": tn.special}
    modules["tn.nn.functional"] = tn.nn.functional
    for address, module in modules.items():
        for name, each in sorted(vars(module).items()):
            if isinstance(each, types.FunctionType) and isinstance(each.__doc__, Docstring):
                yield f"{address}.{name}", each


def test_help_shows_meaning_signature_schema_and_an_example_with_shapes():
    shown = pydoc.render_doc(tn.softmax, renderer=pydoc.plaintext)
    assert "exp(self) / sum(exp(self)) along a dimension" in shown
    assert "softmax(input: Tensor, dim: int, dtype: dtype | None = None" in shown
    assert "aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor" in shown
    assert "tn.softmax(tn.rand(3, 4), 0)  # f32[3,4] -> f32[3,4]" in shown


def test_every_row_says_what_it_computes():
    """By its lowering's docstring or the fact `meaning`. Other tests declare rows of their own."""
    rows = [row for ops in (TABLE, *OTHERS.values()) for overloads in ops.values() for row in overloads]
    silent = [str(row) for row in rows if row.is_own and not row.doc]
    assert len(rows) > 1000 and silent == []


def test_help_tells_what_each_overload_computes():
    shown = inspect.getdoc(tn.max)
    assert "The largest element; NaN if there is one." in shown
    assert "The larger of each pair of elements." in shown
    assert "The largest element along a dimension and its first place" in shown


def test_rows_of_one_lowering_may_differ_in_meaning():
    assert "through which no gradient flows" in inspect.getdoc(Tensor.detach)
    assert "row-major order" in inspect.getdoc(Tensor.contiguous)


def test_methods_and_submodules_show_calls_of_their_own():
    assert "tn.rand(3, 4).softmax(0)" in inspect.getdoc(Tensor.softmax)
    assert "tn.linalg.qr(" in inspect.getdoc(tn.linalg.qr)


def test_reading_a_docstring_draws_and_computes_nothing():
    state = tn.get_rng_state().tolist()
    for name in ("dropout", "rand", "sort", "nonzero"):
        inspect.getdoc(getattr(tn, name))
    assert tn.get_rng_state().tolist() == state


def test_nearly_every_function_has_an_example():
    functions = list(documented())
    without = [name for name, each in functions if not examples(each.__doc__)]
    assert len(functions) > 600 and len(without) < len(functions) / 12, without


@pytest.mark.slow
def test_every_example_runs_and_gives_the_types_that_it_tells():
    wrong, results = [], []
    for name, each in documented():
        for line in examples(each.__doc__):
            code, _, told = line.partition("  # ")
            result = eval(code, {"tn": tn, "inf": float("inf"), "nan": float("nan")})
            results += result if isinstance(result, tuple) else [result]
            if isinstance(result, Tensor) and str(result.current().type) != told.rpartition("-> ")[2]:
                wrong.append(f"{name}: {line}: {result.current().type}")
    tensors = [each for each in results if isinstance(each, Tensor)]
    for start in range(0, len(tensors), 50):  # many share one program: what takes time is compiling
        tn.eval(*tensors[start : start + 50])
    assert wrong == []


def test_a_docstring_that_is_written_when_it_is_read_is_searched_too():
    text = tn.softmax.__doc__
    assert "softmax" in text and str(text)[5:20] in text
    assert "no such words" not in text
    assert 3 not in text
