// The rows of a finished step: heads from Python's lists, aliases filled in, and the bytes that go into stats.bin.
// Kept beside the kernels because the same work in numpy costs a small training step several times its own length.
#pragma once

#include <Python.h>

#include <cmath>
#include <cstring>

#include "records.h"

namespace misstep {

struct Head {  // core/stats.py: HEAD
    uint32_t tensor, step, order;
    uint16_t flags;
    uint8_t dtype, spare;
    uint32_t shape, check;
};
static_assert(sizeof(Head) == 24 && sizeof(Summary) == 104, "a row of stats.bin has 128 bytes");

constexpr uint16_t INPUTS_SEEN = 1, ALIAS = 4;

inline bool is_bad(const Summary &row) { return row.nan || row.pos_inf || row.neg_inf; }

struct Lists {  // the columns a Frame keeps, one entry a row
    PyObject *tensors, *shapes, *dtypes, *inputs, *aliases;
    Py_ssize_t count = 0;
    bool read(PyObject *const *args) {
        tensors = args[0], shapes = args[1], dtypes = args[2], inputs = args[3], aliases = args[4];
        for (PyObject *list : {tensors, shapes, dtypes, inputs})
            if (!PyList_CheckExact(list) || PyList_GET_SIZE(list) != PyList_GET_SIZE(tensors)) {
                PyErr_SetString(PyExc_TypeError, "finish_rows takes four lists of one length: tensors, shapes, dtypes, inputs");
                return false;
            }
        if (!PyDict_CheckExact(aliases)) {
            PyErr_SetString(PyExc_TypeError, "finish_rows takes aliases as a dict, by row");
            return false;
        }
        count = PyList_GET_SIZE(tensors);
        return true;
    }
    bool heads(uint32_t step, Head *out) const {
        for (Py_ssize_t i = 0; i < count; i++) {
            unsigned long tensor = PyLong_AsUnsignedLong(PyList_GET_ITEM(tensors, i));
            unsigned long shape = PyLong_AsUnsignedLong(PyList_GET_ITEM(shapes, i));
            unsigned long dtype = PyLong_AsUnsignedLong(PyList_GET_ITEM(dtypes, i));
            uint16_t flags = PyList_GET_ITEM(inputs, i) == Py_None ? 0 : INPUTS_SEEN;
            out[i] = {(uint32_t)tensor, step, (uint32_t)i, flags, (uint8_t)dtype, 0, (uint32_t)shape, 0};
        }
        return !PyErr_Occurred();
    }
    bool fill_aliases(Head *out, Summary *rows) const {
        PyObject *key, *value;
        for (Py_ssize_t at = 0; PyDict_Next(aliases, &at, &key, &value);) {
            Py_ssize_t row = PyLong_AsSsize_t(key), of = PyLong_AsSsize_t(value);
            if (row < 0 || row >= count || of < 0 || of >= count) {
                if (!PyErr_Occurred()) PyErr_Format(PyExc_IndexError, "row %zd as an alias of row %zd, among %zd rows", row, of, count);
                return false;
            }
            rows[row] = rows[of];
            out[row].flags |= ALIAS;
        }
        return true;
    }
};

// store/statsfile.py: the weighted sum of a row's other 31 words, modulo 2^32.
inline void seal(const Head &head, const Summary &summary, char *out) {
    constexpr uint32_t START = 0x6D697373u, FACTOR = 0x9E3779B1u;
    constexpr int CHECK_WORD = 5;
    uint32_t words[32];
    std::memcpy(words, &head, sizeof head);
    std::memcpy((char *)words + sizeof head, &summary, sizeof summary);
    uint32_t sum = START, weight = FACTOR;
    for (int word = 0; word < 32; word++, weight *= FACTOR)
        if (word != CHECK_WORD) sum += words[word] * weight;
    words[CHECK_WORD] = sum;
    std::memcpy(out, words, sizeof words);
}

// store/stepline.py: [number,time,loss,seconds,rate,overhead,level,"optimizer",rows,norm,crc32]
struct Line {
    char text[512];
    size_t length = 0;
    bool whole(int64_t value) {
        char digits[24];
        char *at = digits + sizeof digits;
        uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
        do *--at = (char)('0' + left % 10);
        while (left /= 10);
        if (value < 0) *--at = '-';
        return put(at, (size_t)(digits + sizeof digits - at));
    }
    bool number(PyObject *value) {  // the shortest text that reads back as the same double
        if (value == Py_None) return put("null", 4);
        double wanted = PyFloat_AsDouble(value);
        if (wanted == -1.0 && PyErr_Occurred()) return false;
        char *digits = PyOS_double_to_string(wanted, 'r', 0, Py_DTSF_ADD_DOT_0, nullptr);
        bool fits = digits && put(digits, std::strlen(digits));
        PyMem_Free(digits);
        return fits;
    }
    bool rounded(double value, int places) {  // a time or a share: nothing here is large enough to lose digits
        int64_t unit = 1;
        for (int i = 0; i < places; i++) unit *= 10;
        if (!(value > -1e12 && value < 1e12)) return false;
        int64_t scaled = (int64_t)std::llround(value * (double)unit);
        if (scaled < 0 && !put("-", 1)) return false;
        int64_t size = scaled < 0 ? -scaled : scaled;
        if (!whole(size / unit) || !put(".", 1)) return false;
        char digits[8];
        int64_t rest = size % unit;
        for (int i = places; i-- > 0; rest /= 10) digits[i] = (char)('0' + rest % 10);
        while (places > 1 && digits[places - 1] == '0') places--;
        return put(digits, (size_t)places);
    }
    bool word(const char *value) {
        for (const char *at = value; *at; at++)
            if (*at == '"' || *at == '\\' || (unsigned char)*at < ' ') return false;
        return put("\"", 1) && put(value, std::strlen(value)) && put("\"", 1);
    }
    bool comma() { return put(",", 1); }
    uint32_t crc() const {  // CRC-32 of zlib, by nibbles: 80 bytes need no larger table
        static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                           0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
        uint32_t sum = ~0u;
        for (size_t i = 0; i < length; i++) {
            sum = table[(sum ^ (unsigned char)text[i]) & 15] ^ (sum >> 4);
            sum = table[(sum ^ ((unsigned char)text[i] >> 4)) & 15] ^ (sum >> 4);
        }
        return ~sum;
    }

  private:
    bool put(const char *piece, size_t size) {
        if (length + size >= sizeof text) return false;
        std::memcpy(text + length, piece, size);
        length += size;
        return true;
    }
};

}  // namespace misstep
