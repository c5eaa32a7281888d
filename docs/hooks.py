"""Make pages that are written for the repository's viewer into pages of a site.

MkDocs calls these functions by their names; mkdocs.yml names this file.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

LINK = re.compile(r"(?<=\]\()([^)#\s]+)(#[^)\s]*)?(?=\))")
FENCE = re.compile(r"^(```|~~~)")
LIST_ITEM = re.compile(r"^(- |\* |\d+\. )")
LIST_START = re.compile(r"^(- |\* |1\. )")


def on_config(config: Any) -> Any:
    """Replace patterns in the navigation by the pages that match."""
    docs = Path(config.docs_dir)
    for entry in config.nav:
        for title, pages in entry.items():
            if isinstance(pages, str) and "*" in pages:
                found = sorted(docs.glob(pages))
                entry[title] = [page.relative_to(docs).as_posix() for page in found]
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Return a page with links that lead somewhere, and lists that are seen as lists."""
    lines: list[str] = []
    in_code, before = False, ""
    for line in markdown.splitlines():
        in_code ^= bool(FENCE.match(line))
        if not in_code:
            # Python-Markdown wants an empty line before a list, unlike the repository's viewer.
            if LIST_START.match(line) and before.strip() and not is_in_list(before):
                lines.append("")
            line = LINK.sub(lambda found: outward(found, page, config), line)
        lines.append(line)
        before = line
    return "\n".join(lines) + "\n"


def is_in_list(line: str) -> bool:
    return bool(LIST_ITEM.match(line)) or line.startswith(" ")


def outward(link: re.Match[str], page: Any, config: Any) -> str:
    """Return a link that leaves docs/, or to a directory, as one to the repository.

    Any other link stays as it is. So does one to a file that is not there: MkDocs will complain.
    """
    target, anchor = link[1], link[2] or ""
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), target))
    file = Path(config.config_file_path).parent / path
    is_page = path.startswith("docs/") and not file.is_dir()
    if ":" in target or is_page or path.startswith("../") or not file.exists():
        return link[0]
    kind = "tree" if file.is_dir() else "blob"
    return f"{config.repo_url.rstrip('/')}/{kind}/main/{path}{anchor}"
