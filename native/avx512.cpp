// The kernels for machines with AVX-512 F, BW, DQ and VL (server x86 since about 2017).
#include "common.h"
#ifdef MISSTEP_X86
#ifndef __clang__
// GCC's own header starts from deliberately undefined registers and then warns about them.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,popcnt,bmi,bmi2,lzcnt"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,popcnt,bmi,bmi2,lzcnt")
#endif
#define MISSTEP_ISA avx512
#define MISSTEP_LEVEL 3
#define MISSTEP_WIDTH 64
#include "kernels.h"
#ifdef __clang__
#pragma clang attribute pop
#endif

namespace misstep {
const Kernels *avx512_kernels() { return &avx512::table; }
}  // namespace misstep
#endif
