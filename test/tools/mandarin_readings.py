#!/usr/bin/env python3
"""Makes engine/text/mandarin-readings.ts: how Chinese characters are read alone, and words in which they are read otherwise, from pypinyin's tables (MIT).

    python3 test/tools/mandarin_readings.py

Needs pypinyin and jieba from PyPI (both MIT). Characters are those of GB 2312, of the first level of Big5, and the 8,000 most frequent of jieba's words. Words
are those that jieba has seen LEAST_FREQUENCY times, if the table would not give their readings without them.
"""
import collections
import os

import jieba
from pypinyin import Style, lazy_pinyin
from pypinyin.constants import PHRASES_DICT

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "engine", "text", "mandarin-readings.ts")
LEAST_FREQUENCY = 5
FREQUENT_CHARACTERS = 8000


def is_chinese(word):
    return all("\u4e00" <= c <= "\u9fff" for c in word)


def reading(word):
    return lazy_pinyin(word, style=Style.TONE3, neutral_tone_with_five=True)


def decodes(codec, rows, first, last):
    for high in rows:
        for low in range(first, last):
            try:
                yield bytes((high, low)).decode(codec)
            except UnicodeDecodeError:
                pass


frequency, of_characters = {}, collections.Counter()
with open(os.path.join(os.path.dirname(jieba.__file__), "dict.txt"), encoding="utf-8") as file:
    for line in file:
        word, count, _ = line.split()
        frequency[word] = int(count)
        for character in word:
            of_characters[character] += int(count)

characters = set(decodes("gb2312", range(0xB0, 0xF8), 0xA1, 0xFF)) | set(decodes("big5", range(0xA4, 0xC7), 0x40, 0xFF))
characters |= {c for c, _ in of_characters.most_common(FREQUENT_CHARACTERS)}
alone = {c: reading(c)[0] for c in sorted(characters) if is_chinese(c)}

# What a word needs beside the shorter ones: the readings at the places where longest matches give others, or none where they must not match.
kept = {}


def matched(word):
    """Readings by the longest matches of the kept words, from left to right."""
    out = []
    while len(out) < len(word):
        rest = word[len(out):]
        length = next((n for n in range(len(rest), 1, -1) if rest[:n] in kept), 1)
        out += kept.get(rest[:length]) or [alone.get(c) for c in rest[:length]]
    return out


for word in sorted((w for w in PHRASES_DICT if is_chinese(w) and len(w) > 1), key=lambda w: (len(w), w)):
    true = reading(word)
    if frequency.get(word, 0) >= LEAST_FREQUENCY and len(true) == len(word) and all(c in alone for c in word) and matched(word) != true:
        kept[word] = true

by_reading = collections.defaultdict(str)
for character, syllable in alone.items():
    by_reading[syllable] += character
words, plain = collections.defaultdict(list), []
for word, syllables in kept.items():
    others = {(c, s) for c, s in zip(word, syllables) if alone[c] != s}
    if not others:
        plain.append(word)
    for character, syllable in others:
        words[character + syllable].append("".join("~" if (c, s) == (character, syllable) else c for c, s in zip(word, syllables)))

with open(OUT, "w", encoding="utf-8") as file:
    file.write('/** Readings of Chinese characters in pinyin, with the tone as a digit (5: neutral), made from the tables of pypinyin (MIT, mozillazg and others) by test/tools/mandarin_readings.py. */\n\n')
    file.write("/** A syllable and the characters that are read so alone, space by space. */\n")
    file.write(f"export const CHARACTERS =\n  '{' '.join(s + c for s, c in sorted(by_reading.items()))}';\n\n")
    file.write("/** A character, its reading, and words with ~ in its place where it is read so; with two such characters a word is in two entries. */\n")
    file.write(f"export const WORDS =\n  '{' '.join(k + ',' + ','.join(sorted(w)) for k, w in sorted(words.items()))}';\n\n")
    file.write("/** Words whose characters are read as they are alone, though shorter words within them would say otherwise. */\n")
    file.write(f"export const PLAIN_WORDS =\n  '{' '.join(sorted(plain))}';\n")
print(len(alone), len(kept), len(plain))
