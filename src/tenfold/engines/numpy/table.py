"""The table of tier 0: for each class of FlatIR ops, what makes the kernel of one of them.

A rule sees the op once, with its types and attributes, and gives a function of arrays. A composite has no
rule: a plan runs its body.
"""

from __future__ import annotations

import numpy as np

from tenfold.engines.numpy import (
    arithmetic,
    control,
    conversion,
    folds,
    fourier,
    functions,
    indexing,
    library_calls,
    linear_algebra,
    movement,
    ordering,
    products,
    random_bits,
    special,
)
from tenfold.engines.numpy.arithmetic import plain
from tenfold.engines.numpy.functions import function, precise
from tenfold.engines.numpy.kernels import KERNELS
from tenfold.flat import data_ops as d
from tenfold.flat import elementwise as e
from tenfold.flat import indexed, windows
from tenfold.flat import structured as s

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
        e.BesselI1e: function(special.bessel_i1e),
        e.Digamma: function(special.digamma),
        e.Erf: function(special.erf),
        e.Erfc: function(special.erfc),
        e.ErfInv: function(special.erf_inv),
        e.Lgamma: function(special.lgamma),
        e.Polygamma: function(special.polygamma),
        e.Zeta: function(special.zeta),
        # Dtypes and precision: conversion.py
        e.BitcastConvert: conversion.bitcast,
        e.Convert: conversion.convert,
        e.ReducePrecision: conversion.reduce_precision,
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
        # Computed places: indexing.py
        indexed.Gather: indexing.gather,
        indexed.Scatter: indexing.scatter,
        windows.SelectAndScatter: indexing.select_and_scatter,
        # Folds and products: folds.py, products.py
        s.Reduce: folds.reduce,
        windows.ReduceWindow: folds.reduce_window,
        s.DotGeneral: products.dot_general,
        windows.Convolution: products.convolution,
        # Order: ordering.py
        s.Sort: ordering.sort,
        s.TopK: ordering.top_k,
        # Control flow: control.py
        s.Case: control.case,
        s.Check: control.check,
        s.While: control.while_loop,
        # Libraries: fourier.py, library_calls.py, linear_algebra.py, random_bits.py
        s.Cholesky: linear_algebra.cholesky,
        s.CustomCall: library_calls.custom_call,
        s.Fft: fourier.fft,
        s.RngBitGenerator: random_bits.rng_bit_generator,
        s.TriangularSolve: linear_algebra.triangular_solve,
    }
)
