// One tensor in one pass. A block of 4096 elements is summed as if every value were finite and tame; the sum of
// squares then tells whether that was true. A NaN, an infinity, an overflow or an underflow shows there, and only
// such a block is done again, carefully, while it is still in the first-level cache:
//
//     run<LEAN or FULL>  ──tame──▶ merge   run<SHIFTED>  ──tame──▶ merge
//         │ mean dwarfs the spread ───────────▲   │
//         └─ not finite, too large, too small ────┴──▶ careful: two passes in double
//
// Single-precision lanes add at most 32 sums of four before they are moved into doubles, which keeps a sum within about
// 1e-6 of the exact one even when every rounding goes the same way.

constexpr int64_t BLOCK = 4096;
constexpr int64_t STAGED = 512;
constexpr int64_t AHEAD = 2048;  // bytes asked for in advance: worth a fifth on tensors larger than the cache

struct Partial {
    double sum, abs_sum, square_sum;  // of x - shift, |x|, (x - shift)^2
    double min, max;
    int64_t zeros, signs;
};

INLINE double total(VD v) {
    double lanes[WD];
    __builtin_memcpy(lanes, &v, sizeof v);
    for (int half = WD / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lanes[i] += lanes[i + half];
    return lanes[0];
}

// Sums in doubles, whatever the lanes are: `flush` moves single-precision lanes over before they lose digits.
template <class V> struct Sums;
template <> struct Sums<VF> {
    static constexpr int64_t CHAIN = 32;
    VD low = {}, high = {};
    INLINE_MEMBER void flush(VF lanes) {
        VD halves[2];
        widen(lanes, halves);
        low += halves[0];
        high += halves[1];
    }
    double value() const { return total(low + high); }
};
template <> struct Sums<VD> {
    static constexpr int64_t CHAIN = BLOCK;
    VD all = {};
    INLINE_MEMBER void flush(VD lanes) { all += lanes; }
    double value() const { return total(all); }
};

// LEAN leaves out what a calm tensor does not need: it watches the smallest and largest |x| instead of counting zeros and
// tracking both extremes. Nothing new can be in a block without a zero and inside the extremes already known.
enum Mode { LEAN, FULL, SHIFTED };

template <class S> struct Lean {
    using V = typename S::vec;
    V low, high;
    Signs signs;
    INLINE_MEMBER void begin(const typename S::item *p) {
        V unused;
        S::pair(p, low, unused);
        low = high = absolute(low);
    }
    INLINE_MEMBER void add(const typename S::item *, V a, V b, V size_a, V size_b) {
        signs.add(a, b);
        low = smaller_size(size_b, smaller_size(size_a, low));
        high = larger_size(size_b, larger_size(size_a, high));
    }
    void finish(Partial &out) const {
        typename S::real smallest = low[0], largest = high[0];
        for (size_t i = 0; i < sizeof(V) / sizeof(smallest); i++) {
            smallest = low[i] < smallest ? low[i] : smallest;
            largest = high[i] > largest || high[i] != high[i] ? high[i] : largest;
        }
        out.min = smallest, out.max = largest, out.signs = signs.count();
    }
};

// Halves are looked at before they are widened: twice as many to a register.
template <class S> struct LeanHalves {
    VH low, high;
    Signs signs;
    INLINE_MEMBER void begin(const uint16_t *p) { low = high = load<VH>(p) & 0x7fff; }
    INLINE_MEMBER void add(const uint16_t *p, VF, VF, VF, VF) {
        VH both = load<VH>(p), size = both & 0x7fff;
        signs.add(both);
        low = smaller_size(size, low);
        high = larger_size(size, high);
    }
    void finish(Partial &out) const {
        uint16_t smallest = (uint16_t)low[0], largest = (uint16_t)high[0];
        for (size_t i = 0; i < sizeof(VH) / 2; i++) {
            smallest = (uint16_t)low[i] < smallest ? (uint16_t)low[i] : smallest;
            largest = (uint16_t)high[i] > largest ? (uint16_t)high[i] : largest;
        }
        out.min = S::one(&smallest), out.max = S::one(&largest), out.signs = signs.count();
    }
};
template <> struct Lean<FromF16> : LeanHalves<FromF16> {};
template <> struct Lean<FromBF16> : LeanHalves<FromBF16> {};

template <class S, Mode MODE> static Partial run(const typename S::item *p, int64_t n, typename S::real shift) {
    using V = typename S::vec;
    using R = typename S::real;
    using Bits = decltype(V{} == V{});
    constexpr int64_t W = sizeof(V) / sizeof(R);
    const V middle = splat(shift);
    V low, high, unused;
    S::pair(p, low, unused);
    high = low;
    Bits zeros = {};
    Signs signs;
    Lean<S> lean;
    if (MODE == LEAN) lean.begin(p);
    Sums<V> sums, abs_sums, squares;
    for (int64_t i = 0; i < n;) {
        int64_t stop = i + Sums<V>::CHAIN * 4 * W;
        if (stop > n) stop = n;
        V sum = {}, abs_sum = {}, square0 = {}, square1 = {}, square2 = {}, square3 = {};
        auto take = [&](int64_t at, V &pair_sum, V &pair_abs, V &square_a, V &square_b) INLINE_LAMBDA {
            V a, b;
            S::pair(p + at, a, b);
            for (int64_t line = 0; line < 2 * W * (int64_t)sizeof(*p); line += 64)
                __builtin_prefetch((const char *)(p + at) + line + AHEAD);
            V size_a = absolute(a), size_b = absolute(b);
            if (MODE == LEAN) {
                lean.add(p + at, a, b, size_a, size_b);
            } else {
                signs.add(a, b);
                low = lesser(b, lesser(a, low));
                high = greater(b, greater(a, high));
                zeros += ((Bits)size_a == 0) + ((Bits)size_b == 0);  // each hit adds -1
            }
            pair_abs = size_a + size_b;
            if (MODE == SHIFTED) {
                a -= middle;
                b -= middle;
            }
            pair_sum = a + b;
            square_a += a * a;
            square_b += b * b;
        };
        V sum0, sum1, abs0, abs1;
        for (; i + 4 * W <= stop; i += 4 * W) {
            take(i, sum0, abs0, square0, square1);
            // Four independent chains hide the latency of a multiply-add; the fuller loops have no registers to spare.
            if (MODE == LEAN) take(i + 2 * W, sum1, abs1, square2, square3);
            else take(i + 2 * W, sum1, abs1, square0, square1);
            sum += sum0 + sum1;
            abs_sum += abs0 + abs1;
        }
        if (i < stop) {
            take(i, sum0, abs0, square0, square1);
            sum += sum0;
            abs_sum += abs0;
            i += 2 * W;
        }
        sums.flush(sum);
        abs_sums.flush(abs_sum);
        squares.flush((square0 + square1) + (square2 + square3));
    }
    Partial out = {sums.value(), abs_sums.value(), squares.value(), 0, 0, 0, signs.count()};
    if (MODE == LEAN) {
        lean.finish(out);
        return out;
    }
    R smallest = low[0], largest = high[0];
    for (int64_t i = 0; i < W; i++) {
        out.zeros -= zeros[i];
        smallest = low[i] < smallest ? low[i] : smallest;
        largest = high[i] > largest ? high[i] : largest;
    }
    out.min = smallest;
    out.max = largest;
    return out;
}

INLINE void merge(Tally &t, double n, double mean, double m2, double abs_sum, double square_sum) {
    double all = (double)t.finite + n, delta = mean - t.mean;
    t.m2 += m2 + delta * delta * ((double)t.finite * n / all);
    t.mean += delta * (n / all);
    t.abs_sum += abs_sum;
    t.square_sum += square_sum;
    t.finite += (int64_t)n;
}

// At most STAGED values, any of which may be NaN, infinite, huge or subnormal.
static void careful(Tally &t, const double *values, int64_t count) {
    constexpr double HUGE_VALUE = 0x1p450;  // squares of anything smaller cannot overflow over 2^60 elements
    constexpr double LARGEST = 1.7976931348623157e308;
    double kept[STAGED + WD];
    VL nan = {}, pos_inf = {}, neg_inf = {}, zeros = {}, negatives = {}, finite = {};
    VD sum = {}, abs_sum = {}, low = splat(__builtin_inf()), high = splat(-__builtin_inf());
    double padded[STAGED + WD];
    int64_t padding = (WD - count % WD) % WD;
    for (int64_t i = 0; i < count; i++) padded[i] = values[i];
    for (int64_t i = 0; i < padding; i++) padded[count + i] = __builtin_nan("");  // counted, then taken back below
    for (int64_t i = 0; i < count; i += WD) {
        VD x = load<VD>(padded + i), size = absolute(x);
        VL is_finite = size <= LARGEST;
        nan -= x != x;
        pos_inf -= x > LARGEST;
        neg_inf -= x < -LARGEST;
        zeros -= ((VL)size == 0);
        negatives -= (x < 0.0) & is_finite;
        finite -= is_finite;
        low = is_finite & (x < low) ? x : low;
        high = is_finite & (x > high) ? x : high;
        VD y = (VD)((VL)x & is_finite) * t.scale;
        __builtin_memcpy(kept + i, &y, sizeof y);
        sum += y;
        abs_sum += absolute(y);
    }
    int64_t n = 0;
    for (int i = 0; i < WD; i++) {
        n += finite[i];
        t.nan += nan[i];
        t.pos_inf += pos_inf[i];
        t.neg_inf += neg_inf[i];
        t.zeros += zeros[i];
        t.negatives += negatives[i];
        if (low[i] < t.min) t.min = low[i];
        if (high[i] > t.max) t.max = high[i];
    }
    t.nan -= padding;
    if (n == 0) return;
    if (!(total(abs_sum) < HUGE_VALUE)) {
        t.too_large = true;
        return;
    }
    double mean = total(sum) / (double)n;
    VD m2 = {};
    for (int64_t i = 0; i < count; i += WD) {
        VD distance = load<VD>(kept + i) - mean;
        VL is_finite = absolute(load<VD>(padded + i)) <= LARGEST;
        distance = (VD)((VL)distance & is_finite);
        m2 += distance * distance;
    }
    double spread = total(m2);
    merge(t, (double)n, mean, spread, total(abs_sum), spread + (double)n * mean * mean);
}

template <class S> static void careful_from(Tally &t, const typename S::item *p, int64_t n) {
    double values[STAGED];
    for (int64_t i = 0; i < n && !t.too_large; i += STAGED) {
        int64_t few = n - i < STAGED ? n - i : STAGED;
        stage<S>(p + i, few, values);
        careful(t, values, few);
    }
}

template <class S> static int64_t negative_zeros(const typename S::item *p, int64_t n) {
    using V = typename S::vec;
    using Bits = decltype(V{} == V{});
    constexpr int64_t W = sizeof(V) / sizeof(typename S::real);
    const Bits minus_zero = (Bits)(-V{});
    Bits hits = {};
    for (int64_t i = 0; i < n; i += 2 * W) {
        V a, b;
        S::pair(p + i, a, b);
        hits += ((Bits)a == minus_zero) + ((Bits)b == minus_zero);
    }
    int64_t found = 0;
    for (int64_t i = 0; i < W; i++) found -= hits[i];
    return found;
}

template <class S> static void extremes(const typename S::item *p, int64_t n, Partial &out) {
    using V = typename S::vec;
    constexpr int64_t W = sizeof(V) / sizeof(typename S::real);
    V low, high, low2, high2;
    S::pair(p, low, low2);
    high = low, high2 = low2;
    for (int64_t i = 0; i < n; i += 2 * W) {
        V a, b;
        S::pair(p + i, a, b);
        low = lesser(a, low), low2 = lesser(b, low2);
        high = greater(a, high), high2 = greater(b, high2);
    }
    low = lesser(low, low2), high = greater(high, high2);
    out.min = low[0], out.max = high[0];
    for (int64_t i = 1; i < W; i++) {
        out.min = low[i] < out.min ? low[i] : out.min;
        out.max = high[i] > out.max ? high[i] : out.max;
    }
}

template <class S> static void block(Tally &t, const typename S::item *p, int64_t n) {
    using R = typename S::real;
    constexpr bool SINGLE = sizeof(R) == 4;
    // Below LOW squares begin to vanish, above HIGH they could overflow once many blocks are added.
    constexpr double LOW = SINGLE ? 0x1p-96 : 0x1p-900, HIGH = SINGLE ? 0x1p120 : 0x1p900;
    constexpr double LOW_SHIFT = SINGLE ? 0x1p-60 : 0x1p-900;
    // Var = E[x^2] - E[x]^2 keeps its digits while the difference is at least this share of the first term.
    constexpr double SHARE = 0.2;
    if (t.scale != 1) return careful_from<S>(t, p, n);
    double count = (double)n, spread = 0, mean = 0, squares = 0, shift = 0;
    Partial part;
    bool shifted = t.shifting, good = true, lean = false, keep_extremes = false;
    if (shifted) {
        mean = t.mean;
    } else {
        if (t.calm) {
            part = run<S, LEAN>(p, n, 0);
            lean = part.min > 0;
            bool inside = part.max <= -t.min && part.max <= t.max;
            if (lean && !inside) extremes<S>(p, n, part);
            keep_extremes = lean && inside;
            t.calm = lean && (inside || !t.restless);
            t.restless = !inside;
        }
        if (!lean) {
            part = run<S, FULL>(p, n, 0);
            double low = part.min < t.min ? part.min : t.min, high = part.max > t.max ? part.max : t.max;
            t.calm = part.zeros == 0 && -low < 2 * high && high < -2 * low;  // about as far on either side of zero
        }
        mean = part.sum / count;
        squares = part.square_sum;
        spread = squares - part.sum * mean;
        good = squares > LOW ? squares < HIGH : squares == 0 && part.max == 0 && part.min == 0;  // NaN is none of these
        shifted = good && spread < SHARE * squares;
    }
    for (int attempt = 0; good && shifted && attempt < 2; attempt++) {
        shift = (R)mean;
        part = run<S, SHIFTED>(p, n, (R)shift);
        keep_extremes = false;
        double offset = part.sum / count;
        mean = shift + offset;
        spread = part.square_sum - part.sum * offset;
        good = part.square_sum < HIGH && shift * shift > LOW_SHIFT && shift * shift < HIGH;
        shifted = spread < SHARE * part.square_sum;  // the shift missed this block's mean: once more with the right one
        squares = spread + count * mean * mean;
        t.shifting = shift * shift * count > spread;
    }
    if (!good || shifted) {
        t.shifting = false;
        return careful_from<S>(t, p, n);
    }
    if (part.zeros && part.signs) part.signs -= negative_zeros<S>(p, n);
    t.zeros += part.zeros;
    t.negatives += part.signs;
    if (!keep_extremes && part.min < t.min) t.min = part.min;
    if (!keep_extremes && part.max > t.max) t.max = part.max;
    merge(t, count, mean, spread > 0 ? spread : 0, part.abs_sum, squares);
}

template <class S> static void accumulate_direct(Tally &t, const typename S::item *p, int64_t n) {
    constexpr int64_t STEP = 2 * (int64_t)(sizeof(typename S::vec) / sizeof(typename S::real));
    int64_t i = 0, whole = n - n % STEP;
    for (; i < whole && !t.too_large; i += BLOCK) block<S>(t, p + i, whole - i < BLOCK ? whole - i : BLOCK);
    if (whole < n && !t.too_large) careful_from<S>(t, p + whole, n - whole);
}

static void accumulate_bools(Tally &t, const uint8_t *p, int64_t n) {
    int64_t ones = 0;
    for (int64_t i = 0; i < n; i += 128) {
        uint8_t few = 0;
        int64_t stop = n - i < 128 ? n : i + 128;
        for (int64_t j = i; j < stop; j++) few += p[j] != 0;
        ones += few;
    }
    int64_t zeros = n - ones;
    t.zeros += zeros;
    if (zeros && 0 < t.min) t.min = 0;
    if (ones && 1 < t.min) t.min = 1;
    if (zeros && 0 > t.max) t.max = 0;
    if (ones && 1 > t.max) t.max = 1;
    double share = (double)ones / (double)n;
    merge(t, (double)n, share, share * (double)zeros, (double)ones, (double)ones);
}

static void accumulate(Tally &t, const void *memory, int64_t n, int type) {
    if (n <= 0) return;
    if (type == BOOL) return accumulate_bools(t, (const uint8_t *)memory, n);
    with_source(type, [&](auto source) {
        using S = decltype(source);
        auto p = (const typename S::item *)memory;
        if constexpr (direct<S>) {
            accumulate_direct<S>(t, p, n);
        } else {
            double values[BLOCK];
            for (int64_t i = 0; i < n && !t.too_large; i += BLOCK) {
                int64_t few = n - i < BLOCK ? n - i : BLOCK;
                stage<S>(p + i, few, values);
                accumulate_direct<FromF64>(t, values, few);
            }
        }
    });
}
