"""The table of tier 0: for each class of FlatIR ops, what makes the kernel of one of them.

A rule sees the op once, with its types and attributes, and gives a function of arrays. A composite has no
rule: a plan runs its body.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.engines.numpy import arithmetic, functions, movement
from tenfold.engines.numpy.arithmetic import plain
from tenfold.engines.numpy.functions import function, precise
from tenfold.engines.numpy.kernels import KERNELS, Kernel
from tenfold.flat import (
    collectives as c,
    data_ops as d,
    elementwise as e,
    indexed,
    sharding,
    structured as s,
    windows,
)


def late(name: str, wrap: Callable[[Any], Any] = lambda rule: rule) -> Callable[[Any], Kernel]:
    """A rule by its name, from a file that is imported when the first of its ops is met: most programs need
    few of them, and the first result should not wait for the others."""
    module, _, attribute = name.partition(".")
    found: Any = None

    def rule(op: Any) -> Kernel:
        nonlocal found
        if found is None:
            found = wrap(getattr(_imported(module), attribute))
        return found(op)

    return rule


def _imported(module: str) -> Any:
    """The file of this name."""
    match module:
        case "control":
            from tenfold.engines.numpy import control

            return control
        case "conversion":
            from tenfold.engines.numpy import conversion

            return conversion
        case "folds":
            from tenfold.engines.numpy import folds

            return folds
        case "fourier":
            from tenfold.engines.numpy import fourier

            return fourier
        case "indexing":
            from tenfold.engines.numpy import indexing

            return indexing
        case "library_calls":
            from tenfold.engines.numpy import library_calls

            return library_calls
        case "linear_algebra":
            from tenfold.engines.numpy import linear_algebra

            return linear_algebra
        case "ordering":
            from tenfold.engines.numpy import ordering

            return ordering
        case "products":
            from tenfold.engines.numpy import products

            return products
        case "random_bits":
            from tenfold.engines.numpy import random_bits

            return random_bits
        case "special":
            from tenfold.engines.numpy import special

            return special
        case _:
            raise ValueError(f"tier 0 has no kernels in a file {module}.py")


KERNELS.update(
    {
        # Arithmetic, bits, comparison: arithmetic.py
        e.Abs: arithmetic.absolute,
        e.Add: plain(np.add),
        e.And: plain(np.bitwise_and),
        e.Ceil: plain(np.ceil),
        e.Clamp: arithmetic.clamp,
        e.Compare: arithmetic.compare,
        e.Complex: arithmetic.complex_of,
        e.Conj: plain(np.conj),
        e.CountLeadingZeros: arithmetic.count_leading_zeros,
        e.Divide: arithmetic.divide,
        e.Floor: plain(np.floor),
        e.Imag: arithmetic.imag,
        e.IsFinite: arithmetic.is_finite,
        e.Maximum: arithmetic.maximum,
        e.Minimum: arithmetic.minimum,
        e.Multiply: plain(np.multiply),
        e.Negate: plain(np.negative),
        e.NextAfter: arithmetic.next_after,
        e.Not: plain(np.invert),
        e.Or: plain(np.bitwise_or),
        e.Real: arithmetic.real,
        e.Remainder: arithmetic.remainder,
        e.RoundNearestEven: plain(np.rint),
        e.Select: arithmetic.select,
        e.ShiftLeft: arithmetic.shift,
        e.ShiftRightArithmetic: arithmetic.shift,
        e.ShiftRightLogical: arithmetic.shift,
        e.Sign: arithmetic.sign,
        e.Subtract: plain(np.subtract),
        e.Xor: plain(np.bitwise_xor),
        # Elementary functions: functions.py
        e.Acos: function(precise(np.arccos)),
        e.Acosh: function(functions.acosh),
        e.Asin: function(precise(np.arcsin)),
        e.Asinh: function(functions.asinh),
        e.Atan: function(precise(np.arctan)),
        e.Atan2: function(precise(np.arctan2), functions.complex_atan2),
        e.Atanh: function(functions.atanh),
        e.Cbrt: function(precise(np.cbrt)),
        e.Cosh: function(functions.cosh),
        e.Cosine: function(np.cos),
        e.Exponential: function(functions.exp),
        e.ExponentialMinusOne: function(functions.expm1),
        e.Log: function(functions.log),
        e.LogPlusOne: function(functions.log1p),
        e.Logistic: function(functions.logistic),
        e.Power: functions.power,
        e.Rsqrt: function(functions.rsqrt, functions.complex_rsqrt),
        e.Sine: function(np.sin),
        e.Sinh: function(functions.sinh),
        e.Sqrt: function(np.sqrt),
        e.Tan: function(precise(np.tan)),
        e.Tanh: function(functions.tanh),
        # Special functions: special.py
        e.BesselI1e: late("special.bessel_i1e", function),
        e.Digamma: late("special.digamma", function),
        e.Erf: late("special.erf", function),
        e.Erfc: late("special.erfc", function),
        e.ErfInv: late("special.erf_inv", function),
        e.Lgamma: late("special.lgamma", function),
        e.Polygamma: late("special.polygamma", function),
        e.Zeta: late("special.zeta", function),
        # Dtypes and precision: conversion.py
        e.BitcastConvert: late("conversion.bitcast"),
        e.Convert: late("conversion.convert"),
        e.ReducePrecision: late("conversion.reduce_precision"),
        # Data that moves: movement.py
        d.BroadcastInDim: movement.broadcast_in_dim,
        d.Concatenate: movement.concatenate,
        d.Constant: movement.constant,
        d.DynamicSlice: movement.dynamic_slice,
        d.DynamicUpdateSlice: movement.dynamic_update_slice,
        d.Iota: movement.iota,
        d.Pad: movement.pad,
        d.Reshape: movement.reshape,
        d.Reverse: movement.reverse,
        d.Slice: movement.slice_,
        d.Transpose: movement.transpose,
        e.OptimizationBarrier: movement.barrier,
        sharding.ShardingConstraint: movement.barrier,  # one process has one device
        **dict.fromkeys((c.AllReduce, c.AllGather, c.ReduceScatter), movement.barrier),
        **dict.fromkeys((c.AllToAll, c.CollectivePermute), movement.barrier),
        c.PartitionId: late("control.partition_id"),
        c.ManualComputation: late("control.manual_computation"),
        # Computed places: indexing.py
        indexed.Gather: late("indexing.gather"),
        indexed.Scatter: late("indexing.scatter"),
        windows.SelectAndScatter: late("indexing.select_and_scatter"),
        # Folds and products: folds.py, products.py
        s.Reduce: late("folds.reduce"),
        windows.ReduceWindow: late("folds.reduce_window"),
        s.DotGeneral: late("products.dot_general"),
        windows.Convolution: late("products.convolution"),
        # Order: ordering.py
        s.Sort: late("ordering.sort"),
        s.TopK: late("ordering.top_k"),
        # Control flow: control.py
        s.Case: late("control.case"),
        s.Check: late("control.check"),
        s.While: late("control.while_loop"),
        # Libraries: fourier.py, library_calls.py, linear_algebra.py, random_bits.py
        s.Cholesky: late("linear_algebra.cholesky"),
        s.CustomCall: late("library_calls.custom_call"),
        s.Fft: late("fourier.fft"),
        s.RngBitGenerator: late("random_bits.rng_bit_generator"),
        s.TriangularSolve: late("linear_algebra.triangular_solve"),
    }
)
