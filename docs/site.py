"""What the site needs and the pages, which are also read as files, cannot say; mkdocs.yml names this hook."""

from __future__ import annotations

import posixpath
import re
from typing import Any

CHINESE = re.compile(r"\]\((?!https?:)([^)#\s]+)\.zh\.md")
"""As files, Chinese pages link to Chinese pages; on the site, a link to X.md leads to X in the reader's language."""
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|#)([^)#\s]+)[^)]*\)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """A page's text with links for the site: by language, a link to code as its text, decisions with their list."""
    folder = posixpath.dirname(page.file.src_uri)

    def placed(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[2]))
        if target.startswith("../"):
            return link[1]
        return link[0]

    markdown = CHINESE.sub(r"](\1.md", markdown)
    if page.file.src_uri == "decisions/index.md":
        numbered = sorted(file.src_uri for file in files if re.match(r"decisions/\d", file.src_uri))
        markdown += "\n" + "\n".join(f"- [{_title(uri)}]({posixpath.basename(uri)})" for uri in numbered) + "\n"
    return LINK.sub(placed, markdown)


def _title(uri: str) -> str:
    return posixpath.basename(uri).removesuffix(".md").replace("-", " ")
