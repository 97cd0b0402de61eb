// The Python face of the kernels: plain integers in (addresses, counts, type codes), rows written in place out.
// Nothing here knows torch or numpy; a tensor is a pointer. Signatures are in src/misstep/kernels/_native.pyi.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdlib>
#include <string>

#include "arguments.h"
#include "clock.h"
#include "steprows.h"

#if defined(MISSTEP_X86)
#include <immintrin.h>
#endif

using namespace misstep;

namespace {

const Kernels *kernels = nullptr;

// Below this the kernel is done before another thread could have taken the interpreter's lock.
constexpr int64_t RELEASE_BYTES = 1 << 18;

// A program may flush denormals (torch.set_flush_denormal); statistics are the same either way.
struct KeepDenormals {
#if defined(MISSTEP_X86)
    unsigned before = _mm_getcsr();
    KeepDenormals() { if (before & 0x8040) _mm_setcsr(before & ~0x8040u); }
    ~KeepDenormals() { if (before & 0x8040) _mm_setcsr(before); }
#elif defined(__aarch64__)
    uint64_t before;
    KeepDenormals() {
        asm volatile("mrs %0, fpcr" : "=r"(before));
        if (before & (1u << 24)) asm volatile("msr fpcr, %0" ::"r"(before & ~(uint64_t)(1u << 24)));
    }
    ~KeepDenormals() { if (before & (1u << 24)) asm volatile("msr fpcr, %0" ::"r"(before)); }
#else
    KeepDenormals() {}
#endif
};

template <class F> void without_lock(int64_t bytes, F &&work) {
    if (bytes < RELEASE_BYTES) {
        KeepDenormals keep;
        work();
        return;
    }
    Py_BEGIN_ALLOW_THREADS
    {
        KeepDenormals keep;
        work();
    }
    Py_END_ALLOW_THREADS
}

// ---- functions ----

PyObject *summarize_memory(PyObject *, PyObject *const *args, Py_ssize_t n) {
    int64_t address, count, type, row;
    Rows rows;
    if (wrong_count("summarize_memory", n, 5, 5) || !block_arguments(args, address, count, type) || !integer(args[4], row)) return nullptr;
    auto out = rows.open<Summary>(args[3], row);
    if (!out) return nullptr;
    without_lock(count * ITEM_SIZE[type], [&] {
        summarize((int)type, count, 1, *out, [&](Tally &t) { kernels->accumulate(t, (const void *)address, count, (int)type); });
    });
    Py_RETURN_NONE;
}

PyObject *summarize_strided(PyObject *, PyObject *const *args, Py_ssize_t n) {
    int64_t address, type, row, count = 1;
    std::vector<int64_t> shape, strides;
    Rows rows;
    if (wrong_count("summarize_strided", n, 6, 6) || !integer(args[0], address) || !integers(args[1], shape) ||
        !integers(args[2], strides) || !integer(args[3], type) || !integer(args[5], row)) return nullptr;
    if (shape.size() != strides.size()) {
        PyErr_Format(PyExc_ValueError, "a shape of %zu axes with %zu strides", shape.size(), strides.size());
        return nullptr;
    }
    std::vector<Axis> axes;
    for (size_t i = 0; i < shape.size(); i++) {
        axes.push_back({shape[i], strides[i]});
        if (shape[i] < 0 || __builtin_mul_overflow(count, shape[i], &count)) {
            PyErr_Format(PyExc_ValueError, "axis %zu of size %lld: not a shape a tensor can have", i, (long long)shape[i]);
            return nullptr;
        }
    }
    if (!good_block(address, count, type)) return nullptr;
    auto out = rows.open<Summary>(args[4], row);
    if (!out) return nullptr;
    int item = ITEM_SIZE[type];
    Layout layout((const void *)address, axes, item);
    without_lock(layout.count * item, [&] {
        summarize((int)type, layout.count, layout.repeats, *out, [&](Tally &t) {
            layout.for_each_run(item, [&](const char *p, int64_t few) { kernels->accumulate(t, p, few, (int)type); });
        });
    });
    Py_RETURN_NONE;
}

PyObject *summarize_many(PyObject *, PyObject *const *args, Py_ssize_t n) {
    Blocks blocks;
    Rows rows;
    int64_t first = 0;
    if (wrong_count("summarize_many", n, 4, 5) || !blocks.read(args) || (n == 5 && !integer(args[4], first))) return nullptr;
    auto out = rows.open<Summary>(args[3], first, (int64_t)blocks.size());
    if (!out) return nullptr;
    without_lock(blocks.bytes, [&] {
        for (size_t i = 0; i < blocks.size(); i++)
            summarize(blocks.type(i), blocks.counts[i], 1, out[i], [&](Tally &t) {
                kernels->accumulate(t, (const void *)blocks.addresses[i], blocks.counts[i], blocks.type(i));
            });
    });
    Py_RETURN_NONE;
}

PyObject *nonfinite_many(PyObject *, PyObject *const *args, Py_ssize_t n) {
    Blocks blocks;
    if (wrong_count("nonfinite_many", n, 3, 3) || !blocks.read(args)) return nullptr;
    PyObject *flags = PyByteArray_FromStringAndSize(nullptr, (Py_ssize_t)blocks.size());
    if (!flags) return nullptr;
    char *to = PyByteArray_AS_STRING(flags);
    without_lock(blocks.bytes, [&] {
        for (size_t i = 0; i < blocks.size(); i++)
            to[i] = kernels->nonfinite((const void *)blocks.addresses[i], blocks.counts[i], blocks.type(i));
    });
    return flags;
}

PyObject *digest(PyObject *, PyObject *const *args, Py_ssize_t n) {
    int64_t address, bytes;
    if (wrong_count("digest", n, 2, 2) || !integer(args[0], address) || !integer(args[1], bytes) || !good_block(address, bytes, U8)) return nullptr;
    uint64_t value = 0;
    without_lock(bytes, [&] { value = kernels->digest((const void *)address, bytes); });
    return PyLong_FromUnsignedLongLong(value);
}

PyObject *digest_bytes(PyObject *, PyObject *buffer) {
    Py_buffer view;
    if (PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE) < 0) return nullptr;
    uint64_t value = 0;
    without_lock(view.len, [&] { value = kernels->digest(view.buf, view.len); });
    PyBuffer_Release(&view);
    return PyLong_FromUnsignedLongLong(value);
}

PyObject *digest_many(PyObject *, PyObject *const *args, Py_ssize_t n) {
    Blocks blocks;
    if (wrong_count("digest_many", n, 2, 2)) return nullptr;
    PyObject *bytes_type = PyLong_FromLong(U8);
    PyObject *const given[3] = {args[0], args[1], bytes_type};
    bool good = blocks.read(given);
    Py_DECREF(bytes_type);
    if (!good) return nullptr;
    std::vector<uint64_t> values(blocks.size());
    without_lock(blocks.bytes, [&] {
        for (size_t i = 0; i < blocks.size(); i++) values[i] = kernels->digest((const void *)blocks.addresses[i], blocks.counts[i]);
    });
    PyObject *list = PyList_New((Py_ssize_t)values.size());
    for (size_t i = 0; list && i < values.size(); i++) {
        PyObject *value = PyLong_FromUnsignedLongLong(values[i]);
        if (!value) Py_CLEAR(list);
        else PyList_SET_ITEM(list, (Py_ssize_t)i, value);
    }
    return list;
}

bool number(PyObject *object, double &to) {
    to = PyFloat_AsDouble(object);
    return to != -1.0 || !PyErr_Occurred();
}

PyObject *change_memory(PyObject *, PyObject *const *args, Py_ssize_t n) {
    int64_t now, before, count, type, row, equal_nan = 0;
    double rtol, atol;
    Rows rows;
    if (wrong_count("change_memory", n, 8, 9) || !integer(args[0], now) || !integer(args[1], before) || !integer(args[2], count) ||
        !integer(args[3], type) || !number(args[4], rtol) || !number(args[5], atol) || !integer(args[7], row) ||
        (n == 9 && !integer(args[8], equal_nan)) || !good_block(now, count, type) || !good_block(before, count, type)) return nullptr;
    auto out = rows.open<Change>(args[6], row);
    if (!out) return nullptr;
    Pairs pairs = {(const void *)now, (const void *)before, (int)type, (int)type, count, rtol, atol, equal_nan != 0};
    without_lock(2 * count * ITEM_SIZE[type], [&] { kernels->change(pairs, *out); });
    Py_RETURN_NONE;
}

PyObject *compare_memory(PyObject *, PyObject *const *args, Py_ssize_t n) {
    int64_t a, b, count, type_a, type_b, row;
    double rtol, atol;
    Rows rows;
    if (wrong_count("compare_memory", n, 9, 9) || !integer(args[0], a) || !integer(args[1], type_a) || !integer(args[2], b) ||
        !integer(args[3], type_b) || !integer(args[4], count) || !number(args[5], rtol) || !number(args[6], atol) ||
        !integer(args[8], row) || !good_block(a, count, type_a) || !good_block(b, count, type_b)) return nullptr;
    if ((type_a >= C64) != (type_b >= C64)) {
        PyErr_SetString(PyExc_ValueError, "a complex tensor cannot be compared with a real one; compare its real part or its magnitude");
        return nullptr;
    }
    auto out = rows.open<Compare>(args[7], row);
    if (!out) return nullptr;
    Pairs pairs = {(const void *)a, (const void *)b, (int)type_a, (int)type_b, count, rtol, atol, false};
    without_lock(count * (ITEM_SIZE[type_a] + ITEM_SIZE[type_b]), [&] { kernels->compare(pairs, *out); });
    Py_RETURN_NONE;
}

// Bins each type needs: 4 for zero, subnormal, infinite and NaN, then one per power of two. Mirrored in kernels/records.py.
constexpr int BINS[TYPES] = {2050, 258, 34, 258, 19, 34, 19, 35, 68, 68, 68, 68, 68, 68, 68, 68, 5, 2050, 2050};

PyObject *exponents_memory(PyObject *, PyObject *const *args, Py_ssize_t n) {
    int64_t address, count, type;
    Rows rows;
    if (wrong_count("exponents_memory", n, 4, 4) || !block_arguments(args, address, count, type)) return nullptr;
    auto bins = rows.open<int64_t>(args[3], 0, BINS[type]);
    if (!bins) return nullptr;
    without_lock(count * ITEM_SIZE[type], [&] { kernels->exponents((const void *)address, count, (int)type, bins); });
    Py_RETURN_NONE;
}

// ---- the rows of a step ----

PyObject *finish_rows(PyObject *, PyObject *const *args, Py_ssize_t n) {
    Lists lists;
    int64_t step, bad = 0;
    Rows heads, summaries;
    if (wrong_count("finish_rows", n, 8, 8) || !lists.read(args) || !integer(args[5], step)) return nullptr;
    auto out = heads.open<Head>(args[6], 0, lists.count);
    auto rows = out ? summaries.open<Summary>(args[7], 0, lists.count) : nullptr;
    if (!rows || !lists.heads((uint32_t)step, out) || !lists.fill_aliases(out, rows)) return nullptr;
    for (Py_ssize_t i = 0; i < lists.count; i++) bad += is_bad(rows[i]);
    return PyLong_FromLongLong(bad);
}

PyObject *first_bad(PyObject *, PyObject *const *args, Py_ssize_t n) {
    int64_t count;
    Rows rows;
    if (wrong_count("first_bad", n, 2, 2) || !integer(args[1], count)) return nullptr;
    auto summary = rows.open<Summary>(args[0], 0, count);
    if (!summary) return nullptr;
    int64_t row = 0;
    while (row < count && !is_bad(summary[row])) row++;
    return PyLong_FromLongLong(row < count ? row : -1);
}

PyObject *seal_rows(PyObject *, PyObject *const *args, Py_ssize_t n) {
    int64_t count;
    Rows heads, summaries, sealed;
    if (wrong_count("seal_rows", n, 4, 4) || !integer(args[3], count)) return nullptr;
    auto head = heads.open<Head>(args[0], 0, count);
    auto summary = head ? summaries.open<Summary>(args[1], 0, count) : nullptr;
    auto out = summary ? (char *)sealed.open<char[128]>(args[2], 0, count) : nullptr;
    if (!out) return nullptr;
    for (int64_t i = 0; i < count; i++) seal(head[i], summary[i], out + 128 * i);
    Py_RETURN_NONE;
}

PyObject *step_line(PyObject *, PyObject *const *args, Py_ssize_t n) {
    int64_t step, level, rows;
    double when, seconds, overhead;
    if (wrong_count("step_line", n, 10, 10) || !integer(args[0], step) || !number(args[1], when) || !number(args[3], seconds) ||
        !number(args[5], overhead) || !integer(args[6], level) || !integer(args[8], rows)) return nullptr;
    const char *optimizer = PyUnicode_AsUTF8(args[7]);
    if (!optimizer) return nullptr;
    Line line;
    line.text[line.length++] = '[';
    bool good = line.whole(step) && line.comma() && line.rounded(when, 3) && line.comma() && line.number(args[2]) && line.comma() &&
                line.rounded(seconds, 6) && line.comma() && line.number(args[4]) && line.comma() && line.rounded(overhead, 3) &&
                line.comma() && line.whole(level) && line.comma() && line.word(optimizer);
    if (good && (rows || args[9] != Py_None)) good = line.comma() && line.whole(rows);
    if (good && args[9] != Py_None) good = line.comma() && line.number(args[9]);
    uint32_t crc = line.crc();
    if (!(good && line.comma() && line.whole(crc))) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a step that does not fit a short line");
        return nullptr;
    }
    std::string text(line.text, line.length);
    text += "]\n";
    return PyBytes_FromStringAndSize(text.data(), (Py_ssize_t)text.size());
}

// ---- instruction sets ----

std::vector<const Kernels *> available() {
    std::vector<const Kernels *> sets = {plain_kernels()};
#ifdef MISSTEP_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt")) {
        sets.push_back(avx2_kernels());  // every processor with AVX2 has F16C
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl"))
            sets.push_back(avx512_kernels());
    }
#endif
    return sets;
}

PyObject *instruction_sets(PyObject *, PyObject *) {
    PyObject *names = PyList_New(0);
    for (auto set : available()) {
        PyObject *name = names ? PyUnicode_FromString(set->name) : nullptr;
        if (!name || PyList_Append(names, name) < 0) Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

PyObject *instruction_set(PyObject *, PyObject *) { return PyUnicode_FromString(kernels->name); }

PyObject *use(PyObject *, PyObject *name) {
    const char *wanted = PyUnicode_AsUTF8(name);
    if (!wanted) return nullptr;
    std::string names;
    for (auto set : available()) {
        if (!std::strcmp(set->name, wanted)) {
            kernels = set;
            Py_RETURN_NONE;
        }
        names += names.empty() ? set->name : std::string(", ") + set->name;
    }
    return PyErr_Format(PyExc_ValueError, "this machine cannot run instruction set '%s'; it has %s", wanted, names.c_str());
}

bool choose() {  // the best set there is, at most what MISSTEP_ISA names
    auto sets = available();
    kernels = sets.back();
    const char *limit = std::getenv("MISSTEP_ISA");
    if (!limit || !*limit) return true;
    const char *order[] = {"plain", "avx2", "avx512"};
    for (size_t i = 0; i < 3; i++)
        if (!std::strcmp(order[i], limit)) {
            kernels = sets[std::min(i, sets.size() - 1)];
            return true;
        }
    PyErr_Format(PyExc_ValueError, "MISSTEP_ISA=%s is not an instruction set; plain, avx2 and avx512 are", limit);
    return false;
}

#define FAST(name, doc) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, doc}
PyMethodDef methods[] = {
    FAST(summarize_memory, "Write the summary of one contiguous block into a row of a table."),
    FAST(summarize_strided, "Write the summary of a tensor of any strides into a row of a table."),
    FAST(summarize_many, "Write the summaries of many contiguous blocks into consecutive rows of a table."),
    FAST(nonfinite_many, "One byte a block: 1 when it holds a NaN or an infinity."),
    FAST(digest, "64 bits that tell whether memory is the same."),
    {"digest_bytes", digest_bytes, METH_O, "The digest of a buffer."},
    FAST(digest_many, "The digests of many blocks."),
    FAST(change_memory, "Write what changed between two blocks into a row of a table."),
    FAST(compare_memory, "Write how close two blocks are into a row of a table."),
    FAST(exponents_memory, "Add the powers of two that occur to an int64 table."),
    FAST(finish_rows, "Fill the heads of a step's rows and the summaries of its aliases; how many rows are not finite."),
    FAST(first_bad, "The first of so many rows that is not finite, or -1."),
    FAST(seal_rows, "Join heads and summaries into the checked rows of stats.bin."),
    FAST(step_line, "The short line of a step in the journal."),
    {"instruction_sets", instruction_sets, METH_NOARGS, "The instruction sets this machine can run, the best last."},
    {"instruction_set", instruction_set, METH_NOARGS, "The instruction set in use."},
    {"use", use, METH_O, "Switch to another instruction set, for tests and benchmarks."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_native", "One-pass statistics over memory.", -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__native() {
    if (!choose()) return nullptr;
    PyObject *module = PyModule_Create(&definition);
    if (module && !add_clock(module)) Py_CLEAR(module);
    return module;
}
