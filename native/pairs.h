// Two tensors, element by element: `change` (now against before) and `compare` (left against right).
// Both stage 512 elements at a time as doubles and add up in doubles, so that 1 - cosine is meaningful and half
// precision loses nothing. Only pairs of two finite values enter the sums; all others are counted.
//
// Two floats of one type are compared where they lie, 2048 at a time, as long as all of them are finite: then nothing has
// to be masked. A block that is not goes the staged road.

constexpr double LARGEST = 1.7976931348623157e308;

INLINE bool is_complex(int type) { return type == C64 || type == C128; }

static void stage_any(int type, const void *memory, int64_t from, int64_t n, double *to) {
    with_source(type, [&](auto source) {
        using S = decltype(source);
        stage<S>((const typename S::item *)memory + from, n, to);
    });
}

// A register of pairs: how far apart, how large each, and the product for the cosine.
struct Real {
    double a[STAGED], b[STAGED];
    INLINE_MEMBER void read(int64_t i, VD &delta, VD &size_a, VD &size_b, VD &dot) const {
        VD x = load<VD>(a + i), y = load<VD>(b + i);
        VL same = x == y;  // infinities of one sign are no distance apart
        delta = (VD)(~same & (VL)absolute(x - y));
        size_a = absolute(x);
        size_b = absolute(y);
        dot = x * y;
    }
    void fill(const Pairs &pairs, int64_t from, int64_t n, double scale) {
        stage_any(pairs.type_a, pairs.a, from, n, a);
        stage_any(pairs.type_b, pairs.b, from, n, b);
        if (scale != 1)
            for (int64_t i = 0; i < n; i++) a[i] *= scale, b[i] *= scale;
        for (int64_t i = n; i < STAGED; i++) a[i] = b[i] = 0;
    }
    bool equal(int64_t i) const { return a[i] == b[i] || (a[i] != a[i] && b[i] != b[i]); }
};

struct Complex {
    double delta[STAGED], a[STAGED], b[STAGED], product[STAGED];
    using Number = FromComplex<double>::item;
    static Number number(int type, const void *p, int64_t i, double scale) {
        if (type == C128) return {((const Number *)p)[i].re * scale, ((const Number *)p)[i].im * scale};
        auto single = (const FromComplex<float>::item *)p + i;
        return {single->re * scale, single->im * scale};
    }
    INLINE_MEMBER void read(int64_t i, VD &distance, VD &size_a, VD &size_b, VD &dot) const {
        distance = load<VD>(delta + i);
        size_a = load<VD>(a + i);
        size_b = load<VD>(b + i);
        dot = load<VD>(product + i);
    }
    void fill(const Pairs &pairs, int64_t from, int64_t n, double scale) {
        for (int64_t i = 0; i < STAGED; i++) {
            delta[i] = a[i] = b[i] = product[i] = 0;
            if (i >= n) continue;
            Number x = number(pairs.type_a, pairs.a, from + i, scale), y = number(pairs.type_b, pairs.b, from + i, scale);
            Number gap = {x.re == y.re ? 0 : x.re - y.re, x.im == y.im ? 0 : x.im - y.im};
            a[i] = FromComplex<double>::one(&x);
            b[i] = FromComplex<double>::one(&y);
            delta[i] = FromComplex<double>::one(&gap);
            product[i] = x.re * y.re + x.im * y.im;
        }
    }
    bool equal(int64_t i) const { return delta[i] == 0 || (a[i] != a[i] && b[i] != b[i]); }
};

INLINE double largest(VD v) {
    double top = v[0];
    for (int i = 1; i < WD; i++) top = v[i] > top ? v[i] : top;
    return top;
}
INLINE int64_t hits(VL v) {  // a comparison counts -1 for every lane that holds
    int64_t sum = 0;
    for (int i = 0; i < WD; i++) sum -= v[i];
    return sum;
}
INLINE double unscaled(double x, double scale) { return x / scale < LARGEST ? x / scale : LARGEST; }

template <class Staged> static bool change_at(const Pairs &pairs, Change &out, double scale) {
    int64_t finite = 0, within = 0, nan = 0, inf = 0;
    double sum = 0, sum_before = 0, top = 0;
    bool too_large = false;
    const double atol = pairs.atol * scale, rtol = pairs.rtol;
    Staged staged;
    for (int64_t i = 0; i < pairs.count; i += STAGED) {
        int64_t n = pairs.count - i < STAGED ? pairs.count - i : STAGED, padded = (n + WD - 1) / WD * WD;
        staged.fill(pairs, i, n, scale);
        VD deltas = {}, befores = {}, tops = {};
        VL ok = {}, close = {}, nans = {};
        for (int64_t j = 0; j < padded; j += WD) {
            VD delta, size_a, size_b, dot;
            staged.read(j, delta, size_a, size_b, dot);
            VL both = (size_a <= LARGEST) & (size_b <= LARGEST);
            VL unordered = (size_a != size_a) | (size_b != size_b);
            VD d = (VD)((VL)delta & both);
            deltas += d;
            befores += (VD)((VL)size_b & both);
            tops = d > tops ? d : tops;
            ok += both;
            nans += unordered;
            close += (both & (d <= atol + rtol * size_b)) | (~both & ~unordered & (delta == 0.0));
            if (pairs.equal_nan) close += (size_a != size_a) & (size_b != size_b);
        }
        double block = total(deltas) + total(befores);
        if (!(block < 0x1p1000)) too_large = true;
        sum += total(deltas);
        sum_before += total(befores);
        if (largest(tops) > top) top = largest(tops);
        int64_t extra = padded - n, good = hits(ok) - extra, bad = hits(nans);
        finite += good;
        nan += bad;
        inf += n - good - bad;
        within += hits(close) - extra;  // the padding is zeros, and zeros are close to zeros (unless a bound is negative)
    }
    double count = finite ? (double)finite : 1;
    out = {pairs.count, within, nan, inf, unscaled(sum / count, scale), unscaled(top, scale), unscaled(sum_before / count, scale)};
    return !(too_large || sum > 0x1p1010 || sum_before > 0x1p1010);
}

static void change(const Pairs &pairs, Change &out) {
    auto at = is_complex(pairs.type_a) ? change_at<Complex> : change_at<Real>;
    if (!at(pairs, out, 1)) at(pairs, out, 0x1p-600);
}

// Distance in units in the last place: the number of representable values between two bit patterns.
template <class U, U EXPONENT> struct Ulps {
    U top = 0, equal = 0;  // at most STAGED are counted at a time; one width throughout lets the compiler vectorise
    INLINE_MEMBER void add(U a, U b) {
        constexpr U SIGN = (U)(U(1) << (8 * sizeof(U) - 1)), SIZE = (U)(SIGN - 1);
        U x = a & SIZE, y = b & SIZE;
        U larger = x > y ? x : y, smaller = x > y ? y : x;
        U apart = (U)((a ^ b) & SIGN ? larger + smaller : larger - smaller);
        apart = larger >= EXPONENT ? (U)0 : apart;
        top = apart > top ? apart : top;
        equal = (U)(equal + (U)((a == b) | (smaller > EXPONENT)));
    }
};

template <class T> struct Distance {  // integers
    uint64_t top = 0;
    int64_t equal = 0;
    INLINE_MEMBER void add(T a, T b) {
        uint64_t apart = a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
        top = apart > top ? apart : top;
        equal += a == b;
    }
};

template <int TYPE> struct Float8Ulps {
    unsigned top = 0;
    int64_t equal = 0;
    INLINE_MEMBER void add(uint8_t a, uint8_t b) {
        const float *values = float8_values(TYPE);
        float x = values[a], y = values[b];
        equal += a == b || (x != x && y != y);
        if (x - x != 0 || y - y != 0) return;
        unsigned low = a & 127, high = b & 127;
        unsigned apart = ((a ^ b) & 128) ? low + high : low > high ? low - high : high - low;
        top = apart > top ? apart : top;
    }
};

template <class T, class Counter>
static void count_bits(const void *a, const void *b, int64_t n, int64_t &equal, int64_t &max_ulp) {
    Counter counter;
    auto x = (const T *)a, y = (const T *)b;
    for (int64_t i = 0; i < n; i++) counter.add(x[i], y[i]);
    equal += (int64_t)counter.equal;
    int64_t top = counter.top > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)counter.top;
    if (top > max_ulp) max_ulp = top;
}

static bool bits_of_block(const Pairs &pairs, int64_t from, int64_t n, int64_t &equal, int64_t &max_ulp) {
    int type = pairs.type_a;
    const void *a = (const char *)pairs.a + from * ITEM_SIZE[type], *b = (const char *)pairs.b + from * ITEM_SIZE[type];
    if (__builtin_memcmp(a, b, (size_t)(n * ITEM_SIZE[type])) == 0) {
        equal += n;
        return true;
    }
    switch (type) {
        case F64: count_bits<uint64_t, Ulps<uint64_t, 0x7ff0000000000000u>>(a, b, n, equal, max_ulp); return true;
        case F32: count_bits<uint32_t, Ulps<uint32_t, 0x7f800000u>>(a, b, n, equal, max_ulp); return true;
        case F16: count_bits<uint16_t, Ulps<uint16_t, 0x7c00u>>(a, b, n, equal, max_ulp); return true;
        case BF16: count_bits<uint16_t, Ulps<uint16_t, 0x7f80u>>(a, b, n, equal, max_ulp); return true;
        case F8E4M3: count_bits<uint8_t, Float8Ulps<F8E4M3>>(a, b, n, equal, max_ulp); return true;
        case F8E5M2: count_bits<uint8_t, Float8Ulps<F8E5M2>>(a, b, n, equal, max_ulp); return true;
        case F8E4M3FNUZ: count_bits<uint8_t, Float8Ulps<F8E4M3FNUZ>>(a, b, n, equal, max_ulp); return true;
        case F8E5M2FNUZ: count_bits<uint8_t, Float8Ulps<F8E5M2FNUZ>>(a, b, n, equal, max_ulp); return true;
        case I8: count_bits<int8_t, Distance<int8_t>>(a, b, n, equal, max_ulp); return true;
        case I16: count_bits<int16_t, Distance<int16_t>>(a, b, n, equal, max_ulp); return true;
        case I32: count_bits<int32_t, Distance<int32_t>>(a, b, n, equal, max_ulp); return true;
        case I64: count_bits<int64_t, Distance<int64_t>>(a, b, n, equal, max_ulp); return true;
        case U8: case BOOL: count_bits<uint8_t, Distance<uint8_t>>(a, b, n, equal, max_ulp); return true;
        case U16: count_bits<uint16_t, Distance<uint16_t>>(a, b, n, equal, max_ulp); return true;
        case U32: count_bits<uint32_t, Distance<uint32_t>>(a, b, n, equal, max_ulp); return true;
        case U64: count_bits<uint64_t, Distance<uint64_t>>(a, b, n, equal, max_ulp); return true;
        default: return false;  // complex
    }
}

// What a comparison has found so far.
struct Comparing {
    int64_t finite = 0, within = 0, equal = 0, mismatch = 0, first = -1, max_ulp = 0;
    double abs_sum = 0, square_sum = 0, rel_sum = 0, top = 0, top_rel = 0, dot_sum = 0, norm_a = 0, norm_b = 0;
    bool too_large = false;

    void add(VD deltas, VD squares, VD rels, VD tops, VD top_rels, VD dots, VD squares_a, VD squares_b) {
        double block = total(squares) + total(squares_a) + total(squares_b), rel_block = total(rels);
        if (!(block < 0x1p900)) too_large = true;
        abs_sum += total(deltas);
        square_sum += total(squares);
        rel_sum = rel_sum + rel_block < LARGEST ? rel_sum + rel_block : LARGEST;
        norm_a += total(squares_a);
        norm_b += total(squares_b);
        dot_sum += total(dots);
        if (largest(tops) > top) top = largest(tops);
        if (largest(top_rels) > top_rel) top_rel = largest(top_rels);
    }
};

// The bits of two finite blocks: the largest distance, and how many are the same. False when one is not finite.
template <class U, class I, I EXPONENT> static bool finite_bits(const U *a, const U *b, int64_t n, Comparing &out) {
    typedef U V __attribute__((vector_size(MISSTEP_WIDTH)));
    typedef I VS __attribute__((vector_size(MISSTEP_WIDTH)));
    constexpr int64_t W = MISSTEP_WIDTH / sizeof(U);
    constexpr int SIGN = 8 * sizeof(U) - 1;
    constexpr I SIZE = (I)~((U)1 << SIGN);
    VS sizes = {}, same = {};
    V top = {};
    for (int64_t i = 0; i < n; i += W) {
        VS x = load<VS>(a + i), y = load<VS>(b + i);
        VS size_x = x & SIZE, size_y = y & SIZE, minus_x = x >> SIGN, minus_y = y >> SIGN;
        VS larger = size_x > size_y ? size_x : size_y;
        sizes = larger > sizes ? larger : sizes;
        same -= x == y;
        // As two's complement the patterns are in the order of their values, one apart where the values are neighbours.
        x = (size_x ^ minus_x) - minus_x;
        y = (size_y ^ minus_y) - minus_y;
        V apart = x > y ? (V)x - (V)y : (V)y - (V)x;
        top = apart > top ? apart : top;
    }
    int64_t equal = 0;
    U most = 0;
    for (int64_t k = 0; k < W; k++) {
        if (sizes[k] >= EXPONENT) return false;
        equal += (int64_t)same[k];
        most = top[k] > most ? top[k] : most;
    }
    out.equal += equal;
    int64_t ulps = (uint64_t)most > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)most;
    if (ulps > out.max_ulp) out.max_ulp = ulps;
    return true;
}

template <class S> static bool finite_bits_of(const typename S::item *a, const typename S::item *b, int64_t n, Comparing &out) {
    if constexpr (__is_same(S, FromF64)) return finite_bits<uint64_t, int64_t, 0x7ff0000000000000>((const uint64_t *)a, (const uint64_t *)b, n, out);
    else if constexpr (__is_same(S, FromF32)) return finite_bits<uint32_t, int32_t, 0x7f800000>((const uint32_t *)a, (const uint32_t *)b, n, out);
    else if constexpr (__is_same(S, FromF16)) return finite_bits<uint16_t, int16_t, 0x7c00>(a, b, n, out);
    else return finite_bits<uint16_t, int16_t, 0x7f80>(a, b, n, out);
}

// Whether the block was finite and is now part of `out`; `n` is a multiple of two registers' worth of elements.
template <class S> static bool compare_finite(const void *left, const void *right, int64_t n, double rtol, double atol, Comparing &out) {
    using V = typename S::vec;
    constexpr int64_t STEP = 2 * (int64_t)(sizeof(V) / sizeof(typename S::real));
    constexpr int HALVES = sizeof(V) / sizeof(typename S::real) == WD ? 2 : 4;
    auto a = (const typename S::item *)left, b = (const typename S::item *)right;
    const int64_t before = out.equal;
    if (!finite_bits_of<S>(a, b, n, out)) return false;
    // The usual case: most of two runs is the same, and then only the norms are left to be found.
    const bool identical = out.equal - before == n && rtol >= 0 && atol >= 0;
    const VD all_rtol = splat(rtol), all_atol = splat(atol), one = splat(1.0);
    VD deltas = {}, squares = {}, rels = {}, tops = {}, top_rels = {}, dots = {}, squares_a = {}, squares_b = {};
    VL close = {};
    for (int64_t i = 0; i < n; i += STEP) {
        V left_pair[2], right_pair[2];
        S::pair(a + i, left_pair[0], left_pair[1]);
        S::pair(b + i, right_pair[0], right_pair[1]);
        VD xs[HALVES], ys[HALVES];
        if constexpr (HALVES == 2) {
            for (int k = 0; k < 2; k++) xs[k] = left_pair[k], ys[k] = right_pair[k];
        } else {
            for (int k = 0; k < 2; k++) {
                VD halves[2];
                widen(left_pair[k], halves);
                xs[2 * k] = halves[0], xs[2 * k + 1] = halves[1];
                widen(right_pair[k], halves);
                ys[2 * k] = halves[0], ys[2 * k + 1] = halves[1];
            }
        }
        if (identical) {
            for (int k = 0; k < HALVES; k += 2) squares_a += xs[k] * xs[k], squares_b += xs[k + 1] * xs[k + 1];
            continue;
        }
        for (int k = 0; k < HALVES; k++) {
            VD x = xs[k], y = ys[k], d = absolute(x - y), size_b = absolute(y);
            deltas += d;
            squares += d * d;
            squares_a += x * x;
            squares_b += y * y;
            dots += x * y;
            tops = greater(d, tops);
            close += d <= all_atol + all_rtol * size_b;
            VL beside = y != 0.0;  // against a zero the difference is all there is, or nothing
            VD rel = (VD)((VL)(d / size_b) & beside) + (VD)((VL)one & ~beside & (x != 0.0));
            if (sizeof(typename S::real) == 8) rel = rel < LARGEST ? rel : splat(LARGEST);
            rels += rel;
            top_rels = greater(rel, top_rels);
        }
    }
    if (identical) {
        squares_a += squares_b;
        squares_b = dots = squares_a;
    }
    out.add(deltas, squares, rels, tops, top_rels, dots, squares_a, squares_b);
    out.finite += n;
    out.within += identical ? n : hits(close);
    return true;
}

constexpr int64_t FINITE_BLOCK = 2048;  // a multiple of every STEP, and 16-bit lanes can count it

// Blocks that could be compared where they lie; how many elements from `from` on are done with.
static int64_t compare_in_place(const Pairs &pairs, int64_t from, Comparing &out) {
    int type = pairs.type_a;
    if (type != pairs.type_b || type > BF16) return 0;
    int64_t n = pairs.count - from < FINITE_BLOCK ? (pairs.count - from) / (MISSTEP_WIDTH) * (MISSTEP_WIDTH) : FINITE_BLOCK;
    if (n == 0) return 0;
    auto a = (const char *)pairs.a + from * ITEM_SIZE[type], b = (const char *)pairs.b + from * ITEM_SIZE[type];
    bool done = type == F64   ? compare_finite<FromF64>(a, b, n, pairs.rtol, pairs.atol, out)
                : type == F32 ? compare_finite<FromF32>(a, b, n, pairs.rtol, pairs.atol, out)
                : type == F16 ? compare_finite<FromF16>(a, b, n, pairs.rtol, pairs.atol, out)
                              : compare_finite<FromBF16>(a, b, n, pairs.rtol, pairs.atol, out);
    return done ? n : 0;
}

template <class Staged> static void compare_staged(const Pairs &pairs, int64_t i, int64_t n, double scale, bool has_ulp, Staged &staged, Comparing &out) {
    const double atol = pairs.atol * scale, rtol = pairs.rtol;
    int64_t padded = (n + WD - 1) / WD * WD;
    staged.fill(pairs, i, n, scale);
    VD deltas = {}, squares = {}, rels = {}, tops = {}, top_rels = {}, dots = {}, squares_a = {}, squares_b = {};
    VL ok = {}, close = {}, apart = {};
    // Two loops over the staged values: one alone has more running sums than the machine has registers.
    for (int64_t j = 0; j < padded; j += WD) {
        VD delta, size_a, size_b, dot;
        staged.read(j, delta, size_a, size_b, dot);
        VL both = (size_a <= LARGEST) & (size_b <= LARGEST);
        VD d = (VD)((VL)delta & both), x = (VD)((VL)size_a & both), y = (VD)((VL)size_b & both);
        deltas += d;
        squares += d * d;
        squares_a += x * x;
        squares_b += y * y;
        dots += (VD)((VL)dot & both);
        tops = d > tops ? d : tops;
        ok += both;
    }
    for (int64_t j = 0; j < padded; j += WD) {
        VD delta, size_a, size_b, dot;
        staged.read(j, delta, size_a, size_b, dot);
        VL both = (size_a <= LARGEST) & (size_b <= LARGEST);
        VD d = (VD)((VL)delta & both), x = (VD)((VL)size_a & both), y = (VD)((VL)size_b & both);
        VD against = y > 0.0 ? y : x;
        VD rel = d / (against > 0.0 ? against : splat(1.0));
        rel = rel < LARGEST ? rel : splat(LARGEST);
        rels += rel;
        top_rels = rel > top_rels ? rel : top_rels;
        VL known_a = size_a == size_a, known_b = size_b == size_b;
        VL same = ~both & (delta == 0.0) & known_a & known_b;
        close += (both & (d <= atol + rtol * y)) | same;
        apart += ~both & ~same & (known_a | known_b);
    }
    out.add(deltas, squares, rels, tops, top_rels, dots, squares_a, squares_b);
    int64_t extra = padded - n;
    out.finite += hits(ok) - extra;
    out.within += hits(close) - extra;
    out.mismatch += hits(apart);
    if (!has_ulp || !bits_of_block(pairs, i, n, out.equal, out.max_ulp))
        for (int64_t j = 0; j < n; j++) out.equal += staged.equal(j);
}

template <class Staged> static bool compare_at(const Pairs &pairs, Compare &out, double scale) {
    const bool has_ulp = pairs.type_a == pairs.type_b && !is_complex(pairs.type_a);
    Comparing found;
    Staged staged;
    for (int64_t i = 0, n; i < pairs.count; i += n) {
        int64_t before = found.equal;
        n = scale == 1 ? compare_in_place(pairs, i, found) : 0;
        if (n == 0) {
            n = pairs.count - i < STAGED ? pairs.count - i : STAGED;
            compare_staged(pairs, i, n, scale, has_ulp, staged, found);
        }
        if (found.first >= 0 || found.equal - before == n) continue;
        for (int64_t j = 0; j < n && found.first < 0; j++) {
            int64_t alike = 0, ignored = 0;
            if (has_ulp) {
                bits_of_block(pairs, i + j, 1, alike, ignored);
            } else {
                alike = staged.equal(j);
            }
            if (!alike) found.first = i + j;
        }
    }
    double n = found.finite ? (double)found.finite : 1;
    double norm_a = __builtin_sqrt(found.norm_a), norm_b = __builtin_sqrt(found.norm_b);
    double cosine = norm_a > 0 && norm_b > 0 ? found.dot_sum / norm_a / norm_b : norm_a == norm_b ? 1 : 0;
    cosine = cosine > 1 ? 1 : cosine < -1 ? -1 : cosine;
    out = {pairs.count, found.within, found.equal, found.mismatch, found.first, has_ulp ? found.max_ulp : -1,
           unscaled(found.top, scale), unscaled(found.abs_sum / n, scale), found.top_rel, found.rel_sum / n,
           unscaled(__builtin_sqrt(found.square_sum / n), scale), cosine, unscaled(norm_a, scale), unscaled(norm_b, scale)};
    return !found.too_large;
}

static void compare(const Pairs &pairs, Compare &out) {
    auto at = is_complex(pairs.type_a) ? compare_at<Complex> : compare_at<Real>;
    if (!at(pairs, out, 1)) {
        at(pairs, out, 0x1p-600);
    } else if (out.norm_a < 0x1p-450 && out.norm_b < 0x1p-450) {
        at(pairs, out, 0x1p+600);  // squares of such small values vanish
    }
}
