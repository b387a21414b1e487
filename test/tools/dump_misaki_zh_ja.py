#!/usr/bin/env python3
"""Makes test/fixtures/misaki-zh.json or misaki-ja.json: what misaki, the phonemizer of published Kokoro, reads in sentences of Mandarin or Japanese.

    python3 test/tools/dump_misaki_zh_ja.py zh|ja [SENTENCES]

Needs misaki 0.9.4 with its extras for the language (for ja, the dictionary unidic-lite). SENTENCES has one a line; without it, those of the fixture are read
again. They were written for it. For zh, `syllables` has every syllable of pypinyin's table in the fourth tone.
"""
import json
import os
import sys

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures", f"misaki-{sys.argv[1]}.json")


def mandarin(sentences):
    from misaki import zh
    from pypinyin import Style, lazy_pinyin

    g2p = zh.ZHG2P()
    golden = {"sentences": [{"text": text, "misaki": g2p(text)[0]} for text in sentences], "syllables": {}}
    for syllable in sorted({lazy_pinyin(chr(code), style=Style.NORMAL)[0] for code in range(0x4E00, 0xA000)}):
        golden["syllables"][syllable] = g2p.py2ipa(syllable + "4").replace(chr(815), "")
    return golden


def japanese(sentences):
    from misaki import ja

    g2p = ja.JAG2P()
    return {"sentences": [{"text": text, "misaki": g2p(text)[0]} for text in sentences]}


if len(sys.argv) > 2:
    texts = [line for line in open(sys.argv[2], encoding="utf-8").read().splitlines() if line.strip()]
else:
    texts = [sentence["text"] for sentence in json.load(open(OUT, encoding="utf-8"))["sentences"]]
made = {"zh": mandarin, "ja": japanese}[sys.argv[1]](texts)
with open(OUT, "w", encoding="utf-8") as file:
    json.dump(made, file, ensure_ascii=False, indent=0)
    file.write("\n")
