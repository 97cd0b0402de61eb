// Questions asked of the bits alone: is anything not finite, has this memory changed, which powers of two occur.

// ---- nonfinite: the guard. The largest |bits| of a block against the exponent mask; integers only, so exact. ----

template <class T, T MAGNITUDE, T LIMIT> static bool any_beyond(const T *p, int64_t n) {
    constexpr int64_t W = MISSTEP_WIDTH / sizeof(T);
    typedef T V __attribute__((vector_size(MISSTEP_WIDTH)));
    int64_t i = 0, whole = n - n % (4 * W);
    while (i < whole) {
        int64_t stop = whole - i < 8192 ? whole : i + 8192;
        V top0 = {}, top1 = {}, top2 = {}, top3 = {};
        for (; i < stop; i += 4 * W) {
            V a = load<V>(p + i) & MAGNITUDE, b = load<V>(p + i + W) & MAGNITUDE;
            V c = load<V>(p + i + 2 * W) & MAGNITUDE, d = load<V>(p + i + 3 * W) & MAGNITUDE;
            top0 = a > top0 ? a : top0;
            top1 = b > top1 ? b : top1;
            top2 = c > top2 ? c : top2;
            top3 = d > top3 ? d : top3;
        }
        for (int64_t j = 0; j < W; j++)
            if (top0[j] >= LIMIT || top1[j] >= LIMIT || top2[j] >= LIMIT || top3[j] >= LIMIT) return true;
    }
    for (; i < n; i++)
        if ((p[i] & MAGNITUDE) >= LIMIT) return true;
    return false;
}

static bool nonfinite(const void *p, int64_t n, int type) {
    switch (type) {
        case F64: return any_beyond<int64_t, INT64_MAX, 0x7ff0000000000000>((const int64_t *)p, n);
        case C128: return any_beyond<int64_t, INT64_MAX, 0x7ff0000000000000>((const int64_t *)p, 2 * n);
        case F32: return any_beyond<int32_t, INT32_MAX, 0x7f800000>((const int32_t *)p, n);
        case C64: return any_beyond<int32_t, INT32_MAX, 0x7f800000>((const int32_t *)p, 2 * n);
        case F16: return any_beyond<int16_t, INT16_MAX, 0x7c00>((const int16_t *)p, n);
        case BF16: return any_beyond<int16_t, INT16_MAX, 0x7f80>((const int16_t *)p, n);
        case F8E4M3: return any_beyond<int8_t, INT8_MAX, 0x7f>((const int8_t *)p, n);
        case F8E5M2: return any_beyond<int8_t, INT8_MAX, 0x7c>((const int8_t *)p, n);
        case F8E4M3FNUZ:
        case F8E5M2FNUZ:  // 0x80, the place of minus zero, is their only NaN
            return n > 0 && __builtin_memchr(p, 0x80, (size_t)n) != nullptr;
        default: return false;
    }
}

// ---- digest: 64 bits that say "the same bytes". Not cryptographic. ----
//
// Blocks of 4096 bytes; a 64-bit word w at place j of its block adds lo32(w ^ KEY[j]) * hi32(w ^ KEY[j]) to lane
// j % 8 and itself to the neighbouring lane, then each block is mixed down to 64 bits together with its position, and the
// blocks are added. Every step is associative or per word, so any instruction set and numpy give the same number.

INLINE uint64_t avalanche(uint64_t x) {  // the finalizer of MurmurHash3/SplitMix64: every bit reaches every bit
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

constexpr int64_t DIGEST_BLOCK = 4096;

static uint64_t digest_block(const unsigned char *p, const uint64_t *keys, uint64_t position) {
    constexpr int LANES = 64 / MISSTEP_WIDTH;  // registers that make up the eight lanes
    VQ lanes[LANES] = {};
    for (int64_t i = 0; i < DIGEST_BLOCK; i += 64) {
        for (int r = 0; r < LANES; r++) {
            VQ word = load<VQ>(p + i + r * MISSTEP_WIDTH);
            VQ keyed = word ^ load<VQ>((const unsigned char *)keys + i + r * MISSTEP_WIDTH);
#if MISSTEP_LEVEL == 2
            VQ product = (VQ)_mm256_mul_epu32((__m256i)keyed, _mm256_srli_epi64((__m256i)keyed, 32));
            VQ swapped = (VQ)_mm256_shuffle_epi32((__m256i)word, 0x4e);
#elif MISSTEP_LEVEL == 3
            VQ product = (VQ)_mm512_mul_epu32((__m512i)keyed, _mm512_srli_epi64((__m512i)keyed, 32));
            VQ swapped = (VQ)_mm512_shuffle_epi32((__m512i)word, (_MM_PERM_ENUM)0x4e);
#else
            VQ product = (keyed & 0xffffffffu) * (keyed >> 32);
            VQ swapped;
            for (int k = 0; k < WD; k++) swapped[k] = word[k ^ 1];
#endif
            lanes[r] += product + swapped;
        }
    }
    uint64_t mixed = 0, flat[8];
    __builtin_memcpy(flat, lanes, sizeof flat);
    for (uint64_t k = 0; k < 8; k++) mixed += avalanche(flat[k] + keys[k]);
    return avalanche(mixed ^ (position + 1) * 0x9e3779b97f4a7c15u);
}

static uint64_t digest(const void *memory, int64_t bytes) {
    const uint64_t *keys = digest_keys();
    auto p = (const unsigned char *)memory;
    uint64_t sum = avalanche((uint64_t)bytes + 0x9e3779b97f4a7c15u);
    int64_t whole = bytes / DIGEST_BLOCK;
    for (int64_t i = 0; i < whole; i++) sum += digest_block(p + i * DIGEST_BLOCK, keys, (uint64_t)i);
    int64_t rest = bytes % DIGEST_BLOCK;
    if (rest) {
        unsigned char last[DIGEST_BLOCK] = {};  // zeros after the end; the length is part of the digest
        __builtin_memcpy(last, p + whole * DIGEST_BLOCK, (size_t)rest);
        sum += digest_block(last, keys, (uint64_t)whole);
    }
    return avalanche(sum);
}

// ---- exponents: bins[0..3] zero, subnormal, infinite, NaN; bins[4 + k] values of size 2^(low + k) .. 2^(low + k + 1) ----

template <class T> static int64_t count_equal(const T *p, int64_t n, T mask, T wanted) {
    constexpr int64_t W = MISSTEP_WIDTH / sizeof(T);
    typedef T V __attribute__((vector_size(MISSTEP_WIDTH)));
    V hits = {};
    int64_t i = 0, found = 0;
    for (; i + W <= n; i += W) hits -= (V)((load<V>(p + i) & mask) == wanted);
    for (int64_t k = 0; k < W; k++) found += (int64_t)hits[k];
    for (; i < n; i++) found += (p[i] & mask) == wanted;
    return found;
}

template <class T, int EXPONENT_BITS, int FRACTION_BITS, int SPECIALS>
static void count_exponents(const T *p, int64_t n, int64_t *bins) {
    constexpr int CODES = 1 << EXPONENT_BITS;
    // Neighbours go to different tables: values of a tensor are of about one size, and a count that was just stored takes
    // five cycles to be read again. A double's 2048 codes would crowd the first-level cache in more than two of them.
    constexpr int TABLES = EXPONENT_BITS > 8 ? 2 : 8;
    constexpr int64_t CHUNK = 8192;  // stays in that cache, and lanes of 16 bits can count it
    constexpr T MAGNITUDE = (T)~(T(1) << (8 * sizeof(T) - 1)), INFINITE = (T)((T)(CODES - 1) << FRACTION_BITS);
    uint32_t counts[TABLES][CODES];
    for (int64_t from = 0; from < n; from += CHUNK) {
        const T *q = p + from;
        int64_t few = n - from < CHUNK ? n - from : CHUNK, i = 0;
        __builtin_memset(counts, 0, sizeof counts);
        for (; i + TABLES <= few; i += TABLES)
            for (int k = 0; k < TABLES; k++) counts[k][(int)(q[i + k] >> FRACTION_BITS) & (CODES - 1)]++;
        for (; i < few; i++) counts[0][(int)(q[i] >> FRACTION_BITS) & (CODES - 1)]++;
        for (int k = 1; k < TABLES; k++)
            for (int code = 0; code < CODES; code++) counts[0][code] += counts[k][code];
        for (int code = 1; code < CODES - SPECIALS; code++) bins[3 + code] += counts[0][code];
        if (counts[0][0]) {  // zeros and subnormals, told apart where there are any
            int64_t zeros = count_equal<T>(q, few, MAGNITUDE, 0);
            bins[0] += zeros;
            bins[1] += counts[0][0] - zeros;
        }
        if (SPECIALS && counts[0][CODES - 1]) {
            int64_t infinite = count_equal<T>(q, few, MAGNITUDE, INFINITE);
            bins[2] += infinite;
            bins[3] += counts[0][CODES - 1] - infinite;
        }
    }
}

static void count_float8(const uint8_t *p, int64_t n, int type, int64_t *bins) {
    int64_t counts[256] = {};
    for (int64_t i = 0; i < n; i++) counts[p[i]]++;
    const float *values = float8_values(type);
    int low = float8_lowest_exponent(type);
    for (int code = 0; code < 256; code++) {
        double x = values[code];
        int exponent;
        if (x != x) bins[3] += counts[code];
        else if (x == 0) bins[0] += counts[code];
        else if (x - x != 0) bins[2] += counts[code];
        else if (__builtin_frexp(x, &exponent), exponent - 1 < low) bins[1] += counts[code];
        else bins[4 + exponent - 1 - low] += counts[code];
    }
}

static void exponents(const void *memory, int64_t n, int type, int64_t *bins) {
    switch (type) {
        case F64: return count_exponents<uint64_t, 11, 52, 1>((const uint64_t *)memory, n, bins);
        case F32: return count_exponents<uint32_t, 8, 23, 1>((const uint32_t *)memory, n, bins);
        case F16: return count_exponents<uint16_t, 5, 10, 1>((const uint16_t *)memory, n, bins);
        case BF16: return count_exponents<uint16_t, 8, 7, 1>((const uint16_t *)memory, n, bins);
        case F8E4M3: case F8E5M2: case F8E4M3FNUZ: case F8E5M2FNUZ:
            return count_float8((const uint8_t *)memory, n, type, bins);
        default: break;
    }
    with_source(type, [&](auto source) {
        using S = decltype(source);
        auto p = (const typename S::item *)memory;
        if (type == C64 || type == C128) {  // by magnitude, in the bins of a double
            double values[STAGED];
            for (int64_t i = 0; i < n; i += STAGED) {
                int64_t few = n - i < STAGED ? n - i : STAGED;
                stage<S>(p + i, few, values);
                count_exponents<uint64_t, 11, 52, 1>((const uint64_t *)values, few, bins);
            }
        } else if constexpr (sizeof(typename S::item) <= 8 && !direct<S>) {
            for (int64_t i = 0; i < n; i++) bins[S::one(p + i) != 0 ? 4 : 0]++;  // bool
        } else if constexpr (direct<S>) {
            for (int64_t i = 0; i < n; i++) {
                auto x = p[i];
                uint64_t size = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
                bins[size ? 67 - __builtin_clzll(size) : 0]++;
            }
        }
    });
}
