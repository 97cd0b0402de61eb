// Where the machine code of every thread is: at a fatal signal, and on request.
//
// A handler does nothing but unwind and write: no allocation, no lock, no lookup of names. Names are found later, from
// the addresses and the map of the process, by whoever reads the record (src/misstep/store/bundle/machinecode.py).
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if defined(__linux__) && defined(__GLIBC__)

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <dirent.h>
#include <execinfo.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

namespace {

constexpr int DEEPEST = 64;
constexpr int MOST_THREADS = 256;
constexpr int FATAL[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
constexpr int FATALS = sizeof FATAL / sizeof FATAL[0];
// Ignored by default: an answer that comes too late harms nobody.
constexpr int ASK = SIGURG;

int fatal_file = -1;
struct sigaction before[FATALS];

struct Stack {
    std::atomic<pid_t> thread;  // set last: whoever reads it may read the rest
    int depth;
    void *frames[DEEPEST];
};
Stack stacks[MOST_THREADS];
std::atomic<int> taken{0}, answered{0};

pid_t thread_id() { return (pid_t)syscall(SYS_gettid); }

uintptr_t interrupted_at(void *context) {
    const auto *of = (const ucontext_t *)context;
#if defined(__x86_64__)
    return (uintptr_t)of->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)of->uc_mcontext.pc;
#else
    (void)of;
    return 0;
#endif
}

// The frames of the interrupted code: those of the handler on top of it are left out.
int unwind(void **frames, void *context) {
    int depth = backtrace(frames, DEEPEST);
    uintptr_t at = interrupted_at(context);
    for (int first = 0; first < depth; first++) {
        if ((uintptr_t)frames[first] != at) continue;
        for (int i = first; i < depth; i++) frames[i - first] = frames[i];
        return depth - first;
    }
    // Called through a null pointer: there is no code at that address, but there is a caller.
    return depth;
}

void put(const char *text) {
    size_t size = 0;
    while (text[size]) size++;
    (void)!write(fatal_file, text, size);
}

void put_number(uintptr_t value, int base) {
    char text[32];
    int at = sizeof text;
    text[--at] = 0;
    do text[--at] = "0123456789abcdef"[value % base];
    while (value /= base);
    put(text + at);
}

void put_map() {
    put("map\n");
    int map = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (map < 0) return;
    char part[4096];
    ssize_t size;
    while ((size = read(map, part, sizeof part)) > 0) (void)!write(fatal_file, part, size);
    close(map);
}

void on_fatal(int number, siginfo_t *, void *context) {
    int which = 0;
    while (which < FATALS && FATAL[which] != number) which++;
    for (int i = 0; i < FATALS; i++) sigaction(FATAL[i], &before[i], nullptr);  // a fault in here is not ours to tell
    static void *frames[DEEPEST];
    int depth = unwind(frames, context);
    put("machine code of thread ");
    put_number(thread_id(), 10);
    put(" at signal ");
    put_number(number, 10);
    put("\n");
    for (int i = 0; i < depth; i++) {
        put("0x");
        put_number((uintptr_t)frames[i], 16);
        put("\n");
    }
    put_map();
    raise(number);  // delivered when this returns, to whoever was there before: the fault handler, or nobody
}

void on_ask(int, siginfo_t *, void *context) {
    int saved = errno;
    int slot = taken.fetch_add(1);
    if (slot < MOST_THREADS) {
        Stack &mine = stacks[slot];
        mine.depth = unwind(mine.frames, context);
        mine.thread.store(thread_id());
        answered.fetch_add(1);
    }
    errno = saved;
}

PyObject *watch_fatal(PyObject *, PyObject *given) {
    long file = PyLong_AsLong(given);
    if (file == -1 && PyErr_Occurred()) return nullptr;
    if (fatal_file >= 0) Py_RETURN_FALSE;
    void *warm[4];
    backtrace(warm, 4);  // loads what it needs now: nothing may be loaded in a handler
    fatal_file = (int)file;
    struct sigaction ours = {};
    ours.sa_sigaction = on_fatal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    for (int i = 0; i < FATALS; i++) sigaction(FATAL[i], &ours, &before[i]);
    Py_RETURN_TRUE;
}

PyObject *leave_fatal(PyObject *, PyObject *) {
    for (int i = 0; i < FATALS && fatal_file >= 0; i++) {
        struct sigaction now = {};
        sigaction(FATAL[i], nullptr, &now);
        if (now.sa_sigaction == on_fatal) sigaction(FATAL[i], &before[i], nullptr);
    }
    fatal_file = -1;
    Py_RETURN_NONE;
}

PyObject *threads(PyObject *, PyObject *given) {
    double seconds = PyFloat_AsDouble(given);
    if (seconds == -1.0 && PyErr_Occurred()) return nullptr;
    struct sigaction theirs = {}, ours = {};
    sigaction(ASK, nullptr, &theirs);
    if (theirs.sa_handler != SIG_DFL && theirs.sa_handler != SIG_IGN) return PyList_New(0);  // it has another use
    void *warm[4];
    backtrace(warm, 4);
    ours.sa_sigaction = on_ask;
    ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    int asked = 0;
    Py_BEGIN_ALLOW_THREADS
    for (Stack &one : stacks) one.thread.store(0);
    taken = 0;
    answered = 0;
    sigaction(ASK, &ours, nullptr);
    pid_t me = thread_id();
    if (DIR *tasks = opendir("/proc/self/task")) {
        while (dirent *task = readdir(tasks)) {
            pid_t thread = (pid_t)atol(task->d_name);
            if (thread <= 0 || thread == me || asked == MOST_THREADS) continue;
            if (syscall(SYS_tgkill, getpid(), thread, ASK) == 0) asked++;
        }
        closedir(tasks);
    }
    timespec pause = {0, 1000000};
    for (int waited = 0; answered < asked && waited < seconds * 1000; waited++) nanosleep(&pause, nullptr);
    sigaction(ASK, &theirs, nullptr);
    Py_END_ALLOW_THREADS
    PyObject *told = PyList_New(0);
    for (int i = 0; told && i < MOST_THREADS; i++) {
        if (!stacks[i].thread.load()) continue;
        PyObject *frames = PyList_New(stacks[i].depth);
        for (int j = 0; frames && j < stacks[i].depth; j++)
            PyList_SET_ITEM(frames, j, PyLong_FromVoidPtr(stacks[i].frames[j]));
        PyObject *one = frames ? Py_BuildValue("(iN)", (int)stacks[i].thread.load(), frames) : nullptr;
        if (!one || PyList_Append(told, one) < 0) Py_CLEAR(told);
        Py_XDECREF(one);
    }
    return told;
}

PyMethodDef METHODS[] = {
    {"watch_fatal", watch_fatal, METH_O, "Write the frames of a fatal signal to this file, then pass the signal on."},
    {"leave_fatal", leave_fatal, METH_NOARGS, "Put back the handlers that were there."},
    {"threads", threads, METH_O, "(thread, addresses) of every other thread that answers within this many seconds."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

#else
namespace {
PyMethodDef METHODS[] = {{nullptr, nullptr, 0, nullptr}};
}
#endif

static PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_stacks", nullptr, -1, METHODS, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit__stacks(void) { return PyModule_Create(&MODULE); }
