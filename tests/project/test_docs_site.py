"""The documentation: links lead somewhere, the site builds, and the reference is complete.

`make docs` makes the environment that builds the site; tests that need it are skipped without it.
"""

import re
import shutil
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import dragoman_client
from support import ROOT

DOCS = ROOT / "docs"
BUILDER = ROOT / ".venv-docs" / "bin" / "python"
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / ".github").glob("*.md"),
        *DOCS.rglob("*.md"),
        *(ROOT / "models").glob("*.md"),
        *(ROOT / "benchmarks").glob("*.md"),
    ]
)
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
LOADED = (
    re.compile(r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//[^>]*"""),
    re.compile(r"""<link\b(?=[^>]*rel=["']?(?!canonical))[^>]*href=["']?(?:https?:)?//[^>]*"""),
)
"""Elements of HTML that make a browser ask another host."""
PATIENCE_S = 120.0


def without_code(text: str) -> str:
    """Return Markdown without what it shows as code."""
    text = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(`+).*?\1", "", text)


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page's headings, as the forge and the site make them."""
    text = re.sub(r"^(```|~~~).*?^\1", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    seen: Counter[str] = Counter()
    found = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", shown.strip().lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return frozenset(found)


def broken_links(page: Path) -> list[str]:
    """Return what is wrong with the links of a page that stay within the repository."""
    problems = []
    for target, anchor in LINK.findall(without_code(page.read_text())):
        if ":" in target:
            continue
        file = page.parent / target if target else page
        if not file.exists():
            problems.append(f"{target} is not there")
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            problems.append(f"{target} has no heading #{anchor}")
    return problems


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_within_the_repository_leads_somewhere(page: Path) -> None:
    assert broken_links(page) == []


def test_broken_links_are_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A page, of two words\n"
        "[here](#a-page-of-two-words) [nowhere](#b) [gone](gone.md) [other](page.md#c)\n"
        "`[code](is.not)` [outside](https://example.com/page.md)\n"
        "```\n# no heading\n[code](is.not)\n```\n"
        "[in code](#no-heading)\n"
    )
    assert broken_links(page) == [
        " has no heading #b",
        "gone.md is not there",
        "page.md has no heading #c",
        " has no heading #no-heading",
    ]


def test_every_page_is_in_the_navigation() -> None:
    """So that whoever adds a page hears of it without building the site."""
    _, _, rest = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")
    listed = re.findall(r"^ .*?([\w/*-]+\.md)", rest.partition("\nplugins:")[0], re.MULTILINE)
    found = [page for pattern in listed for page in DOCS.glob(pattern)]
    assert sorted(found) == sorted(DOCS.rglob("*.md")), "mkdocs.yml: nav has to list each page once"


def test_the_reference_has_every_public_name_once() -> None:
    pages = sorted((DOCS / "reference").glob("*.md"))
    text = "".join(page.read_text() for page in pages)
    named = re.findall(r"^::: dragoman_client\.(\w+)$", text, re.MULTILINE)
    assert sorted(named) == sorted(dragoman_client.__all__)


def build(project: Path, site: Path) -> subprocess.CompletedProcess[str]:
    if not BUILDER.exists():
        pytest.skip(f"{BUILDER.relative_to(ROOT)} is not there: `make docs` makes it")
    return subprocess.run(
        [BUILDER, "-m", "mkdocs", "build", "--strict", "--site-dir", site],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


def test_the_site_builds_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    built = build(ROOT, tmp_path)
    assert built.returncode == 0, built.stderr
    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) > len(list(DOCS.rglob("*.md")))  # and one for what is not found
    for page in pages:
        html = page.read_text()
        assert [found for kind in LOADED for found in kind.findall(html)] == [], page
        # With this the theme's script would ask the forge for numbers of stars.
        assert 'data-md-component="source"' not in html, page
    styles = "".join(sheet.read_text() for sheet in tmp_path.rglob("*.css"))
    assert not re.search(r"url\([\"']?(https?:)?//|@import", styles)

    wire = (tmp_path / "wire" / "index.html").read_text()
    assert "/blob/main/protos/dragoman/v1/translation.proto" in wire
    clients = (tmp_path / "reference" / "clients" / "index.html").read_text()
    assert 'id="dragoman_client.Client.translate_many"' in clients


def test_a_broken_link_fails_the_build(tmp_path: Path) -> None:
    """Two pages with the settings of the whole site, which would take many times as long."""
    docs = tmp_path / "docs"
    shutil.copytree(DOCS / "templates", docs / "templates")
    shutil.copy(DOCS / "hooks.py", docs)
    before, _, rest = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")
    after = rest.partition("\nplugins:")[2]
    settings = f"{before}\nnav: [{{Here: index.md}}, {{Other: other.md}}]\n\nplugins:{after}"
    (tmp_path / "mkdocs.yml").write_text(settings.replace("paths: [client]", f"paths: [{ROOT}]"))
    (docs / "other.md").write_text("# Other\n\n[back](index.md#here)\n")
    (docs / "index.md").write_text("# Here\n\n[a page](gone.md) and [a part](other.md#gone)\n")
    built = build(tmp_path, tmp_path / "site")
    assert built.returncode != 0
    assert built.stderr.count("WARNING -") == 2
    assert "'gone.md'" in built.stderr
    assert "'other.md#gone'" in built.stderr
