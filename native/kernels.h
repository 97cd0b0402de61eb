// All kernels of one instruction set. A translation unit sets MISSTEP_ISA (a name), MISSTEP_LEVEL and MISSTEP_WIDTH,
// switches the target on, and includes this file; each set lives in a namespace of its own.
#define MISSTEP_TEXT(name) #name
#define MISSTEP_NAME(name) MISSTEP_TEXT(name)

namespace misstep {
namespace MISSTEP_ISA {
namespace {
#include "lanes.h"
#include "summary.h"
#include "bits.h"
#include "pairs.h"
const Kernels table = {MISSTEP_NAME(MISSTEP_ISA), accumulate, nonfinite, change, compare, exponents, digest};
}  // namespace
}  // namespace MISSTEP_ISA
}  // namespace misstep
