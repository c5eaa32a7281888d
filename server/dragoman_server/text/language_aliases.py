"""Names of languages that models use beside the standard ones, and what they stand for.

docs/wire.md shows these tables.
"""

CODES = {
    "pob": "pt-BR",  # OPUS-MT (Tatoeba Challenge), beside por
    "pb": "pt-BR",  # Argos Translate and LibreTranslate
    "zt": "zh-Hant",  # Argos Translate and LibreTranslate
    "ns": "nso",  # M2M-100
}
"""Codes that are no language of the standard, each with the tag that it stands for."""

WIDER = {
    "nb": "no",  # M2M-100 has no, NLLB nob
    "pbt": "ps",  # M2M-100 has ps, NLLB pbt
    "fuv": "ff",  # M2M-100 has ff, NLLB fuv
    "quy": "qu",  # OPUS-MT has qu, NLLB quy
}
"""Languages that are what people mean by a wider one, where langcodes does not say so.

langcodes knows the usual ones: ``cmn`` is what is meant by ``zh``, ``arb`` by ``ar``.
"""
