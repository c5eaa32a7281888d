"""What each format takes for text, and what it leaves."""
# ruff: noqa: E501 - sources as programs write them

from dragoman_documents import Document, DocumentSettings, open_document
from dragoman_documents.exchange.bilingual import BilingualFile, write_bilingual
from dragoman_documents.exchange.tmx import read_memory
from support import documents as made
from support.documents import SAMPLES, docx, unzipped


def found(name: str, data: bytes | str | None = None, **settings: object) -> list[str]:
    given = SAMPLES[name] if data is None else data
    return [each.text for each in opened(name, given, **settings).segments]


def opened(name: str, data: bytes | str, **settings: object) -> Document:
    data = data.encode() if isinstance(data, str) else data
    return open_document(data, name, DocumentSettings(**settings))  # type: ignore[arg-type]


def written(name: str, data: str, *translations: str, language: str | None = None) -> str:
    document = opened(name, data)
    assert len(document.segments) == len(translations), document.segments
    given = {s.id: text for s, text in zip(document.segments, translations, strict=True)}
    return document.write(given, language).decode()


def test_docx() -> None:
    assert found("docx") == [
        "Report",
        "Hello <x1>dear friend</x1> &amp; all, see <x2>the page</x2>.",
        "Name:",
        "Anna",
        "Page <x1/> of many",
        "A box: <x1/> and on",
        "inside the box",
    ]


def test_docx_moves_formats_with_their_words() -> None:
    document = open_document(SAMPLES["docx"], "docx")
    data = document.write({"2": "Veja <x2>a página</x2>, <x1>caro amigo</x1> &lt; todos"})
    body = unzipped(data)["word/document.xml"].decode()
    assert (
        '<w:p><w:r><w:t xml:space="preserve">Veja </w:t></w:r><w:hyperlink r:id="rId4" xmlns:r='
        '"http://schemas.openxmlformats.org/officeDocument/2006/relationships"><w:r><w:rPr><w:rStyle '
        'w:val="Link"/></w:rPr><w:t>a página</w:t></w:r></w:hyperlink><w:r><w:t xml:space="preserve">, '
        '</w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>caro amigo</w:t></w:r><w:r><w:t xml:space="preserve"> '
        '&lt; todos</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r></w:p>'
    ) in body


def test_docx_translates_what_is_inside_of_what_moves() -> None:
    document = open_document(SAMPLES["docx"], "docx")
    body = unzipped(document.write({"6": "<x1/> e uma caixa", "7": "na caixa"}))[
        "word/document.xml"
    ]
    box = "<w:p><w:r><w:t>na caixa</w:t></w:r></w:p></w:txbxContent></w:pict></w:r>"
    assert f'{box}<w:r><w:t xml:space="preserve"> e uma caixa</w:t></w:r>' in body.decode()


def test_docx_links_that_are_fields_keep_their_text() -> None:
    mark = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'
    body = (
        "<w:p><w:r><w:t>See </w:t></w:r>" + mark.format("begin") + "<w:r><w:instrText>HYPERLINK x"
        "</w:instrText></w:r>"
        + mark.format("separate")
        + "<w:r><w:t>the page</w:t></w:r>"
        + mark.format("end")
        + "</w:p>"
    )
    assert found("docx", docx(body)) == ["See<x1>the page</x1>"]


def test_odt() -> None:
    assert found("odt") == [
        "Report",
        "Hello <x1>dear friend</x1> &amp; all<x2/>, see <x3>the page</x3>.",
        "A note below.",
        "First line",
        "second line",
    ]


def test_sheets_leave_values_formulas_and_names_of_columns() -> None:
    assert found("ods") == ["Price"]
    assert found("xlsx") == ["Blue cars", "<x1>Red </x1>houses", "Inline text"]
    assert open_document(SAMPLES["xlsx"], "xlsx").left == {
        "names of table columns, which formulas may refer to": 1
    }


def test_pptx() -> None:
    assert found("pptx") == ["Good <x1>morning</x1> everyone", "Line two"]


def test_html() -> None:
    assert found("html") == [
        "My & page",
        "Hello <x1>dear <x2>friend</x2></x1>, see <x3>here</x3>…",
        "The page",
        "Run <x1/> now.",
        "Not <x1/> but this",
        "One",
        "Two <x1/> more",
        "A picture",
    ]


def test_html_changes_nothing_but_text_and_language() -> None:
    source = "<HTML LANG=en><P Align = 'left' >Hello  &nbsp; <B\n>you</B > </P><BR/>\n<custom-tag>x</custom-tag>"
    assert (
        written("html", source, "Olá <x1>tu</x1>", "y", language="pt-BR")
        == "<HTML LANG=pt-BR><P Align = 'left' >Olá <B\n>tu</B > </P><BR/>\n<custom-tag>y</custom-tag>"
    )


def test_html_of_old_encodings() -> None:
    source = '<meta charset="iso-8859-1"><p>Caf\xe9</p>'.encode("latin-1")
    document = open_document(source, "html")
    assert [each.text for each in document.segments] == ["Café"]
    assert document.write({"1": "Kawa é €"}).endswith(b"<p>Kawa \xe9 &#8364;</p>")


def test_html_with_tags_that_do_not_match() -> None:
    assert found("html", "<p>one <b>two <i>three</b> four</i> five <p>six</em> seven") == [
        "one <x1>two <x2/>three</x1> four<x3/> five",
        "six<x1/> seven",
    ]


def test_markdown() -> None:
    assert found("md") == [
        "Hello <x1>world</x1>",
        "Some <x1>bold text</x1> and <x2/>, <x3>a link</x3>, <x4>ref</x4> and <x5>Short</x5>. A second line with *stars*, <x6>HTML</x6> and <x7/>.",
        "A quote of two lines",
        "a task",
        "an item",
        "Left",
        "Right",
        "one cell",
        "another <x1>cell</x1>",
        "A block of <x1>HTML</x1>",
    ]


def test_markdown_writes_text_that_stays_text() -> None:
    assert written("md", "Plain\n", "# no *heading* [a] 1_a_b `x`") == (
        "\\# no \\*heading\\* \\[a\\] 1_a_b \\`x\\`\n"
    )
    assert written("md", "Plain\n", "1. not a list") == "1\\. not a list\n"
    assert written("md", "|a|\n|-|\n|b|\n", "x|y", "z") == "|x\\|y|\n|-|\n|z|\n"
    assert written("md", "See [Name].\n\n[name]: /x\n", "Veja <x1>o nome</x1>.") == (
        "Veja [o nome][Name].\n\n[name]: /x\n"
    )


def test_subtitles() -> None:
    assert found("srt") == ["<x1>Hello there,</x1> my dear friend.", "Good night"]
    assert found("vtt") == [
        "Hello &amp; welcome my friend".replace("&amp;", "&"),
        "Good <x1>night</x1>",
    ]
    text = made.SRT
    assert written(
        "srt", text, "<x1>Olá,</x1> meu caro e velho amigo.", "Boa noite"
    ) == text.replace(
        "<i>Hello there,</i>\r\nmy dear friend.", "<i>Olá,</i> meu caro e\r\nvelho amigo."
    ).replace("Good night", "Boa noite")


def test_po() -> None:
    document = open_document(SAMPLES["po"], "po")
    assert [(each.text, each.context) for each in document.segments] == [
        ('Hello "%s"', "menu"),
        ("one file", ""),
        ("%d files", ""),
    ]
    assert document.left == {"strings that have a translation": 1}
    assert written("po", made.PO, 'Olá "%s"', "um arquivo", "%d arquivos", language="pt-BR") == (
        made.PO.replace('"Hello \\"%s\\""\nmsgstr ""', '"Hello \\"%s\\""\nmsgstr "Olá \\"%s\\""')
        .replace('msgstr[0] ""', 'msgstr[0] "um arquivo"')
        .replace('msgstr[1] ""', 'msgstr[1] "%d arquivos"')
        .replace("Language: ", "Language: pt_BR")
    )


def test_xliff() -> None:
    document = open_document(SAMPLES["xliff"], "xliff")
    assert [each.text for each in document.segments] == [
        "Hello <x1>dear</x1> friend<x2/> now",
        "Good night",
    ]
    assert document.left == {
        "units that have a translation": 1,
        "units that are not to be translated": 1,
    }
    first = "<x2/><x1>Caro</x1> amigo &amp; olá"
    assert written("xliff", made.XLIFF, first, "Boa noite", language="pt") == made.XLIFF.replace(
        "now</source>",
        'now</source><target><x id="2"/><g id="1">Caro</g> amigo &amp; olá</target>',
    ).replace('<target state="new"/>', "<target>Boa noite</target>").replace(
        'datatype="plaintext"', 'datatype="plaintext" target-language="pt"'
    )


def test_xliff_2() -> None:
    text = "Aperte <x1>o botão <x2/></x1>"
    assert written("xliff", made.XLIFF_2, text, language="pt") == made.XLIFF_2.replace(
        "</source>", '</source><target>Aperte <pc id="1">o botão <ph id="2"/></pc></target>'
    ).replace('srcLang="en"', 'srcLang="en" trgLang="pt"')


def test_epub() -> None:
    assert found("epub") == ["A book", "One", "Hello <x1>you</x1>\xa0all.", "First page"]
    data = open_document(SAMPLES["epub"], "epub").write({"1": "Um livro"}, "pt")
    assert data.index(b"application/epub+zip") == len("mimetype") + 30  # first, and not packed
    after = unzipped(data)
    assert b"<dc:title>Um livro</dc:title><dc:language>pt<" in after["OEBPS/content.opf"]
    assert b'lang="pt"' in after["OEBPS/text/page 1.xhtml"]


def test_memories_are_read() -> None:
    document = open_document(SAMPLES["po"], "po")
    pairs = [(segment, f"<{segment.text}>") for segment in document.segments]
    file = BilingualFile(name="a.po", format="po", pairs=pairs)
    data = write_bilingual("tmx", [file], "en", "pt")
    assert read_memory(data, "en-GB", "pt-BR") == {each.text: new for each, new in pairs}
    assert read_memory(data, "en", "de") == {}


def test_catalogues() -> None:
    assert found("json") == ['Hello "you"', "One thing", "Save it"]
    assert found("yaml") == [
        "Hello world",
        "it's fine",
        "Line one\nline two",
        "one long sentence",
        "one thing",
        "two things",
        "Good morning",
    ]


def test_yaml_is_quoted_where_it_has_to_be() -> None:
    assert written(
        "yaml", "en:\n  a: Text # c\n  b: [x, y]\n", "yes: no # x", "a, b", "sim", language="pt"
    ) == ('pt:\n  a: "yes: no # x" # c\n  b: ["a, b", sim]\n')
    assert written("yaml", "a: Text\nb: Text\n", "no", "7 up") == 'a: "no"\nb: "7 up"\n'


def test_yaml_keeps_lines_and_their_indentation() -> None:
    source = "a: |\n  One\n    two\nb: |\n    three\n\nc: x y\n"
    assert written("yaml", source, "Um\n  dois", "três", "z") == (
        "a: |\n  Um\n    dois\nb: |\n    três\n\nc: z\n"
    )


def test_json_keeps_how_letters_are_written() -> None:
    assert written("json", '{"a": "caf\\u00e9"}', "é") == '{"a": "\\u00e9"}'
    assert written("json", '{"a": "coffee"}', "é") == '{"a": "é"}'


def test_tables() -> None:
    assert found("csv") == ['Hello, "world"', "Good day"]
    assert found("csv", "a;b\none;two\n") == ["one", "two"]
    assert found("csv", "a;b\none;two\n", columns=("b",)) == ["two"]
    assert found("csv", "a;b\none;two\n", columns=("1",)) == ["one"]
    assert written("csv", "a\nOne\n", "Um, dois") == 'a\n"Um, dois"\n'


def test_plain_text() -> None:
    assert found("txt") == [
        "Title",
        "This is a paragraph that has been wrapped at some width, which means that its lines are joined before they are being translated.",
        "one item",
        "another item",
    ]
