"""Special functions that NumPy lacks, by the formulas that CHLO expands them to; XLA compiles the same ones.

They take arrays of float32 or float64 and compute in that dtype, as XLA does: near a zero of `lgamma` or
`digamma` no more than absolute precision is left of it. Coefficients stand highest power first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tenfold.engines.numpy.functions import exp_by_steps, fused, log, log1p, polynomial, precise
from tenfold.engines.numpy.kernels import Array

ERF_32 = (
    (
        0.00022905065861350646, 0.0034082910107109506, 0.050955695062380861, 0.18520832239976145,
        1.128379143519084,
    ),
    (
        -1.1791602954361697e-7, 0.000023547966471313185, 0.0010179625278914885, 0.014070470171167667,
        0.11098505178285362, 0.49746925110067538, 1,
    ),
)  # fmt: skip
ERF_LAST = np.float32(3.832506856900711)
ERF_64 = (
    (9.6049737398705161, 90.026019720384269, 2232.0053459468431, 7003.3251411280507, 55592.301301039493),
    (1, 33.561714164750313, 521.35794978015269, 4594.3238297098014, 22629.000061389095, 49267.394260863592),
)


def erf(x: Array) -> Array:
    if x.dtype == np.float64:
        return np.where(np.abs(x) < 1, _erf_near_zero(x), 1 - _erfc_far(x))
    x = np.clip(x, -ERF_LAST, ERF_LAST)
    square = x * x
    return x * polynomial(square, ERF_32[0]) / polynomial(square, ERF_32[1])


def _erf_near_zero(x: Array) -> Array:
    square = x * x
    return x * polynomial(square, ERF_64[0]) / polynomial(square, ERF_64[1])


ERFC_64 = (
    (
        2.4619698147353052e-10, 0.56418956483106886, 7.4632105644226989, 48.637197098568137,
        196.5208329560771, 526.44519499547732, 934.52852717195765, 1027.5518868951572, 557.53533536939938,
    ),
    (
        1, 13.228195115474499, 86.707214088598973, 354.93777888781989, 975.70850174320549, 1823.9091668790973,
        2246.3376081871097, 1656.6630919416134, 557.53534081772773,
    ),
    (
        0.56418958354775506, 1.275366707599781, 5.0190504225118051, 6.160210979930536, 7.4097426995044895,
        2.9788666537210022,
    ),
    (
        1, 2.2605286322011726, 9.3960352493800147, 12.048953980809666, 17.081445074756591, 9.6089680906328585,
        3.3690764510008151,
    ),
)  # fmt: skip
ERFC_32 = (
    (
        2.32682e-02, -0.138703942, 0.368742466, -0.582473278, 0.621000468, -0.494451523, 3.40488e-01,
        -0.274112701, 0.563825965,
    ),
    (
        -10.477664, 12.9772, -7.49551868, 2.92101908, -1.01526523, 0.42184633, -0.282076746, 0.564189494,
    ),
    (
        7.85386146e-5, -8.0101937e-4, 0.00518832775, -0.0268538129, 0.112835854, -0.37612626, 1.12837911,
    ),
)  # fmt: skip


def erfc(x: Array) -> Array:
    if x.dtype == np.float64:
        return np.where(np.abs(x) < 1, 1 - _erf_near_zero(x), _erfc_far(x))
    square, size, number = x * x, np.abs(x), np.float32
    inverse = number(1) / square
    tail = np.where(size < number(2), polynomial(inverse, ERFC_32[0]), polynomial(inverse, ERFC_32[1]))
    far = exp_by_steps(-square) * (number(1) / size) * tail
    far = np.where(-square < number(-88.7228394), number(0), far)
    far = np.where(x < 0, number(2) - far, far)
    return np.where(size < 1, number(1) - x * polynomial(square, ERFC_32[2]), far)


def _erfc_far(x: Array) -> Array:
    exponential, size = exp_by_steps(-x * x), np.abs(x)
    middle = exponential * polynomial(size, ERFC_64[0]) / polynomial(size, ERFC_64[1])
    outer = exponential * polynomial(size, ERFC_64[2]) / polynomial(size, ERFC_64[3])
    far = np.where(-x * x < -709.78271289338397, 0.0, np.where(size < 8, middle, outer))
    return np.where(x < 0, 2 - far, far)


ERF_INV_32 = (
    (
        2.81022636e-8, 3.43273939e-7, -3.5233877e-6, -4.39150654e-6, 2.1858087e-4, -0.00125372503,
        -0.00417768164, 0.246640727, 1.50140941,
    ),
    (
        -2.00214257e-4, 1.00950558e-4, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
        0.00943887047, 1.00167406, 2.83297682,
    ),
)  # fmt: skip
ERF_INV_64 = (
    (
        -3.6444120640178197e-21, -1.6850591381820166e-19, 1.28584807152564e-18, 1.1157877678025181e-17,
        -1.3331716628546209e-16, 2.0972767875968562e-17, 6.6376381343583238e-15, -4.0545662729752069e-14,
        -8.1519341976054721e-14, 2.6335093153082323e-12, -1.2975133253453532e-11, -5.4154120542946279e-11,
        1.0512122733215323e-9, -4.1126339803469837e-9, -2.9070369957882005e-8, 4.2347877827932404e-7,
        -1.3654692000834679e-6, -1.3882523362786469e-5, 1.8673420803405714e-4, -7.4070253416626698e-4,
        -0.0060336708714301491, 0.24015818242558962, 1.6536545626831027,
    ),
    (
        2.2137376921775787e-9, 9.075656193888539e-8, -2.7517406297064545e-7, 1.8239629214389228e-8,
        1.5027403968909828e-6, -4.013867526981546e-6, 2.9234449089955446e-6, 1.2475304481671779e-5,
        -4.7318229009055734e-5, 6.8284851459573175e-5, 2.4031110387097894e-5, -3.5503752036284748e-4,
        9.5328937973738049e-4, -0.0016882755560235047, 0.0024914420961078508, -0.0037512085075692412,
        0.0053709145535900636, 1.0052589676941592, 3.0838856104922208,
    ),
    (
        -2.7109920616438573e-11, -2.5556418169965252e-10, 1.5076572693500548e-9, -3.789465440126737e-9,
        7.6157012080783394e-9, -1.496002662714924e-8, 2.9147953450901081e-8, -6.7711997758452339e-8,
        2.2900482228026655e-7, -9.9298272942317003e-7, 4.5260625972231537e-6, -1.9681778105531671e-5,
        7.5995277030017761e-5, -2.1503011930044477e-4, -1.3871931833623122e-4, 1.0103004648645344,
        4.8499064014085844,
    ),
)  # fmt: skip


def erf_inv(x: Array) -> Array:
    """Giles' polynomials in w = -log(1 - x²), by ranges of it."""
    number = x.dtype.type
    w = -log1p(x * -x)
    root = np.sqrt(w)
    if x.dtype == np.float64:
        outer = np.where(w < 16, polynomial(root - 3.25, ERF_INV_64[1]), polynomial(root - 5, ERF_INV_64[2]))
        result = np.where(w < 6.25, polynomial(w - 3.125, ERF_INV_64[0]), outer)
    else:
        inner = polynomial(w - number(2.5), ERF_INV_32[0])
        result = np.where(w < 5, inner, polynomial(root - number(3), ERF_INV_32[1]))
    return np.where(np.abs(x) == 1, x * number(np.inf), result * x)


LANCZOS = (
    676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905,
    -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
)  # fmt: skip
BASE = 0.99999999999980993


def lgamma(x: Array) -> Array:
    """Lanczos' approximation, and Euler's reflection below 1/2."""
    number = x.dtype.type
    half, one = number(0.5), number(1)
    reflected = x < half
    z = np.where(reflected, -x, x - one)
    series = np.full_like(z, BASE)
    for i, coefficient in enumerate(LANCZOS, 1):
        series = series + number(coefficient) / (z + number(i))
    t = number(7.5) + z
    log_t = number(2.0149030205422647) + log1p(z / number(7.5))
    result = fused(z + half - t / log_t, log_t, number(0.91893853320467266)) + log(series)
    size = np.abs(x)
    fraction = size - np.floor(size)
    fraction = np.where(fraction > half, one - fraction, fraction)
    log_sine = log(np.sin(number(np.pi) * fraction))
    below = np.where(np.isfinite(log_sine), number(1.1447298858494002) - log_sine - result, -log_sine)
    return np.where(np.isinf(x), number(np.inf), np.where(reflected, below, result))


def digamma(x: Array) -> Array:
    """The derivative of lgamma, by the same series."""
    number = x.dtype.type
    reflected = x < number(0.5)
    z = np.where(reflected, -x, x - number(1))
    top, series = np.zeros_like(z), np.full_like(z, BASE)
    for i, lanczo in enumerate(LANCZOS, 1):
        place, coefficient = z + number(i), number(lanczo)
        top = top - coefficient / (place * place)
        series = series + coefficient / place
    log_t = number(2.0149030205422647) + log1p(z / number(7.5))
    result = log_t + top / series - number(7) / (number(7.5) + z)
    angle = number(np.pi) * (x + np.abs(np.floor(x + number(0.5))))
    below = result - number(np.pi) * np.cos(angle) / np.sin(angle)
    pole = (x <= 0) & (x == np.floor(x))
    return np.where(pole, number(np.nan), np.where(reflected, below, result))


power = precise(np.power)
divide = precise(lambda x, y: x / np.sqrt(y))
BERNOULLI = (
    -1.3954464685812522e-19, 5.5090028283602295e-18, -2.1748686985580617e-16, 8.5860620562778452e-15,
    -3.3896802963225832e-13, 1.3382536530684679e-11, -5.2841901386874932e-10, 2.08767569878681e-8,
    -8.2671957671957675e-7, 3.3068783068783071e-5, -0.0013888888888888889,
)  # fmt: skip


def zeta(s: Array, q: Array) -> Array:
    """Hurwitz' zeta function: ten terms of its sum, and Euler's and Maclaurin's formula for the others."""
    number = s.dtype.type
    one = number(1)
    total, place = power(q, -s), q
    for _ in range(9):
        place = place + one
        total = total + power(place, -s)
    place = place + one
    last = power(place, -s)
    inverse = one / (place * place)
    tail = np.zeros_like(place)
    for i, each in enumerate(BERNOULLI):
        step = number(22 - 2 * i)
        tail = (s + step) * (s + (step - one)) * (inverse * (tail + number(each)))
    tail = fused(s / place, number(0.083333333333333329) + tail, number(0.5))
    whole = fused(last, tail, total + last * place / (s - one))
    tiny = np.abs(last) < np.abs(total) * np.finfo(s.dtype).smallest_subnormal
    result = np.where(tiny, total, whole)
    nan, infinity = number(np.nan), number(np.inf)
    result = np.where((s < 1) | ((q <= 0) & (s != np.floor(s))), nan, result)
    even = (s == np.floor(s)) & (np.fmod(s, number(2)) == 0)
    result = np.where((q <= 0) & (q == np.floor(q)), np.where(even, infinity, nan), result)
    return np.where(s == 1, infinity, result)


def polygamma(n: Array, x: Array) -> Array:
    """The n-th derivative of digamma: (-1)^(n+1) n! zeta(n + 1, x)."""
    number = x.dtype.type
    one = number(1)
    sign = number(2) * np.fmod(n, number(2)) - one
    result = sign * exp_by_steps(lgamma(n + one)) * zeta(n + one, x)
    result = np.where(n == 0, digamma(x), result)
    return np.where((n != np.floor(n)) | (n < 0), number(np.nan), result)


I1E_NEAR_32 = (
    9.38153732e-9, -4.44505908e-8, 2.00329481e-7, -8.568720e-07, 3.47025139e-6, -1.32731639e-5, 4.78156508e-5,
    -1.61760821e-4, 5.122860e-04, -0.00151357241, 0.0041564228, -0.0105640851, 0.0247264486, -0.0529459827,
    0.102643661, -0.176416516, 0.252587199,
)  # fmt: skip
I1E_FAR_32 = (
    -3.83538046e-9, -2.63146891e-8, -2.51223611e-7, -3.88256467e-6, -1.10588939e-4, -0.00976109784,
    0.778576254,
)  # fmt: skip
I1E_NEAR_64 = (
    2.7779141127610464e-18, -2.111421214358166e-17, 1.5536319577362005e-16, -1.1055969477353862e-15,
    7.6006842947354077e-15, -5.0421855047279118e-14, 3.2237933659455748e-13, -1.9839743977649436e-12,
    1.1736186298890901e-11, -6.6634897235020271e-11, 3.6255902815521172e-10, -1.8872497517228294e-9,
    9.3815373864957726e-9, -4.4450591287963281e-8, 2.0032947535521353e-7, -8.5687202646954547e-7,
    3.4702513081376785e-6, -1.3273163656039436e-5, 4.7815651075500542e-5, -1.6176081582589674e-4,
    5.1228595616857576e-4, -0.0015135724506312532, 0.0041564229443128882, -0.010564084894626197,
    0.024726449030626516, -0.052945981208094989, 0.10264365868984709, -0.17641651835783406,
    0.25258718644363365,
)  # fmt: skip
I1E_FAR_64 = (
    7.5172963108421052e-18, 4.4143483230717077e-18, -4.6503053684893586e-17, -3.2095259219934238e-17,
    2.9626289976459501e-16, 3.3082023109209285e-16, -1.8803547755107825e-15, -3.8144030724370075e-15,
    1.0420276984128802e-14, 4.272440016711951e-14, -2.1015418427726643e-14, -4.0835511110921974e-13,
    -7.1985517762459084e-13, 2.0356285441470896e-12, 1.4125807436613782e-11, 3.2526035830154884e-11,
    -1.8974958123505413e-11, -5.5897434621965838e-10, -3.835380385964237e-9, -2.6314688468895196e-8,
    -2.5122362378702088e-7, -3.8825648088776906e-6, -1.1058893876262371e-4, -0.0097610974913614687,
    0.7785762350182801,
)  # fmt: skip


def bessel_i1e(x: Array) -> Array:
    """exp(-|x|) times the modified Bessel function I1, by Cephes' Chebyshev series."""
    number, size = x.dtype.type, np.abs(x)
    near, far = (I1E_NEAR_32, I1E_FAR_32) if x.dtype == np.float32 else (I1E_NEAR_64, I1E_FAR_64)
    inner = size * _chebyshev(size * number(0.5) - number(2), near)
    outer = divide(_chebyshev(number(32) / size - number(2), far), size)
    return np.sign(x) * np.where(size <= 8, inner, outer)


def _chebyshev(x: Array, coefficients: Sequence[float]) -> Array:
    """Clenshaw's recurrence."""
    number = x.dtype.type
    b0 = b1 = b2 = np.zeros_like(x)
    for coefficient in coefficients:
        b0, b1, b2 = fused(x, b0, -b1) + number(coefficient), b0, b1
    return (b0 - b2) * number(0.5)
