"""Settings: from the call, the environment, the file and the defaults, in this order."""

from __future__ import annotations

from pathlib import Path

import pytest

from misstep.errors import SettingError
from misstep.settings import BY_NAME, SETTINGS, Settings


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file and no variable of the developer's own."""
    monkeypatch.chdir(tmp_path)
    for setting in SETTINGS:
        monkeypatch.delenv(setting.variable, raising=False)


def test_the_defaults_hold_when_nothing_is_said() -> None:
    assert Settings.load().as_dict() == {s.name: s.default for s in SETTINGS if s.name != "token"}


def test_the_call_beats_the_environment_beats_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("misstep.toml").write_text('level = "guard"\nmemory_mb = 5\nbudget = "2%"\n', encoding="utf-8")
    monkeypatch.setenv("MISSTEP_MEMORY_MB", "6")
    monkeypatch.setenv("MISSTEP_BUDGET", "3%")

    settings = Settings.load(budget=0.04, memory_mb=None)

    assert (settings.level, settings.memory_mb, settings.budget) == ("guard", 6, 0.04)


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("budget", "3%", 0.03),
        ("budget", "0.5", 0.5),
        ("strict", "1", True),
        ("strict", "off", False),
        ("strict", "", False),
        ("memory_mb", "10", 10),
        ("steps", 5, "5"),
        ("lang", "", ""),
    ],
)
def test_values_are_read_as_the_type_of_their_default(name: str, given: object, value: object) -> None:
    assert getattr(Settings({name: given}), name) == value


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("levle", "op", "no setting is called 'levle'; did you mean level"),
        ("level", "deep", "level is 'deep'; it is one of off, guard, module, op"),
        ("memory_mb", "much", "memory_mb .or MISSTEP_MEMORY_MB. is 'much', which is no int"),
        ("strict", "maybe", "no bool"),
        ("budget", "x%", "no float"),
        ("budget", "nan", "no float"),
        ("memory_mb", -1, "memory_mb is -1; it is 0 or more"),
        ("memory_mb", None, "no int"),
    ],
)
def test_what_does_not_fit_is_explained(name: str, given: object, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        Settings({name: given})


@pytest.mark.parametrize("content", [b"level = ", b'name = "\xff"'])
def test_a_broken_file_is_named(content: bytes) -> None:
    Path("misstep.toml").write_bytes(content)

    with pytest.raises(SettingError, match=r"cannot read misstep\.toml"):
        Settings.load()


def test_a_child_sees_the_same_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings({"budget": "3%", "strict": True, "token": "secret", "level": "op"})
    environment = settings.environment()
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert environment == {
        "MISSTEP_BUDGET": "0.03",
        "MISSTEP_STRICT": "True",
        "MISSTEP_TOKEN": "secret",
        "MISSTEP_LEVEL": "op",
    }
    assert Settings.load().as_dict() == settings.as_dict()


def test_a_child_sees_a_setting_put_back_to_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file says op, the call says module, which is the default: the child must not read the file's op again."""
    Path("misstep.toml").write_text('level = "op"\n', encoding="utf-8")
    settings = Settings.load(level="module")
    for name, value in settings.environment().items():
        monkeypatch.setenv(name, value)

    assert Settings.load().level == "module"


def test_the_token_is_not_shown() -> None:
    assert "token" not in Settings({"token": "secret"}).as_dict()


def test_an_unknown_setting_is_asked_for_by_a_clear_error() -> None:
    with pytest.raises(SettingError, match="did you mean budget"):
        _ = Settings().bugdet


def test_every_setting_explains_itself_and_its_default_fits() -> None:
    for setting in SETTINGS:
        assert setting.help.endswith(".")
        assert not setting.choices or setting.default in setting.choices
    assert len(BY_NAME) == len(SETTINGS)
