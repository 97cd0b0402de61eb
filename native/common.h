// Includes that must be compiled for the plain machine, before an instruction set is switched on: an inline
// function of the standard library compiled for AVX-512 could otherwise be the copy the linker keeps for everybody.
#include "records.h"

namespace misstep {
const float *float8_values(int type);
int float8_lowest_exponent(int type);
const uint64_t *digest_keys();
}
