"""Small documents of each format, made here: what they say, and where it is formatted."""
# ruff: noqa: E501 - sources as programs write them

import io
import zipfile
from collections.abc import Mapping

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_A = "http://schemas.openxmlformats.org/drawingml/2006/main"
_S = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_P = "http://schemas.openxmlformats.org/presentationml/2006/main"
_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_OFFICE = "application/vnd.openxmlformats-officedocument"
DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\r\n'


def zipped(members: Mapping[str, str | bytes], *, stored: tuple[str, ...] = ()) -> bytes:
    """A zip file with members in this order."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            kind = zipfile.ZIP_STORED if name in stored else zipfile.ZIP_DEFLATED
            info = zipfile.ZipInfo(name, (2026, 11, 18, 10, 0, 0))
            file.writestr(info, data, kind)
    return target.getvalue()


def unzipped(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


def types(**parts: str) -> str:
    """What says which member is of which kind."""
    overrides = "".join(
        f'<Override PartName="/{name}" ContentType="{_OFFICE}.{kind}+xml"/>'
        for name, kind in parts.items()
    )
    return f'{DECLARATION}<Types xmlns="{_TYPES}">{overrides}</Types>'


def docx(body: str, **more: str | bytes) -> bytes:
    """A docx file with this body."""
    document = f'{DECLARATION}<w:document xmlns:w="{_W}" xmlns:a="{_A}"><w:body>{body}</w:body></w:document>'
    kinds = {"word/document.xml": "wordprocessingml.document.main"}
    return zipped(
        {
            "[Content_Types].xml": types(**kinds),
            "word/document.xml": document,
            "word/media/image1.png": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
            "word/vbaProject.bin": bytes(range(256)),
            **more,
        }
    )


DOCX_BODY = (
    '<w:p w:rsidR="00A1"><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Report</w:t></w:r></w:p>'
    '<w:p><w:r><w:t xml:space="preserve">Hello </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>dear</w:t></w:r>'
    '<w:r w:rsidR="00B2"><w:rPr><w:b/><w:lang w:val="en-GB"/></w:rPr><w:t xml:space="preserve"> friend</w:t></w:r>'
    '<w:r><w:t xml:space="preserve"> &amp; all, see </w:t></w:r><w:hyperlink r:id="rId4" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><w:r><w:rPr>'
    '<w:rStyle w:val="Link"/></w:rPr><w:t>the page</w:t></w:r></w:hyperlink><w:r><w:t>.</w:t></w:r>'
    '<w:r><w:footnoteReference w:id="2"/></w:r></w:p>'
    "<w:p><w:r><w:t>Name:</w:t><w:tab/><w:t>Anna</w:t></w:r></w:p>"
    '<w:p><w:r><w:t xml:space="preserve">Page </w:t></w:r><w:r><w:fldChar w:fldCharType="begin"/></w:r>'
    '<w:r><w:instrText> PAGE </w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r>'
    '<w:r><w:t>7</w:t></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r><w:r><w:t xml:space="preserve"> of many</w:t></w:r></w:p>'
    '<w:p><w:r><w:t xml:space="preserve">A box: </w:t></w:r><w:r><w:pict><w:txbxContent><w:p><w:r><w:t>inside the box</w:t></w:r></w:p>'
    '</w:txbxContent></w:pict></w:r><w:r><w:t xml:space="preserve"> and on</w:t></w:r></w:p>'
    "<w:p/><w:sectPr/>"
)

_ODF = "urn:oasis:names:tc:opendocument:xmlns"


def odf(body: str, kind: str = "text") -> bytes:
    """A file of OpenDocument."""
    content = (
        f'{DECLARATION}<office:document-content xmlns:office="{_ODF}:office:1.0" '
        f'xmlns:text="{_ODF}:text:1.0" xmlns:table="{_ODF}:table:1.0">'
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    )
    manifest = f'<manifest:manifest xmlns:manifest="{_ODF}:manifest:1.0"/>'
    return zipped(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": content,
            "Pictures/1.png": bytes(range(256)),
            "META-INF/manifest.xml": manifest,
        },
        stored=("mimetype",),
    )


ODT_BODY = (
    '<text:h text:outline-level="1">Report</text:h>'
    '<text:p>Hello <text:span text:style-name="T1">dear friend</text:span> &amp; all<text:note>'
    "<text:note-citation>1</text:note-citation><text:note-body><text:p>A note below.</text:p>"
    "</text:note-body></text:note>, see <text:a>the page</text:a>.</text:p>"
    "<text:p>First line<text:line-break/>second line</text:p><text:p/>"
)
ODS_BODY = (
    '<table:table><table:table-row><table:table-cell office:value-type="string"><text:p>Price</text:p>'
    '</table:table-cell><table:table-cell office:value-type="float" office:value="7"><text:p>7 kg</text:p>'
    '</table:table-cell><table:table-cell table:formula="of:=A1" office:value-type="string">'
    "<text:p>Price</text:p></table:table-cell></table:table-row></table:table>"
)

PPTX = zipped(
    {
        "[Content_Types].xml": types(**{"ppt/slides/slide1.xml": "presentationml.slide"}),
        "ppt/slides/slide1.xml": f'{DECLARATION}<p:sld xmlns:p="{_P}" xmlns:a="{_A}"><p:txBody>'
        '<a:p><a:pPr/><a:r><a:rPr lang="en-US" dirty="0"/><a:t>Good </a:t></a:r><a:r><a:rPr lang="en-US" b="1"/>'
        '<a:t>morning</a:t></a:r><a:r><a:rPr lang="en-GB"/><a:t> everyone</a:t></a:r><a:br/><a:r><a:t>Line two'
        "</a:t></a:r><a:endParaRPr/></a:p></p:txBody></p:sld>",
    }
)
XLSX = zipped(
    {
        "[Content_Types].xml": types(
            **{
                "xl/sharedStrings.xml": "spreadsheetml.sharedStrings",
                "xl/worksheets/sheet1.xml": "spreadsheetml.worksheet",
                "xl/tables/table1.xml": "spreadsheetml.table",
            }
        ),
        "xl/sharedStrings.xml": f'{DECLARATION}<sst xmlns="{_S}"><si><t>Amount</t></si><si><t>Blue cars</t></si>'
        '<si><r><t xml:space="preserve">Red </t></r><r><rPr><b/></rPr><t>houses</t></r></si><si><t>42</t></si></sst>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{_S}"><sheetData><row><c t="inlineStr"><is><t>Inline text</t>'
        "</is></c><c><f>A1&amp;B1</f><v>3</v></c></row></sheetData></worksheet>",
        "xl/tables/table1.xml": f'<table xmlns="{_S}"><tableColumns><tableColumn name="Amount"/></tableColumns></table>',
    }
)

HTML = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>My &amp; page</title><style>p { color: red }</style></head>
<body>
<!-- a comment -->
<p class=x>Hello <b>dear <i>friend</i></b>, see <a href='x.html' title="The page">here</a>&hellip;<br>
  Run <code>make run</code> now.</p>
<p translate="no">Stay</p><p>Not <span class="notranslate">Dragoman</span> but this</p>
<pre>verbatim  text</pre><ul><li>One<li>Two <img src=a.png alt="A picture"> more</ul>
<script>if (a < b) { say("<p>no</p>") }</script>
</body></html>
"""
MARKDOWN = """---
title: Kept
---
# Hello *world* ##

Some **bold text** and `code`, [a link](http://x.y "T"), [ref][1] and [Short].
A second line with \\*stars\\*, <b>HTML</b> and <http://auto.link>.

> A quote
> of two lines

- [ ] a task
- an item

| Left | Right |
|---|---|
| one cell | another **cell** |

<p align="center">A block of <b>HTML</b></p>

```
code = 1
```

[1]: http://a
[short]: http://b
"""
SRT = (
    "1\r\n00:00:01,000 --> 00:00:02,000\r\n<i>Hello there,</i>\r\nmy dear friend.\r\n\r\n"
    "2\r\n00:00:03,000 --> 00:00:04,000\r\n{\\an8}Good night\r\n\r\n3\r\n00:00:05,000 --> 00:00:06,000\r\n\r\n"
)
VTT = (
    "WEBVTT\n\nNOTE not this\n\nSTYLE\n::cue { color: red }\n\nfirst\n00:01.000 --> 00:02.000 align:start\n"
    "<v Anna>Hello &amp; welcome\nmy friend</v>\n\n00:03.000 --> 00:04.000\nGood <c.big>night</c>\n"
)
PO = """# Kept
msgid ""
msgstr ""
"Language: \\n"
"Content-Type: text/plain; charset=UTF-8\\n"

#: a.c:1
#, c-format
msgctxt "menu"
msgid "Hello \\"%s\\""
msgstr ""

msgid "one file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

msgid "Done"
msgstr "Feito"

#~ msgid "Old"
#~ msgstr ""
"""
JSON = """{
  "title": "Hello \\"you\\"",
  "deep": {"list": ["One thing", "https://example.com", 7, true, null], "@note": "Not this"},
  "save": {"message": "Save it", "description": "Not this either"}
}
"""
YAML = """# kept
en:
  hello: Hello world   # kept too
  quoted: 'it''s fine'
  block: |
    Line one
    line two

  folded: >-
    one long
    sentence
  list: [one thing, "two things"]
  anchored: &a Good morning
  again: *a
  flag: yes
  number: 7
"""
CSV = 'id,text,note\r\n1,"Hello, ""world""",some_name\r\n2,Good day,\r\n'
TXT = (
    "Title\n\nThis is a paragraph that has been wrapped at some width, which\nmeans that its lines are "
    "joined before they are being\ntranslated.\n\n  - one item\n  - another item\n"
)

XHTML = (
    '<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "x.dtd">\n'
    '<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en"><head><title>A title</title><script src="a.js"/>'
    "</head><body><p>Hello <em>you</em>&nbsp;there<br/>and <a id='x'/>here</p></body></html>"
)

_EPUB_PAGE = '<html xmlns="http://www.w3.org/1999/xhtml" lang="en"><body><h1>One</h1><p>Hello <i>you</i>&#160;all.</p></body></html>'
EPUB = zipped(
    {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/></rootfiles></container>',
        "OEBPS/content.opf": '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        "<dc:title>A book</dc:title><dc:language>en</dc:language></metadata><manifest>"
        '<item id="a" href="text/page%201.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="n" href="toc.ncx" media-type="application/x-dtbncx+xml"/><item id="c" href="c.css" media-type="text/css"/>'
        "</manifest></package>",
        "OEBPS/text/page 1.xhtml": f'<?xml version="1.0"?>\n<!DOCTYPE html>\n{_EPUB_PAGE}',
        "OEBPS/toc.ncx": '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navLabel><text>First page</text></navLabel></ncx>',
        "OEBPS/c.css": "p { color: red }",
    },
    stored=("mimetype",),
)
XLIFF = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
 <file original="a" source-language="en" datatype="plaintext"><body>
  <trans-unit id="1"><source>Hello <g id="1">dear</g> friend<x id="2"/> now</source></trans-unit>
  <trans-unit id="2"><source>Done</source><target>Feito</target></trans-unit>
  <trans-unit id="3" translate="no"><source>Dragoman</source></trans-unit>
  <trans-unit id="4"><source>Good night</source><target state="new"/><note>Not this</note></trans-unit>
 </body></file>
</xliff>
"""
XLIFF_2 = """<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en">
<file id="f"><unit id="u"><segment id="1"><source>Press <pc id="1">the <ph id="2"/> button</pc> now</source></segment></unit>
</file></xliff>
"""

SAMPLES: dict[str, bytes] = {
    "txt": TXT.encode(),
    "md": MARKDOWN.encode(),
    "html": HTML.encode(),
    "xhtml": XHTML.encode(),
    "docx": docx(DOCX_BODY),
    "pptx": PPTX,
    "xlsx": XLSX,
    "odt": odf(ODT_BODY),
    "odp": odf("<text:p>A slide</text:p>", "presentation"),
    "ods": odf(ODS_BODY, "spreadsheet"),
    "srt": SRT.encode(),
    "vtt": VTT.encode(),
    "po": PO.encode(),
    "xliff": XLIFF.encode(),
    "epub": EPUB,
    "json": JSON.encode(),
    "yaml": YAML.encode(),
    "csv": CSV.encode(),
    "tsv": CSV.replace(",", "\t").encode(),
}
"""A small document of each format."""
