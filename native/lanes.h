// A vector of numbers as wide as the machine's registers, and how each element type is read into one.
// Compiled once per instruction set, inside that set's own namespace. GCC/Clang vector types carry the
// arithmetic, so NEON and SSE2 come for free; intrinsics appear only where the compiler misses the instruction.
// MISSTEP_LEVEL: 0 portable, 2 AVX2+FMA+F16C, 3 AVX-512.

typedef float VF __attribute__((vector_size(MISSTEP_WIDTH)));
typedef double VD __attribute__((vector_size(MISSTEP_WIDTH)));
typedef int32_t VI __attribute__((vector_size(MISSTEP_WIDTH)));
typedef uint32_t VU __attribute__((vector_size(MISSTEP_WIDTH)));
typedef int16_t VH __attribute__((vector_size(MISSTEP_WIDTH)));
typedef uint16_t VUH __attribute__((vector_size(MISSTEP_WIDTH)));
typedef int64_t VL __attribute__((vector_size(MISSTEP_WIDTH)));
typedef uint64_t VQ __attribute__((vector_size(MISSTEP_WIDTH)));

#define INLINE static inline __attribute__((always_inline))
#define INLINE_MEMBER inline __attribute__((always_inline))
#define INLINE_LAMBDA __attribute__((always_inline))

constexpr int WF = MISSTEP_WIDTH / 4;  // floats in a register
constexpr int WD = MISSTEP_WIDTH / 8;  // doubles in a register

template <class V> INLINE V load(const void *from) {
    V v;
    __builtin_memcpy(&v, from, sizeof v);  // tensors need not be aligned to a register
    return v;
}

INLINE VF splat(float x) { return x - VF{}; }
INLINE VD splat(double x) { return x - VD{}; }

INLINE VF absolute(VF v) { return (VF)((VI)v & 0x7fffffff); }
INLINE VD absolute(VD v) { return (VD)((VL)v & 0x7fffffffffffffff); }

#if MISSTEP_LEVEL == 2
INLINE VF lesser(VF a, VF b) { return _mm256_min_ps(a, b); }
INLINE VF greater(VF a, VF b) { return _mm256_max_ps(a, b); }
INLINE VD lesser(VD a, VD b) { return _mm256_min_pd(a, b); }
INLINE VD greater(VD a, VD b) { return _mm256_max_pd(a, b); }
INLINE unsigned sign_bits(VF v) { return (unsigned)_mm256_movemask_ps(v); }
INLINE unsigned sign_bits(VD v) { return (unsigned)_mm256_movemask_pd(v); }
INLINE unsigned sign_bits(VH v) { return (unsigned)_mm256_movemask_epi8((__m256i)v) & 0xaaaaaaaau; }  // of 32 bytes
#elif MISSTEP_LEVEL == 3
INLINE VF lesser(VF a, VF b) { return _mm512_min_ps(a, b); }
INLINE VF greater(VF a, VF b) { return _mm512_max_ps(a, b); }
INLINE VD lesser(VD a, VD b) { return _mm512_min_pd(a, b); }
INLINE VD greater(VD a, VD b) { return _mm512_max_pd(a, b); }
INLINE unsigned sign_bits(VF v) { return (unsigned)_mm512_movepi32_mask((__m512i)v); }
INLINE unsigned sign_bits(VD v) { return (unsigned)_mm512_movepi64_mask((__m512i)v); }
INLINE unsigned sign_bits(VH v) { return (unsigned)_mm512_movepi16_mask((__m512i)v); }
#else
INLINE VF lesser(VF a, VF b) { return a < b ? a : b; }
INLINE VF greater(VF a, VF b) { return a > b ? a : b; }
INLINE VD lesser(VD a, VD b) { return a < b ? a : b; }
INLINE VD greater(VD a, VD b) { return a > b ? a : b; }
#endif

// Of two absolute values. As integers: the same order, on other ports than the arithmetic, and a NaN is larger than all.
#if MISSTEP_LEVEL == 2
INLINE VF smaller_size(VF a, VF b) { return (VF)_mm256_min_epi32((__m256i)a, (__m256i)b); }
INLINE VF larger_size(VF a, VF b) { return (VF)_mm256_max_epi32((__m256i)a, (__m256i)b); }
INLINE VH smaller_size(VH a, VH b) { return (VH)_mm256_min_epi16((__m256i)a, (__m256i)b); }
INLINE VH larger_size(VH a, VH b) { return (VH)_mm256_max_epi16((__m256i)a, (__m256i)b); }
#else
INLINE VH smaller_size(VH a, VH b) { return a < b ? a : b; }
INLINE VH larger_size(VH a, VH b) { return a > b ? a : b; }
INLINE VF smaller_size(VF a, VF b) { return lesser(a, b); }
INLINE VF larger_size(VF a, VF b) { return greater(a, b); }
#endif
INLINE VD smaller_size(VD a, VD b) { return lesser(a, b); }  // no such instruction for 64 bits before AVX-512
INLINE VD larger_size(VD a, VD b) { return greater(a, b); }

INLINE void widen(VF v, VD (&to)[2]) {  // left to itself the compiler goes through memory
#if MISSTEP_LEVEL == 2
    to[0] = _mm256_cvtps_pd(_mm256_castps256_ps128(v));
    to[1] = _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
#elif MISSTEP_LEVEL == 3
    to[0] = _mm512_cvtps_pd(_mm512_castps512_ps256(v));
    to[1] = _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1));
#else
    for (int i = 0; i < WD; i++) to[0][i] = v[i], to[1][i] = v[WD + i];
#endif
}

// How many sign bits were set. With a mask register this runs beside the arithmetic, on other ports.
#if MISSTEP_LEVEL >= 2
struct Signs {
    int64_t total = 0;
    template <class V> INLINE_MEMBER void add(V a, V b) {
        total += __builtin_popcountll(sign_bits(a) | (uint64_t)sign_bits(b) << (sizeof(V) / sizeof(a[0])));
    }
    INLINE_MEMBER void add(VH halves) { total += __builtin_popcount(sign_bits(halves)); }
    int64_t count() const { return total; }
};
#else
struct Signs {
    VUH halves = {};  // a block of 4096 does not overflow them
    VU singles = {};
    VQ doubles = {};
    INLINE_MEMBER void add(VF a, VF b) { singles += ((VU)a >> 31) + ((VU)b >> 31); }
    INLINE_MEMBER void add(VD a, VD b) { doubles += ((VQ)a >> 63) + ((VQ)b >> 63); }
    INLINE_MEMBER void add(VH both) { halves += (VUH)both >> 15; }
    int64_t count() const {
        int64_t total = 0;
        for (int i = 0; i < 2 * WF; i++) total += halves[i];
        for (int i = 0; i < WF; i++) total += singles[i];
        for (int i = 0; i < WD; i++) total += (int64_t)doubles[i];
        return total;
    }
};
#endif

// ---- element types: `pair` reads 2 registers' worth (in any order), `one` reads a single element ----

struct FromF32 {
    using item = float; using real = float; using vec = VF;
    INLINE_MEMBER static void pair(const item *p, VF &a, VF &b) { a = load<VF>(p); b = load<VF>(p + WF); }
    static double one(const item *p) { return *p; }
};

struct FromF64 {
    using item = double; using real = double; using vec = VD;
    INLINE_MEMBER static void pair(const item *p, VD &a, VD &b) { a = load<VD>(p); b = load<VD>(p + WD); }
    static double one(const item *p) { return *p; }
};

struct FromBF16 {
    using item = uint16_t; using real = float; using vec = VF;
    INLINE_MEMBER static void pair(const item *p, VF &a, VF &b) {
        VU both = load<VU>(p);  // even elements in the low halves, odd ones in the high halves
        a = (VF)(both << 16);
        b = (VF)(both & 0xffff0000u);
    }
    static double one(const item *p) {
        uint32_t bits = (uint32_t)*p << 16;
        float x;
        __builtin_memcpy(&x, &bits, 4);
        return x;
    }
};

INLINE VF half_to_float(VU h) {
    // Shifting the half's bits into place leaves its exponent 112 too small; a multiplication repairs it, subnormals too.
    VU magnitude = (h & 0x7fff) << 13;
    VF value = (VF)magnitude * 0x1p112f;
    VU special = (VU)((VI)(h & 0x7c00) == 0x7c00);
    VU bits = ((VU)value & ~special) | ((magnitude | 0x7f800000u) & special);
    return (VF)(bits | (h & 0x8000) << 16);
}

struct FromF16 {
    using item = uint16_t; using real = float; using vec = VF;
#if MISSTEP_LEVEL == 2
    INLINE_MEMBER static void pair(const item *p, VF &a, VF &b) {
        a = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
        b = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 8)));
    }
#elif MISSTEP_LEVEL == 3
    INLINE_MEMBER static void pair(const item *p, VF &a, VF &b) {
        a = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
        b = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(p + 16)));
    }
#else
    INLINE_MEMBER static void pair(const item *p, VF &a, VF &b) {
        VU both = load<VU>(p);
        a = half_to_float(both & 0xffff);
        b = half_to_float(both >> 16);
    }
#endif
    static double one(const item *p) {
        uint32_t bits = (uint32_t)(*p & 0x7fff) << 13;
        float size;
        __builtin_memcpy(&size, &bits, 4);
        size *= 0x1p112f;
        uint32_t repaired;
        __builtin_memcpy(&repaired, &size, 4);
        repaired = bits >= 0x0f800000u ? bits | 0x7f800000u : repaired;
        repaired |= (uint32_t)(*p & 0x8000) << 16;
        __builtin_memcpy(&size, &repaired, 4);
        return size;
    }
};

// Small integers are exact in a float, larger ones (up to 2^53) in a double.
template <class V, class T> INLINE V read_integers(const T *p) {
    constexpr int W = sizeof(V) / sizeof(V{}[0]);
    typedef T Few __attribute__((vector_size(sizeof(T) * W)));
#if MISSTEP_LEVEL == 2  // the compiler spells these conversions out element by element
    if constexpr (sizeof(T) == 1) {
        __m128i few = _mm_loadl_epi64((const __m128i *)p);
        return _mm256_cvtepi32_ps(T(-1) < T(0) ? _mm256_cvtepi8_epi32(few) : _mm256_cvtepu8_epi32(few));
    } else if constexpr (sizeof(T) == 2) {
        __m128i few = _mm_loadu_si128((const __m128i *)p);
        return _mm256_cvtepi32_ps(T(-1) < T(0) ? _mm256_cvtepi16_epi32(few) : _mm256_cvtepu16_epi32(few));
    }
#elif MISSTEP_LEVEL == 3
    if constexpr (sizeof(T) == 1) {
        __m128i few = _mm_loadu_si128((const __m128i *)p);
        return _mm512_cvtepi32_ps(T(-1) < T(0) ? _mm512_cvtepi8_epi32(few) : _mm512_cvtepu8_epi32(few));
    } else if constexpr (sizeof(T) == 2) {
        __m256i few = _mm256_loadu_si256((const __m256i *)p);
        return _mm512_cvtepi32_ps(T(-1) < T(0) ? _mm512_cvtepi16_epi32(few) : _mm512_cvtepu16_epi32(few));
    }
#endif
    if constexpr (sizeof(T) <= 2) {
        VI wide;
        for (int i = 0; i < W; i++) wide[i] = p[i];
        return __builtin_convertvector(wide, V);
    } else {
        return __builtin_convertvector(load<Few>(p), V);
    }
}

template <class T, class R, class V> struct FromInteger {
    using item = T; using real = R; using vec = V;
    INLINE_MEMBER static void pair(const item *p, V &a, V &b) {
        a = read_integers<V>(p);
        b = read_integers<V>(p + sizeof(V) / sizeof(R));
    }
    static double one(const item *p) { return (double)*p; }
};

// float8: 256 values, looked up. The table is filled when the module loads (module.cpp).
template <int TYPE> struct FromF8 {
    using item = uint8_t;
    static double one(const item *p) { return float8_values(TYPE)[*p]; }
};

// A complex number is judged by its magnitude; a NaN in either part wins over an infinity in the other.
template <class T> struct FromComplex {
    struct item { T re, im; };
    static double one(const item *p) {
        double re = __builtin_fabs((double)p->re), im = __builtin_fabs((double)p->im);
        if (re != re || im != im) return __builtin_nan("");
        if (sizeof(T) == 4) return __builtin_sqrt(re * re + im * im);
        double big = re > im ? re : im;
        if (big > 0x1p1000) {  // the magnitude of two huge parts may itself be too large for a double
            double size = __builtin_hypot(re, im);
            return size > 1.7976931348623157e308 && big <= 1.7976931348623157e308 ? 1.7976931348623157e308 : size;
        }
        return __builtin_hypot(re, im);
    }
};

struct FromBool {
    using item = uint8_t;
    static double one(const item *p) { return *p != 0; }
};

template <class F> static auto with_source(int type, F &&work) {
    switch (type) {
        case F64: return work(FromF64{});
        case F32: return work(FromF32{});
        case F16: return work(FromF16{});
        case BF16: return work(FromBF16{});
        case F8E4M3: return work(FromF8<F8E4M3>{});
        case F8E5M2: return work(FromF8<F8E5M2>{});
        case F8E4M3FNUZ: return work(FromF8<F8E4M3FNUZ>{});
        case F8E5M2FNUZ: return work(FromF8<F8E5M2FNUZ>{});
        case I8: return work(FromInteger<int8_t, float, VF>{});
        case I16: return work(FromInteger<int16_t, float, VF>{});
        case I32: return work(FromInteger<int32_t, double, VD>{});
        case I64: return work(FromInteger<int64_t, double, VD>{});
        case U8: return work(FromInteger<uint8_t, float, VF>{});
        case U16: return work(FromInteger<uint16_t, float, VF>{});
        case U32: return work(FromInteger<uint32_t, double, VD>{});
        case U64: return work(FromInteger<uint64_t, double, VD>{});
        case C64: return work(FromComplex<float>{});
        case C128: return work(FromComplex<double>{});
        default: return work(FromBool{});
    }
}

// Whether a source can be read straight into registers; the others are staged through a small buffer.
template <class S, class = void> constexpr bool direct = false;
template <class S> constexpr bool direct<S, decltype((void)sizeof(typename S::vec))> = true;

// Elements as doubles, in order: the road for everything that is not the hot path.
template <class S> INLINE void stage_as(S, const typename S::item *p, int64_t n, double *to) {
    for (int64_t i = 0; i < n; i++) to[i] = S::one(p + i);
}
template <int TYPE> INLINE void stage_as(FromF8<TYPE>, const uint8_t *p, int64_t n, double *to) {
    const float *values = float8_values(TYPE);
    for (int64_t i = 0; i < n; i++) to[i] = values[p[i]];
}
#if MISSTEP_LEVEL >= 2
INLINE void stage_as(FromF16, const uint16_t *p, int64_t n, double *to) {
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        _mm256_storeu_pd(to + i, _mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)(p + i)))));
    for (; i < n; i++) to[i] = FromF16::one(p + i);
}
#endif
template <class S> INLINE void stage(const typename S::item *p, int64_t n, double *to) { stage_as(S{}, p, n, to); }
