// The kernels for machines with AVX2, FMA and F16C (x86 since about 2013).
#include "common.h"
#ifdef MISSTEP_X86
#include <immintrin.h>
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,popcnt,bmi,bmi2,lzcnt"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c,popcnt,bmi,bmi2,lzcnt")
#endif
#define MISSTEP_ISA avx2
#define MISSTEP_LEVEL 2
#define MISSTEP_WIDTH 32
#include "kernels.h"
#ifdef __clang__
#pragma clang attribute pop
#endif

namespace misstep {
const Kernels *avx2_kernels() { return &avx2::table; }
}  // namespace misstep
#endif
