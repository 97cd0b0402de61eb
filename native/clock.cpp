// The clock of a step (adapters/timing/clock.py says what each word means, and has the same in Python): turned a dozen
// times in every step of a training, so a turn must cost nothing a step of a tenth of a millisecond would notice.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <ctime>

#include "clock.h"

namespace misstep {

namespace {

enum Segment { DATA, TRANSFER, FORWARD, LOSS, BACKWARD, GRADIENTS, OPTIMIZER, GAP, COMPILE, OWN, SEGMENTS };  // core/segments.py
constexpr uint8_t STEP = 1, EPOCH = 2;  // store/tracefile.py and core/segments.py

struct Spans {
    int64_t of[SEGMENTS];
};

struct Clock {
    PyObject_HEAD
    PyObject *owner, *now, *waits;
    Spans spent, settled;
    bool is_settled, held, ahead_epoch;
    char epoch;
    int segment, queue, asks, waited_for, ahead_queue, ahead_asks;
    int64_t since, began, next_began, cpu, cost, waited, offset;
};

PyObject *cost_name;
PyTypeObject *taken_type;

int64_t nanoseconds(clockid_t which) {
    timespec at;
    clock_gettime(which, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

bool number_of(PyObject *object, int64_t &to) {  // takes the reference
    if (!object) return false;
    to = PyLong_AsLongLong(object);
    Py_DECREF(object);
    return to != -1 || !PyErr_Occurred();
}

// Once the collector has cleared a clock, a finalizer may still turn it: then nothing is asked any more.
bool asks(PyObject *whom) { return whom && whom != Py_None; }

bool now_of(Clock *clock, int64_t &to) {
    if (!asks(clock->now)) {
        to = nanoseconds(CLOCK_MONOTONIC);
        return true;
    }
    return number_of(PyObject_CallNoArgs(clock->now), to);
}

bool cost_of(Clock *clock, int64_t &to) {
    to = clock->cost;
    return !clock->owner || number_of(PyObject_GetAttr(clock->owner, cost_name), to);
}

bool restart(Clock *clock) {
    clock->spent = {};
    clock->is_settled = clock->held = clock->ahead_epoch = false;
    clock->epoch = 0;
    clock->waited = clock->waited_for = clock->asks = clock->ahead_asks = 0;
    clock->queue = clock->ahead_queue = -1;
    clock->segment = GAP;
    clock->since = clock->began = clock->next_began = clock->cpu = 0;
    return cost_of(clock, clock->cost);
}

bool turn(Clock *clock, int segment) {
    int64_t now, cost;
    if (clock->held) return true;
    if (!now_of(clock, now) || !cost_of(clock, cost)) return false;
    if (clock->since) {
        int64_t passed = now - clock->since, own = cost - clock->cost;
        if (own > 0) {
            own = std::min(own, passed);  // a span around a call of `own` is in both accounts
            clock->spent.of[OWN] += own;
            passed -= own;
        }
        clock->spent.of[clock->segment] += passed;
    } else {
        clock->began = now;
        clock->cpu = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
    }
    clock->cost = cost;
    clock->since = now;
    clock->segment = segment;
    return true;
}

bool waits_of(Clock *clock, int64_t &to) { return number_of(PyObject_CallNoArgs(clock->waits), to); }

bool give_back(Clock *clock) {
    int64_t now;
    if (!asks(clock->waits)) return true;
    if (!waits_of(clock, now)) return false;
    int64_t waited = now - clock->waited;
    clock->waited = now;
    (clock->is_settled ? clock->settled : clock->spent).of[clock->waited_for] += waited;
    clock->spent.of[OWN] -= waited;
    return true;
}

void settle(Clock *clock) {
    if (clock->is_settled)
        for (int i = 0; i < SEGMENTS; i++) clock->settled.of[i] += clock->spent.of[i];
    else clock->settled = clock->spent;
    clock->is_settled = true;
    clock->spent = {};
    clock->next_began = clock->since;
    clock->ahead_queue = clock->queue;
    clock->ahead_asks = clock->asks;
    clock->ahead_epoch = clock->epoch;
    clock->queue = -1;
    clock->asks = 0;
    clock->epoch = 0;
}

struct Taken {
    Spans spent;
    int64_t began, cpu;
};

bool take(Clock *clock, Taken &taken) {
    if (!give_back(clock)) return false;
    if (!clock->is_settled) settle(clock);
    int64_t cpu = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
    taken = {clock->settled, clock->began + clock->offset, cpu - clock->cpu};
    clock->is_settled = false;
    clock->began = clock->next_began;
    clock->cpu = cpu;
    return true;
}

// ---- what Python calls ----

bool segment_of(PyObject *object, int &to) {
    long value = PyLong_AsLong(object);
    if (value == -1 && PyErr_Occurred()) return false;
    if (value < -1 || value >= SEGMENTS) {
        PyErr_Format(PyExc_ValueError, "%ld is no segment of a step", value);
        return false;
    }
    to = (int)value;
    return true;
}

PyObject *none_if(bool good) {
    if (!good) return nullptr;
    Py_RETURN_NONE;
}

PyObject *py_restart(PyObject *self, PyObject *) { return none_if(restart((Clock *)self)); }

PyObject *py_switch(PyObject *self, PyObject *given) {
    int segment;
    if (!segment_of(given, segment)) return nullptr;
    return none_if(turn((Clock *)self, segment));
}

PyObject *py_own(PyObject *self, PyObject *) {
    Clock *clock = (Clock *)self;
    if (clock->held) return PyLong_FromLong(-1);
    int before = clock->segment;
    if (!turn(clock, OWN)) return nullptr;
    clock->held = true;
    if (asks(clock->waits)) {
        if (!waits_of(clock, clock->waited)) return nullptr;
        clock->waited_for = before == GRADIENTS ? BACKWARD : before == LOSS ? FORWARD : before;
    }
    return PyLong_FromLong(before);
}

PyObject *py_back(PyObject *self, PyObject *given) {
    Clock *clock = (Clock *)self;
    int segment;
    if (!segment_of(given, segment)) return nullptr;
    if (segment < 0) Py_RETURN_NONE;
    clock->held = false;
    return none_if(turn(clock, segment) && give_back(clock));
}

PyObject *py_compiles(PyObject *self, PyObject *) {
    Clock *clock = (Clock *)self;
    int before = clock->segment;
    return turn(clock, COMPILE) ? PyLong_FromLong(before) : nullptr;
}

PyObject *py_ask(PyObject *self, PyObject *given) {
    Clock *clock = (Clock *)self;
    long ready = PyLong_AsLong(given);
    if (ready == -1 && PyErr_Occurred()) return nullptr;
    if (clock->held) Py_RETURN_NONE;
    if (!clock->asks) clock->queue = (int)ready;
    clock->asks++;
    Py_RETURN_NONE;
}

PyObject *py_settle(PyObject *self, PyObject *) {
    settle((Clock *)self);
    Py_RETURN_NONE;
}

PyObject *py_take(PyObject *self, PyObject *) {
    Clock *clock = (Clock *)self;
    Taken taken;
    if (!take(clock, taken)) return nullptr;
    PyObject *spent = PyList_New(SEGMENTS), *result = spent ? PyStructSequence_New(taken_type) : nullptr;
    if (!result) {
        Py_XDECREF(spent);
        return nullptr;
    }
    for (int i = 0; i < SEGMENTS; i++) PyList_SET_ITEM(spent, i, PyLong_FromLongLong(taken.spent.of[i]));
    PyStructSequence_SET_ITEM(result, 0, spent);
    PyStructSequence_SET_ITEM(result, 1, PyLong_FromLongLong(taken.began));
    PyStructSequence_SET_ITEM(result, 2, PyLong_FromLongLong(taken.cpu));
    PyStructSequence_SET_ITEM(result, 3, PyLong_FromLong(clock->ahead_queue));
    PyStructSequence_SET_ITEM(result, 4, PyLong_FromLong(clock->ahead_asks));
    PyStructSequence_SET_ITEM(result, 5, PyBool_FromLong(clock->ahead_epoch));
    return result;
}

#pragma pack(push, 1)
struct Record {  // STEP_LAYOUT of store/tracefile.py
    uint8_t kind, flags;
    int16_t queue;
    uint32_t number;
    uint64_t began;
    float spent[SEGMENTS], cpu;
    uint32_t asks;
};
#pragma pack(pop)
static_assert(sizeof(Record) == 64, "a record of the step trace");

PyObject *py_record(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Clock *clock = (Clock *)self;
    Taken taken;
    if (count != 2) return PyErr_Format(PyExc_TypeError, "record takes 2 arguments, got %zd", count);
    long flags = PyLong_AsLong(args[0]);
    long long number = PyLong_AsLongLong(args[1]);
    if (PyErr_Occurred() || !take(clock, taken)) return nullptr;
    Record record = {STEP, (uint8_t)(flags | (clock->ahead_epoch ? EPOCH : 0)), (int16_t)clock->ahead_queue, (uint32_t)number,
                     (uint64_t)taken.began, {}, (float)((double)taken.cpu * 1e-3), (uint32_t)clock->ahead_asks};
    for (int i = 0; i < SEGMENTS; i++) record.spent[i] = (float)((double)taken.spent.of[i] * 1e-3);
    return PyBytes_FromStringAndSize((const char *)&record, sizeof record);
}

// ---- the type ----

int init(PyObject *self, PyObject *args, PyObject *named) {
    static const char *names[] = {"owner", "now", nullptr};
    Clock *clock = (Clock *)self;
    PyObject *owner, *now = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, named, "O|O", (char **)names, &owner, &now)) return -1;
    Py_XSETREF(clock->owner, Py_NewRef(owner));
    Py_XSETREF(clock->now, Py_NewRef(now));
    Py_XSETREF(clock->waits, Py_NewRef(Py_None));
    clock->offset = nanoseconds(CLOCK_REALTIME) - nanoseconds(CLOCK_MONOTONIC);
    return restart(clock) ? 0 : -1;
}

int traverse(PyObject *self, visitproc visit, void *arg) {
    Clock *clock = (Clock *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(clock->owner);
    Py_VISIT(clock->now);
    Py_VISIT(clock->waits);
    return 0;
}

int clear(PyObject *self) {
    Clock *clock = (Clock *)self;
    Py_CLEAR(clock->owner);
    Py_CLEAR(clock->now);
    Py_CLEAR(clock->waits);
    return 0;
}

void dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyMethodDef methods[] = {
    {"restart", py_restart, METH_NOARGS, "Nothing was measured so far."},
    {"switch", py_switch, METH_O, "This segment begins, and what was under way is over."},
    {"own", py_own, METH_NOARGS, "What follows is misstep's own."},
    {"back", py_back, METH_O, "Training goes on with this segment."},
    {"compiles", py_compiles, METH_NOARGS, "A compiler begins."},
    {"ask", py_ask, METH_O, "A batch is asked for, and so many lie ready."},
    {"settle", py_settle, METH_NOARGS, "An update is done."},
    {"take", py_take, METH_NOARGS, "The step that is over."},
    {"record", (PyCFunction)(void (*)(void))py_record, METH_FASTCALL, "The step that is over, as a record of the trace."},
    {nullptr, nullptr, 0, nullptr}};

PyMemberDef members[] = {
    {"segment", T_INT, offsetof(Clock, segment), 0, nullptr},
    {"since", T_LONGLONG, offsetof(Clock, since), 0, nullptr},
    {"queue", T_INT, offsetof(Clock, queue), 0, nullptr},
    {"asks", T_INT, offsetof(Clock, asks), 0, nullptr},
    {"epoch", T_BOOL, offsetof(Clock, epoch), 0, nullptr},
    {"waits", T_OBJECT_EX, offsetof(Clock, waits), 0, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot slots[] = {{Py_tp_doc, (void *)"The clock of a step."},
                       {Py_tp_init, (void *)init},
                       {Py_tp_new, (void *)PyType_GenericNew},
                       {Py_tp_traverse, (void *)traverse},
                       {Py_tp_clear, (void *)clear},
                       {Py_tp_dealloc, (void *)dealloc},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {0, nullptr}};

PyType_Spec spec = {"misstep.kernels._native.Clock", sizeof(Clock), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

PyStructSequence_Field taken_fields[] = {{"spent", nullptr}, {"began", nullptr}, {"cpu", nullptr}, {"queue", nullptr},
                                         {"asks", nullptr},  {"epoch", nullptr}, {nullptr, nullptr}};
PyStructSequence_Desc taken_desc = {"misstep.kernels._native.Taken", "One finished step.", taken_fields, 6};

}  // namespace

bool add_clock(PyObject *module) {
    cost_name = PyUnicode_InternFromString("cost_ns");
    taken_type = cost_name ? PyStructSequence_NewType(&taken_desc) : nullptr;
    PyObject *type = taken_type ? PyType_FromSpec(&spec) : nullptr;
    if (!type) return false;
    int failed = PyModule_AddObjectRef(module, "Clock", type);
    Py_DECREF(type);
    return failed == 0;
}

}  // namespace misstep
