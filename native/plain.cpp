// The kernels for any machine: 16-byte registers, which every x86-64 (SSE2) and aarch64 (NEON) has.
#include "common.h"
#define MISSTEP_ISA plain
#define MISSTEP_LEVEL 0
#define MISSTEP_WIDTH 16
#include "kernels.h"

namespace misstep {
const Kernels *plain_kernels() { return &plain::table; }
}  // namespace misstep
