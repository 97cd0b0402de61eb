"""The one compiled part of misstep: the statistics kernels in native/. Everything else is in pyproject.toml.

The extension is optional: without a C++17 compiler the install succeeds and the numpy twin does the same work,
slower. No -march=native: each instruction set is its own source file and is chosen when the module loads.
"""

from setuptools import Extension, setup

SOURCES = ["module", "tables", "plain", "avx2", "avx512"]
HEADERS = ["bits", "common", "kernels", "lanes", "layout", "pairs", "records", "summary"]

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
        )
    ]
)
