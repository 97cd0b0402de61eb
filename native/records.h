// The shapes every kernel agrees on: the names of the element types, the rows written for Python,
// and the table of entry points one instruction set fills in. Nothing here computes.
//
// The rows are mirrored field by field in src/misstep/core/stats.py and src/misstep/kernels/records.py; both are little endian,
// eight bytes a field, without padding.
#pragma once

#include <cstddef>
#include <cstdint>

namespace misstep {

enum Type : int {  // the codes of misstep.core.stats.DTYPE_NAMES
    F64, F32, F16, BF16, F8E4M3, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ,
    I8, I16, I32, I64, U8, U16, U32, U64, BOOL, C64, C128,
    TYPES
};

constexpr int ITEM_SIZE[TYPES] = {8, 4, 2, 2, 1, 1, 1, 1, 1, 2, 4, 8, 1, 2, 4, 8, 1, 8, 16};

struct Summary {
    int64_t count, nan, pos_inf, neg_inf, zeros, negatives, positives;
    double min, max, mean, abs_mean, l2, std;
};

struct Change {
    int64_t count, within, nan, inf;
    double mean_abs, max_abs, mean_abs_before;
};

struct Compare {
    int64_t count, within, equal, nonfinite_mismatch, first_different, max_ulp;
    double max_abs, mean_abs, max_rel, mean_rel, rmse, cosine, norm_a, norm_b;
};

static_assert(sizeof(Summary) == 104 && sizeof(Change) == 56 && sizeof(Compare) == 112, "rows have no padding");

// What has been seen of one tensor so far. Values are multiplied by `scale` (a power of two, nearly always 1)
// before they are added up, so that no finite double can overflow a square.
struct Tally {
    int64_t finite = 0, nan = 0, pos_inf = 0, neg_inf = 0, zeros = 0, negatives = 0;
    double min = __builtin_inf(), max = -__builtin_inf();
    double mean = 0, m2 = 0, abs_sum = 0, square_sum = 0;
    double scale = 1;
    bool shifting = false;  // the mean dwarfs the spread: subtract the mean before squaring
    bool calm = false;      // no zeros lately, and values on both sides of zero: new extremes are rare
    bool restless = false;  // the last calm block had a new extreme all the same
    bool too_large = false; // with this scale the squares would overflow: start again with a smaller one
};

struct Pairs {  // two blocks of memory, element by element
    const void *a, *b;
    int type_a, type_b;
    int64_t count;
    double rtol, atol;
    bool equal_nan;
};

struct Kernels {
    const char *name;
    void (*accumulate)(Tally &, const void *, int64_t count, int type);
    bool (*nonfinite)(const void *, int64_t count, int type);
    void (*change)(const Pairs &, Change &);
    void (*compare)(const Pairs &, Compare &);
    void (*exponents)(const void *, int64_t count, int type, int64_t *bins);
    uint64_t (*digest)(const void *, int64_t bytes);
};

const Kernels *plain_kernels();
#if defined(__x86_64__) && !defined(MISSTEP_PORTABLE)
#define MISSTEP_X86 1
const Kernels *avx2_kernels();
const Kernels *avx512_kernels();
#endif

}  // namespace misstep
