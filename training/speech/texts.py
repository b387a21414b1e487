#!/usr/bin/env python3
"""Build the sentence list (data/texts.tsv: id <tab> text).

Plain words only (digits are spelled out here) so that every teacher and the
phonemizer read the same words.  Sources: public-domain prose under $PARLEY_DATA/text
plus everyday/assistant sentences made of the lists and templates of data/texts.txt."""

import gzip, os, random, re
import paths
from shared.sections import Sections, Slots, cap, words
from shared.work import DATA, WORK

PROSE, EVERYDAY = 3400, 2600  # sentences
OK = re.compile(r"^[A-Z][A-Za-z ,;:'.!?\-]+[.!?]$")
ABBR = re.compile(r"\b(Mr|Mrs|Dr|St|Esq|vol|Vol|Co|Jr|No|i\.e|e\.g|viz|etc|[A-Z])\.|[A-Z]{2,}|\b[B-HJ-Z]\b|--")
MAY_OPEN = "And|But|Yes|No|Well|Oh|So|Now|Then|Here|There|If|For|Still|Indeed|However|Thus|Hence"
BAD = re.compile(rf"^(?!(?:{MAY_OPEN})\b)[A-Z]\w+, |\b(of|the|in|on|a|an|by|to|with|from)\.$|, (on|in|of) the \w+")


def spelled(n):
    return words(int(n), "and ")


def addition():
    a, b = random.randint(1, 99), random.randint(1, 99)
    return f"{cap(spelled(a))} plus {spelled(b)} equals {spelled(a + b)}"


def show(name):
    return gzip.open(f"{DATA}/text/{name}.txt.gz", "rt", encoding="utf8", errors="ignore").read()


def good(s, lo=18, hi=92):
    return not BAD.search(s) and lo <= len(s) <= hi and OK.match(s) and not ABBR.search(s) and s.count(" ") >= 2 and "." not in s[:-1]


def book(name):
    text = re.sub(r"\s+", " ", show(name))
    found = [s for s in (s.strip(' "“”\'') for s in re.split(r'(?<=[.!?])["”\']?\s+', text)) if good(s)]
    random.shuffle(found)
    return found[:3000]


def read_aloud():
    """The sentences of LJ Speech."""
    lines = (cap(t) for t in map(str.strip, show("ljspeech_sentences").splitlines()) if t)
    found = [t for t in (t if t[-1] in ".!?" else t.rstrip(",;: -") + "." for t in lines) if good(t)]
    random.shuffle(found)
    return found[:2500]


def shuffled(sentences):
    out = list(dict.fromkeys(sentences))
    random.shuffle(out)
    return out


def main():
    random.seed(7)
    slots = Slots(Sections(paths.HERE + "/data/texts.txt"), random, {"sum": addition}, {"words": spelled})
    prose = shuffled([*book("bronte"), *book("darwin"), *read_aloud()])
    everyday = shuffled(slots.draw("everyday", {}) for _ in range(7000))
    out = prose[:PROSE] + everyday[:EVERYDAY]
    random.shuffle(out)
    os.makedirs(WORK + "/data", exist_ok=True)
    with open(WORK + "/data/texts.tsv", "w") as f:
        for i, t in enumerate(out):
            f.write("%05d\t%s\n" % (i, t.replace(" -", ",").replace("-", " ").replace(":", ",")))
    print(len(prose), "of prose,", len(everyday), "of everyday ->", len(out), "chars", sum(map(len, out)) / len(out))


if __name__ == "__main__":
    main()
