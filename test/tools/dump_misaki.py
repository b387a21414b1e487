#!/usr/bin/env python3
"""Makes test/fixtures/misaki-phonemes.json: what misaki, the phonemizer of published Kokoro, reads in 40 sentences, in American and British English.

    python3 test/tools/dump_misaki.py SENTENCES

Needs misaki[en] and spaCy's en_core_web_sm. SENTENCES has one a line; the fixture's are 20 each by the Brontë sisters and by Darwin (public domain), and
were not used to write engine/text/misaki-spellings.ts.
"""
import json
import os
import sys

from misaki import en, espeak

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures", "misaki-phonemes.json")
sentences = open(sys.argv[1], encoding="utf-8").read().splitlines()
golden = {}
for accent, british in (("en-us", False), ("en-gb", True)):
    g2p = en.G2P(trf=False, british=british, fallback=espeak.EspeakFallback(british=british))
    golden[accent] = [{"text": text, "misaki": g2p(text)[0]} for text in sentences]
with open(OUT, "w", encoding="utf-8") as file:
    json.dump(golden, file, ensure_ascii=False, indent=1)
    file.write("\n")
