// From a shape and strides to as few runs of memory as possible, and from a tally to the row Python reads.
//
//     expanded (stride 0) axes     counted once, multiplied afterwards
//     reversed (negative) axes     start at their other end: no statistic depends on the order
//     transposed, channels last…   axes sorted by stride and joined: dense in *some* order is one block
//     the rest                     rows, or elements gathered through a buffer that fits the first-level cache
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "records.h"

namespace misstep {

struct Axis { int64_t size, stride; };

struct Layout {
    const char *start;
    std::vector<Axis> axes;  // largest stride first, none of size 1, none that could be joined
    int64_t repeats = 1, count = 1;  // logical elements = repeats * count

    Layout(const void *address, const std::vector<Axis> &given, int item) : start((const char *)address) {
        for (Axis axis : given) {
            if (axis.size == 0) count = 0;
            if (axis.size <= 1) continue;
            if (axis.stride == 0) { repeats *= axis.size; continue; }
            if (axis.stride < 0) {
                start += axis.stride * (axis.size - 1) * item;
                axis.stride = -axis.stride;
            }
            axes.push_back(axis);
            count *= axis.size;
        }
        std::stable_sort(axes.begin(), axes.end(), [](Axis a, Axis b) { return a.stride > b.stride; });
        for (size_t i = axes.size(); i-- > 1;)
            if (axes[i - 1].stride == axes[i].stride * axes[i].size) {
                axes[i - 1] = {axes[i - 1].size * axes[i].size, axes[i].stride};
                axes.erase(axes.begin() + (long)i);
            }
    }

    template <class F> void for_each_run(int item, F &&work) const {
        if (count == 0) return;
        if (axes.empty()) return work(start, (int64_t)1);
        Axis inner = axes.back();
        if (axes.size() == 1 && inner.stride == 1) return work(start, inner.size);
        constexpr int64_t LONG_ROW = 1024, BUFFER = 32768;
        bool rows = inner.stride == 1 && inner.size >= LONG_ROW;
        alignas(64) char buffer[BUFFER];
        int64_t room = BUFFER / item, used = 0;
        std::vector<int64_t> at(axes.size(), 0);
        for (const char *row = start;;) {
            if (rows) {
                work(row, inner.size);
            } else {
                for (int64_t i = 0; i < inner.size;) {
                    int64_t few = std::min(room - used, inner.size - i);
                    gather(buffer + used * item, row + i * inner.stride * item, few, inner.stride, item);
                    i += few;
                    used += few;
                    if (used == room) work(buffer, used), used = 0;
                }
            }
            size_t axis = axes.size() - 1;
            while (axis > 0) {
                axis--;
                row += axes[axis].stride * item;
                if (++at[axis] < axes[axis].size) break;
                row -= axes[axis].stride * axes[axis].size * item;
                at[axis] = 0;
                if (axis == 0) axis = axes.size();  // every outer axis has wrapped: done
                if (axis == axes.size()) break;
            }
            if (axis >= axes.size() || axes.size() == 1) break;
        }
        if (used) work(buffer, used);
    }

  private:
    template <class T> static void gather_as(char *to, const char *from, int64_t n, int64_t stride) {
        for (int64_t i = 0; i < n; i++) std::memcpy(to + i * (int64_t)sizeof(T), from + i * stride * (int64_t)sizeof(T), sizeof(T));
    }
    static void gather(char *to, const char *from, int64_t n, int64_t stride, int item) {
        struct Wide { char bytes[16]; };
        if (stride == 1) std::memcpy(to, from, (size_t)(n * item));
        else if (item == 1) gather_as<uint8_t>(to, from, n, stride);
        else if (item == 2) gather_as<uint16_t>(to, from, n, stride);
        else if (item == 4) gather_as<uint32_t>(to, from, n, stride);
        else if (item == 8) gather_as<uint64_t>(to, from, n, stride);
        else gather_as<Wide>(to, from, n, stride);
    }
};

inline void finish(const Tally &t, int64_t count, int64_t repeats, Summary &out) {
    constexpr double LARGEST = 1.7976931348623157e308;
    int64_t negatives = t.negatives + t.neg_inf;
    out = {count * repeats, t.nan * repeats, t.pos_inf * repeats, t.neg_inf * repeats, t.zeros * repeats, negatives * repeats,
           (count - t.nan - t.zeros - negatives) * repeats, NAN, NAN, NAN, NAN, 0.0, NAN};
    if (t.finite == 0) return;
    double n = (double)t.finite;
    out.min = t.min + 0.0;  // minus zero becomes zero: which of the two comes first is chance
    out.max = t.max + 0.0;
    out.mean = t.min == t.max ? out.min : t.mean / t.scale;  // all equal: exactly so
    out.abs_mean = t.abs_sum / n / t.scale;
    // The norm of very many very large doubles may itself not fit: the largest double then, never infinity.
    out.l2 = std::min(std::sqrt(t.square_sum) * std::sqrt((double)repeats) / t.scale, LARGEST);
    out.std = t.min == t.max ? 0.0 : std::min(std::sqrt(t.m2 / n) / t.scale, LARGEST);
}

// `walk(tally)` feeds every element once; it is called again when the magnitudes ask for another scale.
template <class Walk> void summarize(int type, int64_t count, int64_t repeats, Summary &out, Walk &&walk) {
    Tally tally;
    walk(tally);
    if (type == F64 || type == C128) {
        double size = std::max(-tally.min, tally.max);
        double scale = tally.too_large ? 0x1p-600 : size > 0 && size < 0x1p-400 ? 0x1p+600 : 1;
        if (scale != 1) {
            tally = Tally();
            tally.scale = scale;
            walk(tally);
        }
    }
    finish(tally, count, repeats, out);
}

}  // namespace misstep
