// What Python hands to a kernel, checked: integers, blocks of memory, and tables whose rows are written in place.
#pragma once

#include <Python.h>

#include <cstring>
#include <vector>

#include "layout.h"

namespace misstep {

inline bool wrong_count(const char *name, Py_ssize_t given, Py_ssize_t least, Py_ssize_t most) {
    if (given >= least && given <= most) return false;
    if (least == most) PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, got %zd", name, least, given);
    else PyErr_Format(PyExc_TypeError, "%s takes %zd to %zd arguments, got %zd", name, least, most, given);
    return true;
}

inline bool integer(PyObject *object, int64_t &to) {
    if (PyLong_CheckExact(object)) {
        to = PyLong_AsLongLong(object);
    } else {
        PyObject *index = PyNumber_Index(object);
        if (!index) return false;
        to = PyLong_AsLongLong(index);
        Py_DECREF(index);
    }
    return to != -1 || !PyErr_Occurred();
}

inline bool good_block(int64_t address, int64_t count, int64_t type) {
    if (type < 0 || type >= TYPES)
        PyErr_Format(PyExc_ValueError, "unknown dtype code %lld; the codes are in misstep.kernels.DTYPES", (long long)type);
    else if (count < 0)
        PyErr_Format(PyExc_ValueError, "a tensor of %lld elements: the count cannot be negative", (long long)count);
    else if (count > 0 && address == 0)
        PyErr_Format(PyExc_ValueError, "a tensor of %lld elements at address 0: it has no memory (a meta or freed tensor?)", (long long)count);
    else return true;
    return false;
}

inline bool block_arguments(PyObject *const *args, int64_t &address, int64_t &count, int64_t &type) {
    return integer(args[0], address) && integer(args[1], count) && integer(args[2], type) && good_block(address, count, type);
}

struct Rows {  // the caller's table, held while a row is written
    Py_buffer view = {};
    ~Rows() { if (view.obj) PyBuffer_Release(&view); }
    template <class Row> Row *open(PyObject *object, int64_t first, int64_t count = 1) {
        if (PyObject_GetBuffer(object, &view, PyBUF_SIMPLE | PyBUF_WRITABLE) < 0) return nullptr;
        int64_t rows = (int64_t)(view.len / (Py_ssize_t)sizeof(Row));
        if (first < 0 || first > rows || count > rows - first) {
            PyErr_Format(PyExc_IndexError, "rows %lld to %lld do not fit a table of %lld rows of %zu bytes",
                         (long long)first, (long long)(first + count), (long long)rows, sizeof(Row));
            return nullptr;
        }
        return (Row *)view.buf + first;
    }
};

inline bool integers(PyObject *object, std::vector<int64_t> &to) {  // a list, a tuple, or an array of int64
    if (!PyList_CheckExact(object) && !PyTuple_CheckExact(object) && PyObject_CheckBuffer(object)) {
        Py_buffer view;
        if (PyObject_GetBuffer(object, &view, PyBUF_CONTIG_RO | PyBUF_FORMAT) < 0) return false;
        char kind = view.format ? view.format[std::strlen(view.format) - 1] : 'B';
        bool fits = view.itemsize == 8 && std::strchr("qQlLnNP", kind);
        if (fits) to.assign((const int64_t *)view.buf, (const int64_t *)view.buf + view.len / 8);
        PyBuffer_Release(&view);
        if (!fits) PyErr_Format(PyExc_TypeError, "expected a list of integers or an array of int64, got an array of %zd-byte '%c'", view.itemsize, kind);
        return fits;
    }
    PyObject *fast = PySequence_Fast(object, "expected a list of integers or an array of int64");
    if (!fast) return false;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
    to.resize((size_t)n);
    bool good = true;
    for (Py_ssize_t i = 0; i < n && good; i++) good = integer(PySequence_Fast_GET_ITEM(fast, i), to[(size_t)i]);
    Py_DECREF(fast);
    return good;
}

struct Blocks {
    std::vector<int64_t> addresses, counts, types;
    int64_t bytes = 0;
    size_t size() const { return addresses.size(); }
    int type(size_t i) const { return (int)types[i]; }
    bool read(PyObject *const *args) {
        if (!integers(args[0], addresses) || !integers(args[1], counts)) return false;
        if (PyLong_Check(args[2])) types.assign(addresses.size(), PyLong_AsLongLong(args[2]));  // one type for all
        else if (!integers(args[2], types)) return false;
        if (counts.size() != size() || types.size() != size()) {
            PyErr_Format(PyExc_ValueError, "%zu addresses, %zu counts and %zu dtypes: they describe the same tensors and must be equally many",
                         size(), counts.size(), types.size());
            return false;
        }
        for (size_t i = 0; i < size(); i++) {
            if (!good_block(addresses[i], counts[i], types[i])) return false;
            bytes += counts[i] * ITEM_SIZE[types[i]];
        }
        return true;
    }
};

}  // namespace misstep
