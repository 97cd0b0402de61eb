"""What `make wheel` builds is all a user needs: installed alone, away from this checkout, it watches a training."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest
from story import SECONDS

ROOT = Path(__file__).parents[2]
GOES_IN = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "CHANGELOG.md", "LICENSE", "constraints.txt")

pytestmark = [pytest.mark.story, pytest.mark.slow]


def run(*command: object, folder: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"OMP_NUM_THREADS": "1", "MISSTEP_STRICT": "1"}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Source distribution and wheel, the wheel built from the source distribution as `python -m build` does."""
    if not (ROOT / "src/misstep/hub/static/index.html").is_file():
        pytest.fail("the page was not built: run `make web`")
    copy = tmp_path_factory.mktemp("checkout")
    nothing_built = shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info")
    for folder in ("src", "native"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=nothing_built)
    for name in GOES_IN:
        shutil.copy(ROOT / name, copy / name)
    run(sys.executable, "-m", "build", "--no-isolation", folder=copy)
    return copy / "dist"


@pytest.fixture(scope="module")
def environment(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A venv with only the wheel of its own; the dependencies, torch among them, are those this test runs with."""
    venv = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", "--without-pip", venv, folder=venv)
    (wheel,) = dist.glob("*.whl")
    pip = (sys.executable, "-m", "pip", "--python", venv / "bin" / "python")
    run(*pip, "install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check", wheel, folder=venv)
    (packages,) = venv.glob("lib/python*/site-packages")
    paths = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (packages / "dependencies.pth").write_text("\n".join(sorted(paths)) + "\n", encoding="utf-8")
    return venv


def test_the_wheel_and_the_source_distribution_have_the_page_and_the_data(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    (source,) = dist.glob("*.tar.gz")
    in_wheel = zipfile.ZipFile(wheel).namelist()
    with tarfile.open(source) as archive:
        in_source = [name.split("/", 1)[-1] for name in archive.getnames()]
    page = [
        str(path.relative_to(ROOT / "src")) for path in (ROOT / "src/misstep/hub/static").rglob("*") if path.is_file()
    ]
    data = ["misstep/py.typed", "misstep/capture/shim/sitecustomize.py", "misstep/diagnosis/crash/knowledge.toml"]
    assert set(page + data) <= set(in_wheel)
    assert {f"src/{name}" for name in page + data} | {"native/kernels.h"} <= set(in_source)


def test_misstep_run_from_the_installed_wheel_finds_the_fault_of_the_demo(environment: Path, tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples/torch_log_of_negative.py", tmp_path / "train.py")
    bin = environment / "bin"
    where = "import misstep, misstep.kernels as kernels; print(misstep.__file__, kernels.backend())"
    assert run(bin / "python", "-c", where, folder=tmp_path).startswith(str(environment))
    run(bin / "misstep", "run", "--level", "guard", "--name", "demo", bin / "python", "train.py", folder=tmp_path)
    assert "log" in run(bin / "misstep", "show", "last", folder=tmp_path)
