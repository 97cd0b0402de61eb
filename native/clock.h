// The clock of a step, as a type of the native module.
#pragma once

#include <Python.h>

namespace misstep {

bool add_clock(PyObject *module);

}  // namespace misstep
