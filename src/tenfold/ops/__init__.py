"""The op table. The families of rows are modules of this package, which load when one of their ops is first
looked up: `contents` knows what each declares."""

from tenfold.base.late import late_imports
from tenfold.ops import contents as _contents
from tenfold.ops.table import OTHERS as _OTHERS, TABLE, Row, find

with late_imports(__name__) as _families:
    from tenfold.ops import (
        activation_gradients as activation_gradients,
        activations as activations,
        addmm as addmm,
        attention as attention,
        batch_normalisation as batch_normalisation,
        bessel as bessel,
        bitwise as bitwise,
        classification_losses as classification_losses,
        collectives as collectives,
        compare as compare,
        contraction as contraction,
        convolution as convolution,
        copies as copies,
        covariance as covariance,
        creation as creation,
        ctc as ctc,
        detection as detection,
        differences as differences,
        dirichlet as dirichlet,
        distance as distance,
        distinct as distinct,
        division as division,
        dropout as dropout,
        einsum as einsum,
        embedding_bags as embedding_bags,
        extremes as extremes,
        factors as factors,
        fake_quantize as fake_quantize,
        fillings as fillings,
        fourier as fourier,
        grids as grids,
        grouped_products as grouped_products,
        hashing as hashing,
        histograms as histograms,
        incomplete_gamma as incomplete_gamma,
        indexing as indexing,
        inner_names as inner_names,
        joining as joining,
        losses as losses,
        margin_losses as margin_losses,
        masks as masks,
        matrix_functions as matrix_functions,
        matrix_norms as matrix_norms,
        max_pooling as max_pooling,
        noisy_relu as noisy_relu,
        normalisation as normalisation,
        padding as padding,
        parts as parts,
        patches as patches,
        pointwise as pointwise,
        polynomials as polynomials,
        pooling as pooling,
        primitives as primitives,
        quantization as quantization,
        random as random,
        recoding as recoding,
        recurrent as recurrent,
        reductions as reductions,
        resampling as resampling,
        rounding as rounding,
        sampling as sampling,
        scans as scans,
        scatter as scatter,
        scripted_names as scripted_names,
        searching as searching,
        segments as segments,
        sequences as sequences,
        shape as shape,
        softmax as softmax,
        solving as solving,
        sorting as sorting,
        special as special,
        spectra as spectra,
        spectrograms as spectrograms,
        splitting as splitting,
        statistics as statistics,
        strided as strided,
        symmetric_factors as symmetric_factors,
        transcendental as transcendental,
        triangles as triangles,
        unpooling as unpooling,
        view_gradients as view_gradients,
        views as views,
        windows as windows,
    )

__getattr__, __dir__, _names = _families.attributes()
__all__ = ["TABLE", "Row", "find"]
FAMILIES = tuple([name for name in _names if name not in __all__])

# What nearly every program uses is loaded at once: its first use is no slower for it.
COMMON = ("contraction", "creation", "pointwise", "reductions", "softmax", "transcendental")

if _contents.recall(TABLE, _OTHERS):
    for _family in COMMON:
        __getattr__(_family)
else:
    with _contents.keeping(TABLE, _OTHERS):
        for _family in FAMILIES:
            __getattr__(_family)
