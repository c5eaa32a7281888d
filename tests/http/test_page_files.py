"""The files of the page for people: complete, described, and nothing that its policy forbids."""

import re
from html.parser import HTMLParser

from support import ROOT

PAGE = ROOT / "server/dragoman_server/http_api/page"
MODULES = sorted((PAGE / "modules").glob("*.js"))
SCRIPTS = [PAGE / "theme.js", *MODULES]
MAX_LINES = 350


class Document(HTMLParser):
    """The page, and what its elements have."""

    def __init__(self) -> None:
        super().__init__()
        self.attributes: list[tuple[str, str, str]] = []
        """Tag, attribute and value, for all elements."""
        self.feed((PAGE / "index.html").read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def values(self, name: str) -> list[str]:
        return [value for _, given, value in self.attributes if given == name]


def test_the_documentation_lists_every_module() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/page.md").read_text(), re.MULTILINE)
    assert sorted(listed) == [module.stem for module in MODULES]
    for script in SCRIPTS:
        text = script.read_text()
        assert text.startswith("// "), f"{script.name} does not say what it is for"
        assert len(text.splitlines()) <= MAX_LINES


def test_all_that_is_referred_to_is_there() -> None:
    document = Document()
    ids = document.values("id")
    assert len(set(ids)) == len(ids)
    for script in SCRIPTS:
        text = script.read_text()
        assert set(re.findall(r'getElementById\("([^"]+)"\)', text)) <= set(ids), script.name
        for imported in re.findall(r'from "([^"]+)"', text):
            assert (script.parent / imported).is_file(), f"{script.name} imports {imported}"
    for name in ("for", "aria-labelledby", "aria-describedby"):
        assert set(document.values(name)) <= set(ids)
    files = [value for value in document.values("href") + document.values("src") if "." in value]
    assert len(files) == 7
    assert all((PAGE / file).is_file() for file in files)


def test_nothing_is_inline_and_nothing_comes_from_elsewhere() -> None:
    document = Document()
    names = {name for _, name, _ in document.attributes}
    assert "style" not in names
    assert not [name for name in names if name.startswith("on")]
    scripts = [name for tag, name, _ in document.attributes if tag == "script"]
    assert scripts.count("src") == 2
    assert "<style" not in (PAGE / "index.html").read_text()
    for file in PAGE.rglob("*.*"):
        addresses = re.findall(r"https?://[^\s\"')]+", file.read_text())
        assert set(addresses) <= {"http://www.w3.org/2000/svg"}, file.name
