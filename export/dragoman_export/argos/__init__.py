"""From packages of Argos Translate, which hold CTranslate2 models, to what the exporter takes."""
