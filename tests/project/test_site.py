"""The documentation builds as a site, strictly: every link leads somewhere, in both languages."""

from __future__ import annotations

import os
import posixpath
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]


def build(folder: Path, into: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(into)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("site")
    done = build(ROOT, into)
    assert done.returncode == 0, done.stdout + done.stderr
    return into


class Links(HTMLParser):
    """Every address a page names, and the places in it that can be linked to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.places: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.places.update(value for key in ("id", "name") if (value := given.get(key)))
        self.addresses += [value for key in ("href", "src") if (value := given.get(key))]


@pytest.mark.parametrize("language", ["", "zh"], ids=["English", "Chinese"])
def test_every_link_of_the_site_leads_to_a_file_and_a_place_in_it(site: Path, language: str) -> None:
    pages = [page for page in (site / language).rglob("index.html") if bool(language) or "zh" not in page.parts]
    assert len(pages) > 15
    parsed = {page: Links(page) for page in site.rglob("index.html")}
    lost = []
    for page in pages:
        for address in parsed[page].addresses:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc or parts.path.startswith("/"):
                continue
            target = Path(posixpath.normpath(page.parent / unquote(parts.path))) if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            place = unquote(parts.fragment)
            if not target.is_file() or (place and target in parsed and place not in parsed[target].places):
                lost.append(f"{page.relative_to(site)}: {address}")
    assert not lost


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/*.zh.md")), ids=lambda page: page.name)
def test_a_chinese_page_is_the_chinese_version_of_its_english_page(site: Path, page: Path) -> None:
    name = page.name.removesuffix(".zh.md")
    built = site / "zh" / ("" if name == "index" else name) / "index.html"
    heading = page.read_text(encoding="utf-8").splitlines()[0].lstrip("# ").replace("`", "")
    assert '<html lang="zh"' in built.read_text(encoding="utf-8")
    assert heading.split()[0] in built.read_text(encoding="utf-8")


def test_a_broken_link_fails_the_build(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("*.png"))
    shutil.copy(ROOT / "mkdocs.yml", tmp_path / "mkdocs.yml")
    with (tmp_path / "docs/nan.zh.md").open("a", encoding="utf-8") as page:
        page.write("\n[lost](nowhere.md)\n")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    assert "nowhere.md" in done.stdout + done.stderr
