"""Functions whose Python signature is not an ATen schema's: evaluation, questions about dtypes, and the
wrappers that PyTorch writes in Python around its operators. Tensors from data: `interchange.py`; from others:
`conversions.py`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.base import dtypes
from tenfold.base.dtypes import DType, as_dtype
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError, located
from tenfold.base.size import Size
from tenfold.flat import build
from tenfold.ops.numbers import of_number, require_width
from tenfold.runtime import evaluate
from tenfold.tensor import Tensor
from tenfold.tensor.conversions import METHODS, convert
from tenfold.tensor.dispatch import aten, into
from tenfold.tensor.overriding import hand_over, overriding
from tenfold.tensor.symbolic import Symbolic
from tenfold.trace.context import context


def _several(tensors: tuple[Any, ...]) -> Sequence[Tensor]:
    """Tensors given one by one or as one sequence."""
    return tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors


# Evaluation


@located
def eval_(*tensors: Any) -> None:
    """Compute tensors now, as one program. Arguments may be lists, tuples and dicts of tensors."""
    found: list[Tensor] = []
    _gather(tensors, found)
    if context.recorder is not None:
        for each in found:
            each.eval()
    evaluate.evaluate([each.current() for each in found])


def _gather(item: Any, found: list[Tensor]) -> None:
    if isinstance(item, Tensor):
        found.append(item)
    elif isinstance(item, (list, tuple)):
        for each in item:
            _gather(each, found)
    elif isinstance(item, dict):
        for each in item.values():
            _gather(each, found)
    elif item is not None:
        raise ArgumentError(f"takes tensors and containers of tensors, not {type(item).__name__}")


# Questions


def _assert(condition: Any, message: str) -> Any:
    """Python's assert as a function, which a graph that is traced keeps."""
    found = overriding((condition,)) if context.heeds else []
    if found and not isinstance(condition, Tensor):
        return hand_over(_assert, (condition, message), {}, found)
    if not condition:
        raise AssertionError(message)


_assert.__module__ = "tenfold"  # by this name graphs call it


def _check(cond: Any, message: Callable[[], str] | None = None) -> None:
    """Raise RuntimeError with the message that the function gives, if the condition is false."""
    _check_with(RuntimeError, cond, message)


def _check_with(error_type: type[Exception], cond: Any, message: Callable[[], str] | None = None) -> None:
    if not isinstance(cond, (bool, np.bool_, Symbolic)):
        raise ArgumentError(
            f"the condition is a bool, not {type(cond).__name__}",
            help="use torch._check_tensor_all for all elements of a tensor",
        )
    if type(cond) is Symbolic:
        cond.assume()
    elif not cond:
        raise error_type("Expected cond to be True, but got False." if message is None else str(message()))


def _check_index(cond: Any, message: Callable[[], str] | None = None) -> None:
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Callable[[], str] | None = None) -> None:
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Callable[[], str] | None = None) -> None:
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Callable[[], str] | None = None) -> None:
    _check_with(NotImplementedError, cond, message)


def _check_tensor_all(cond: Tensor, message: Callable[[], str] | None = None) -> None:
    """Raise RuntimeError if an element of the tensor is false."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _check_tensor_all_with(
    error_type: type[Exception], cond: Tensor, message: Callable[[], str] | None = None
) -> None:
    if not isinstance(cond, Tensor):
        raise ArgumentError(f"cond is a tensor, not a {type(cond).__name__}", help="use torch._check")
    _check_with(error_type, bool(cond.all()), message)


def _check_is_size(i: Any, message: Callable[[], str] | None = None, *, max: int | None = None) -> None:
    """Raise RuntimeError if the number is no size, or is larger than `max`."""
    if type(i) is Symbolic:
        i.promise(0, max)
        return
    _check_with(RuntimeError, i >= 0 and (max is None or i <= max), message)


def _assert_async(condition: Tensor, message: str = "Expected Tensor with all nonzero values") -> None:
    """Raise RuntimeError if the tensor's one element is zero. It is looked at now."""
    _check_with(RuntimeError, bool(condition), lambda: message)


def is_tensor(obj: Any) -> bool:
    return isinstance(obj, Tensor)


def require_tensor(argument: Any) -> Tensor:
    if not isinstance(argument, Tensor):
        raise ArgumentError(f"takes a Tensor, not {type(argument).__name__}", help="use tenfold.tensor")
    return argument


@located
def numel(input: Tensor) -> int:
    return require_tensor(input).numel()


@located
def is_floating_point(input: Tensor) -> bool:
    return require_tensor(input).is_floating_point()


@located
def is_complex(input: Tensor) -> bool:
    return require_tensor(input).is_complex()


@located
def is_signed(input: Tensor) -> bool:
    return require_tensor(input).is_signed()


@located
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape."""
    return require_tensor(input).shape == require_tensor(other).shape


@located
def promote_types(type1: DType, type2: DType) -> DType:
    """The smallest dtype that holds both, by PyTorch's lattice; an error where PyTorch has none."""
    return dtypes.promote_types(as_dtype(type1), as_dtype(type2))


@located
def can_cast(from_: DType, to: DType) -> bool:
    """Whether a result of dtype `from_` may be stored as `to`: the kind of `to` must not be lower."""
    return dtypes.can_cast(as_dtype(from_), as_dtype(to))


@located
def result_type(tensor1: Any, tensor2: Any) -> DType:
    """The dtype in which an operator computes on two tensors or numbers."""
    return dtypes.result_type([_operand(each) for each in (tensor1, tensor2)])


def _operand(each: Any) -> tuple[DType, dtypes.Category]:
    if isinstance(each, Tensor):
        return each.dtype, "tensor" if each.ndim else "scalar"
    require_width("Scalar", each)
    return of_number(each), "number"


@located
def broadcast_shapes(*shapes: int | Sequence[int]) -> Size:
    """The shape to which all of these shapes broadcast."""
    if not all(isinstance(each, (int, Sequence)) for each in shapes):
        raise ArgumentError(f"shapes are ints, or tuples or lists of ints, unlike those of {shapes}")
    as_tuples = [(each,) if isinstance(each, int) else tuple(each) for each in shapes]
    if any(extent < 0 for shape in as_tuples for extent in shape):
        raise ShapeError(f"a shape has no negative extents: {as_tuples}")
    return Size(build.broadcast_shapes(*as_tuples))


# Wrappers around operators


@located
def split(tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Split a tensor along a dimension into views of equal size, or of the given sizes."""
    return require_tensor(tensor).split(split_size_or_sections, dim)


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Broadcast tensors to one shape, as views."""
    given = _several(tensors)
    stretched = aten("broadcast_tensors")(given)
    return tuple([each.expand(one.shape) for each, one in zip(given, stretched, strict=True)])


def meshgrid(*tensors: Tensor, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinate grids of one-dimensional tensors, as views of them."""
    given = _several(tensors)
    grids = aten("meshgrid")(given, indexing=indexing)
    varies = [1, 0, *range(2, len(given))] if indexing == "xy" and len(given) > 1 else range(len(given))
    return tuple(
        [
            each.reshape([-1 if dim == i else 1 for i in range(len(given))]).expand(grid.shape)
            for each, dim, grid in zip(given, varies, grids, strict=True)
        ]
    )


def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with the given matrices along its diagonal and zeros elsewhere."""
    if not tensors:
        return aten("zeros")((1, 0))
    return aten("block_diag")(_several(tensors))


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of one element from each of the one-dimensional tensors, one in each row."""
    return aten("cartesian_prod")(_several(tensors))


def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """The product of matrices, in the cheapest order of multiplications."""
    several = _several(matrices)
    product = aten("chain_matmul")(several)
    return product if out is None else into(out, product, casts=len(several) == 1)


def _at_least(name: str) -> Callable[..., Any]:
    least = int(name[-2])

    def one(x: Tensor) -> Tensor:
        """The tensor itself where it has the dimensions, else a view of it."""
        return x if x.ndim >= least else x.reshape(aten(name)(x).shape)

    def call(*tensors: Any) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            return one(tensors[0])
        given = _several(tensors)
        aten(name)(given)  # refuses what are no tensors
        return tuple(map(one, given))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Each tensor with at least {least} dimensions."
    return call


atleast_1d, atleast_2d, atleast_3d = map(_at_least, ("atleast_1d", "atleast_2d", "atleast_3d"))


@located
def einsum(*args: Any) -> Tensor:
    """Einstein's sums of products: einsum("ij,jk->ik", a, b), or einsum(a, [0, 1], b, [1, 2], [0, 2])."""
    if not args:
        raise ArgumentError("takes an equation and operands")
    if isinstance(args[0], str):
        several = tuple(_several(args[1:]))
        found = overriding(several) if context.heeds else []
        if found or context.modes:  # types and graphs see the operands one by one
            return hand_over(einsum, (args[0], *several), {}, found)
        return aten("einsum")(args[0], several)
    operands, labels = args[: len(args) // 2 * 2 : 2], args[1::2]
    texts = [_subscripts(each) for each in labels]
    result = f"->{_subscripts(args[-1])}" if len(args) % 2 else ""
    return aten("einsum")(",".join(texts) + result, operands)


einsum.__torch_overridable__ = True  # type: ignore[attr-defined]

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _subscripts(labels: Sequence[Any]) -> str:
    if not isinstance(labels, (list, tuple)) or any(e is not Ellipsis and not 0 <= e < 52 for e in labels):
        raise ArgumentError(f"the dimensions of an operand are a list of 0 to 51 and ..., not {labels!r}")
    return "".join(["..." if each is Ellipsis else _LETTERS[each] for each in labels])


@located
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """The sum of products over dimensions of both: the last `dims` of a and the first of b, or two lists of
    dimensions."""
    a, b = require_tensor(a), require_tensor(b)
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise ArgumentError(f"{dims} dimensions cannot be summed over {a.ndim} and {b.ndim}")
        left, right = tuple(range(a.ndim - dims, a.ndim)), tuple(range(dims))
    elif isinstance(dims, (list, tuple)) and len(dims) == 2:
        left, right = ((each,) if isinstance(each, int) else tuple(each) for each in dims)
    else:
        raise ArgumentError(f"dims is a number of dimensions or two lists of them, not {dims!r}")
    result = aten("tensordot")(a, b, left, right)
    return result if out is None else into(out, result)


_CDIST_MODES = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": 1,
    "donot_use_mm_for_euclid_dist": 2,
}


@located
def cdist(
    x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """The p-norm distance between every row of x1 and every row of x2."""
    if compute_mode not in _CDIST_MODES:
        raise ArgumentError(
            f"unknown compute_mode {compute_mode!r}", help=f"one of {', '.join(_CDIST_MODES)}"
        )
    return aten("cdist")(x1, x2, p, _CDIST_MODES[compute_mode])


@located
def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: DType | None = None,
) -> Tensor:
    """The p-norm of all elements or along dimensions; "fro" means 2, and "nuc" the sum of the singular
    values."""
    dims = (dim,) if isinstance(dim, int) else None if dim is None else tuple(dim)
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise ArgumentError(f"unknown norm {p!r}", help='a number, "fro" or "nuc"')
    if p == "nuc":
        result = aten("linalg_matrix_norm")(
            input, "nuc", (-2, -1) if dims is None else dims, keepdim, dtype=dtype
        )
    else:
        order = 2 if p in (None, "fro") else p
        result = aten("linalg_vector_norm")(input, order, dims, keepdim, dtype=dtype)
    return result if out is None else into(out, result)


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements, or slices along a dimension; optionally with inverse indices and counts."""
    if dim is None:
        found = aten("_unique2")(input, sorted, return_inverse, return_counts)
    else:
        found = aten("unique_dim")(input, dim, sorted, return_inverse, return_counts)
    return _chosen(found, return_inverse, return_counts)


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements, or slices, without consecutive repetitions."""
    found = aten("unique_consecutive")(input, return_inverse, return_counts, dim)
    return _chosen(found, return_inverse, return_counts)


def _chosen(found: Sequence[Tensor], inverse: bool, counts: bool) -> Any:
    values, where, how_often = found
    chosen = (values, *([where] if inverse else []), *([how_often] if counts else []))
    return chosen if len(chosen) > 1 else values


@located
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Convert flat indices into a tensor of this shape to coordinates."""
    extents = (shape,) if isinstance(shape, int) else shape
    if not isinstance(extents, (list, tuple)) or not all(isinstance(n, int) and n >= 0 for n in extents):
        raise ArgumentError(f"the shape is made of ints that are not negative, not {shape!r}")
    if require_tensor(indices).dtype.kind != "int":
        raise DTypeError(f"indices are integers, not {indices.dtype.name}")
    places = convert(indices, dtypes.int64, indices.device)
    return tuple([places // math.prod(extents[i + 1 :]) % each for i, each in enumerate(extents)])


# Fillings whose operators have other names, or no default


def normal_(self: Tensor, mean: float = 0, std: float = 1, *, generator: Any = None) -> Tensor:
    """Fill with normal draws."""
    self.assign(aten("normal_functional")(self, mean, std, generator=generator).current())
    return self


def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Fill with 1 with probability p, and with 0 otherwise."""
    self.assign(aten("bernoulli")(self, p, generator=generator).current())
    return self


@located
def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Fill the main diagonal. With `wrap`, the diagonal of a tall matrix starts again after one row without
    it."""
    if self.ndim < 2 or (self.ndim > 2 and len(set(self.shape)) > 1):
        raise ShapeError(f"takes a matrix, or more dimensions of one size, not {self._value.type}")
    rows, *others = (
        aten("arange")(extent, device=self.device).reshape([-1] + [1] * (self.ndim - 1 - dim))
        for dim, extent in enumerate(self.shape)
    )
    period = self.shape[1] + 1
    on = [(each - rows) % period == 0 if wrap else each == rows for each in others]
    return self.masked_fill_(functools.reduce(Tensor.__and__, on), fill_value)


def install() -> None:
    """Give Tensor the methods that are declared here."""
    own = {
        "norm": norm, "unique": unique, "unique_consecutive": unique_consecutive,
        "normal_": normal_, "bernoulli_": bernoulli_, "fill_diagonal_": fill_diagonal_,
        "is_same_size": is_same_size,
    }  # fmt: skip
    for name, declared in (METHODS | own).items():
        setattr(Tensor, name, declared)
