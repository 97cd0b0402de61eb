"""The compiled parts of misstep, in native/: the statistics kernels, and the stacks of machine code in a flight record.

Both are optional: without a C++17 compiler the install succeeds, the numpy twin does the kernels' work, slower, and
flight records lack those stacks. No -march=native: each instruction set is its own source file and is chosen when
the module loads.
"""

from setuptools import Extension, setup

SOURCES = ["module", "clock", "tables", "plain", "avx2", "avx512"]
HEADERS = [
    "arguments",
    "bits",
    "clock",
    "common",
    "kernels",
    "lanes",
    "layout",
    "pairs",
    "records",
    "steprows",
    "summary",
]

setup(
    ext_modules=[
        Extension(
            "misstep.kernels._native",
            sources=[f"native/{name}.cpp" for name in SOURCES],
            depends=[f"native/{name}.h" for name in HEADERS],
            language="c++",
            # Nobody reads errno or floating-point flags after a kernel; NaN and infinity keep their meaning.
            extra_compile_args=[
                "-std=c++17",
                "-O3",
                "-fno-math-errno",
                "-fno-trapping-math",
                "-fvisibility=hidden",
                "-g0",
            ],
            optional=True,
        ),
        Extension(
            "misstep.capture.crash._stacks",
            sources=["native/stacks.cpp"],
            language="c++",
            extra_compile_args=["-std=c++17", "-O2", "-fvisibility=hidden", "-g0"],
            optional=True,
        ),
    ]
)
