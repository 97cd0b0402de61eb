// Constants that are cheaper to compute once than to spell out: what each float8 code means, and the digest's keys.
#include "common.h"

#include <cmath>

namespace misstep {
namespace {

struct Float8 {
    int exponent_bits, bias;
    bool infinities;  // as IEEE has them; otherwise the top exponent holds ordinary numbers
    bool unsigned_zero;  // "uz": 0x80 is the only NaN and there is no minus zero
};
constexpr Float8 FORMATS[4] = {{4, 7, false, false}, {5, 15, true, false}, {4, 8, false, true}, {5, 16, false, true}};

float decode(const Float8 &format, int code) {
    if (format.unsigned_zero && code == 0x80) return NAN;
    int fraction_bits = 7 - format.exponent_bits, size = code & 127;
    int exponent = size >> fraction_bits, fraction = size & ((1 << fraction_bits) - 1);
    float sign = code & 128 ? -1.0f : 1.0f;
    if (format.infinities && exponent == (1 << format.exponent_bits) - 1) return fraction ? NAN : sign * INFINITY;
    if (!format.infinities && !format.unsigned_zero && size == 127) return NAN;
    if (exponent == 0) return sign * std::ldexp((float)fraction, 1 - format.bias - fraction_bits);
    return sign * std::ldexp((float)(fraction + (1 << fraction_bits)), exponent - format.bias - fraction_bits);
}

struct Tables {
    float values[4][256];
    uint64_t keys[512];
    Tables() {
        for (int format = 0; format < 4; format++)
            for (int code = 0; code < 256; code++) values[format][code] = decode(FORMATS[format], code);
        uint64_t state = 0;
        for (auto &key : keys) {  // SplitMix64
            uint64_t x = state += 0x9e3779b97f4a7c15u;
            x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
            x = (x ^ x >> 27) * 0x94d049bb133111ebu;
            key = x ^ x >> 31;
        }
    }
};
const Tables tables;

}  // namespace

const float *float8_values(int type) { return tables.values[type - F8E4M3]; }
int float8_lowest_exponent(int type) { return 1 - FORMATS[type - F8E4M3].bias; }
const uint64_t *digest_keys() { return tables.keys; }

}  // namespace misstep
