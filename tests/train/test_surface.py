from __future__ import annotations

import subprocess
import sys

import misstep.train


def test_every_public_name_can_be_had_and_nothing_else_is_listed() -> None:
    homes = [name for names in misstep.train._NAMES.values() for name in names]
    assert sorted(misstep.train.__all__) == sorted(homes) == dir(misstep.train)
    assert all(getattr(misstep.train, name) is not None for name in misstep.train.__all__)


def test_importing_the_training_api_imports_no_framework() -> None:
    script = (
        "import sys\n"
        "from misstep.train import *\n"
        "from misstep.train import Model, Accuracy, LossMonitor, WarmUpLR, GeneratorDataset\n"
        "print(sorted({'torch', 'mindspore', 'sklearn', 'scipy', 'rich'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
