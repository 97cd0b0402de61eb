// The portable kernels against plain loops, as a program without Python: for machines the tests cannot run on.
//     make native-aarch64        cross-compiles it and runs it under qemu
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "layout.h"

using namespace misstep;

static int wrong = 0;
static void check(const char *what, int64_t n, double got, double want, double tolerance) {
    if (std::fabs(got - want) <= tolerance * std::fabs(want)) return;
    std::printf("%s of %lld: %.17g, not %.17g\n", what, (long long)n, got, want);
    wrong = 1;
}

int main() {
    const Kernels *kernels = plain_kernels();
    uint64_t state = 88172645463325252u;
    auto next = [&] { return state ^= state << 13, state ^= state >> 7, state ^= state << 17; };
    for (int64_t n : {1, 7, 33, 1000, 4096, 9001}) {
        std::vector<float> a((size_t)n), b;
        for (auto &x : a) x = (float)((int64_t)(next() >> 40) - (1 << 23)) * 1e-6f;
        a[(size_t)n / 2] = -0.0f;
        b = a;
        double sum = 0, sizes = 0, squares = 0;
        int64_t negatives = 0, zeros = 0, other = 0;
        for (size_t i = 0; i < a.size(); i++) {
            sum += a[i], sizes += std::fabs(a[i]), squares += (double)a[i] * a[i];
            negatives += a[i] < 0, zeros += a[i] == 0;
            if (i % 3 == 1) b[i] = std::nextafter(b[i], 100.0f), other++;
        }
        Summary found;
        summarize(F32, n, 1, found, [&](Tally &tally) { kernels->accumulate(tally, a.data(), n, F32); });
        check("negatives", n, (double)found.negatives, (double)negatives, 0);
        check("zeros", n, (double)found.zeros, (double)zeros, 0);
        check("mean", n, found.mean + sizes, sum / (double)n + sizes, 1e-6);
        check("abs_mean", n, found.abs_mean, sizes / (double)n, 1e-6);
        check("l2", n, found.l2, std::sqrt(squares), 1e-6);
        Compare pair;
        kernels->compare({a.data(), b.data(), F32, F32, n, 1e-5, 1e-8, false}, pair);
        check("equal", n, (double)pair.equal, (double)(n - other), 0);
        check("max_ulp", n, (double)pair.max_ulp, other ? 1 : 0, 0);
        std::vector<int64_t> bins(258);
        kernels->exponents(a.data(), n, F32, bins.data());
        check("zeros of the histogram", n, (double)bins[0], (double)zeros, 0);
    }
    unsigned char bytes[10000];
    for (int i = 0; i < 10000; i++) bytes[i] = (unsigned char)(i * i >> 3);
    // The digest is part of the file format: the same number everywhere.
    uint64_t digest = kernels->digest(bytes, sizeof bytes);
    if (digest != 0xbcefb0aecefe9613u) std::printf("digest %016llx\n", (unsigned long long)digest), wrong = 1;
    std::puts(wrong ? "the kernels are wrong here" : "the kernels are right here");
    return wrong;
}
