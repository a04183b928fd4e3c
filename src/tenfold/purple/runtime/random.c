/* Purple's own random numbers, the same whether a program is compiled or interpreted: SplitMix64 counted from the seed,
   uniform numbers of 53 bits, and the normal distribution by Box and Muller. */
#include "purple_all.h"

static uint64_t state;

uint64_t pu_next_word(void) {
    uint64_t word = state += 0x9E3779B97F4A7C15ull;
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ull;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBull;
    return word ^ (word >> 31);
}

double pu_next_uniform(void) { return (double)(pu_next_word() >> 11) * 0x1p-53; }

/* Two at a time. */
void pu_next_normals(double *first, double *second) {
    double one = pu_next_uniform(), two = pu_next_uniform();
    double radius = sqrt(-2.0 * log(1.0 - one)), angle = 2.0 * 3.141592653589793 * two;
    *first = radius * cos(angle);
    *second = radius * sin(angle);
}

Value pu_manual_seed(Value seed) {
    int64_t start;
    if (!pu_take_int("manual-seed", seed, &start)) return PU_FAILURE;
    state = (uint64_t)start;
    return PU_UNSPECIFIED;
}

Value pu_random(Value below) {
    double drawn = pu_next_uniform();
    if (below == PU_ABSENT) return pu_of_float(drawn);
    int64_t n;
    if (!pu_take_int("random", below, &n)) return PU_FAILURE;
    if (n <= 0) return pu_fail("index", "random: %lld is not above 0", (long long)n);
    double scaled = drawn * (double)n;
    return pu_of_int(scaled < (double)n ? (int64_t)scaled : n - 1);
}
