#!/usr/bin/env python3
"""Writes into test/fixtures/misaki-languages.json what misaki, the phonemizer of published Kokoro, reads in its sentences in Spanish, French, Italian, Brazilian
Portuguese and Hindi, which are our own.

    python3 test/tools/dump_misaki_languages.py

Needs misaki 0.9.4, phonemizer-fork and espeakng-loader of PyPI.
"""
import json
import os

from misaki import espeak

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures", "misaki-languages.json")
ESPEAK = {"fr": "fr-fr"}

with open(FILE, encoding="utf-8") as file:
    golden = json.load(file)
for language, sentences in golden.items():
    g2p = espeak.EspeakG2P(ESPEAK.get(language, language))
    for sentence in sentences:
        sentence["misaki"] = g2p(sentence["text"])[0]
with open(FILE, "w", encoding="utf-8") as file:
    json.dump(golden, file, ensure_ascii=False, indent=1)
    file.write("\n")
