#!/usr/bin/env python3
"""Collect English sentences (books + LJSpeech transcripts + generated everyday text).
Output: text/train.txt, text/eval.txt, text/eval_numbers.txt (one sentence per line, natural case/punctuation)."""

import gzip, random, re
import paths
from shared.sections import Sections, Slots, cap

FIX = str.maketrans({'\u2018': "'", '\u2019': "'", '\u201c': '"', '\u201d': '"', '\u2014': ', ', '\u2013': '-', '\u00a0': ' ', '\u2026': '...'})


def clean(s):
    s = s.translate(FIX)
    s = s.replace('--', ', ').replace('_', '').replace('"', '').replace('...', '.')
    s = re.sub(r'\[[^\]]*\]|\([^)]*\)', '', s)
    s = re.sub(r'\s+', ' ', s)
    s = re.sub(r'\s+([,.;:!?])', r'\1', s)
    s = re.sub(r',\s*([,.;:!?])', r'\1', s)
    return re.sub(r'^[\s\'\-,.;:!?]+', '', s).strip()


ABBR = r'(?<!Mr)(?<!Mrs)(?<!Dr)(?<!St)(?<!Prof)(?<!Rev)(?<!Ms)(?<!Esq)(?<!No)(?<!\b[A-Z])'


def split_sents(p):
    return re.split(ABBR + r'(?<=[.!?])[\'"\u201d\u2019]?\s+(?=[\'"\u201c\u2018]?[A-Z])', p)


OK = re.compile(r"^[A-Za-z][A-Za-z0-9 ,.;:!?'\-$%]*$")


def good(s, lo=12, hi=125):
    if not (lo <= len(s) <= hi) or not OK.match(s):
        return False
    w = s.split()
    if len(w) < 2 or any(len(x) > 16 for x in w):
        return False
    if sum(c.isupper() for c in s) > 0.12 * len(s) + 2:
        return False
    if re.search(r'\b[IVXLC]{2,}\b', s):
        return False
    return s[-1].isalnum() or s[-1] in '.!?;:,'


def clauses(s, hi=125):
    """Cut an over-long sentence at ; : , into pieces of at most hi characters."""
    out, cur = [], ''
    for part in re.split(r'(?<=[;:,])\s+', s):
        if cur and len(cur) + len(part) + 1 > hi:
            out.append(cur)
            cur = part
        else:
            cur = (cur + ' ' + part).strip()
    out.append(cur)
    return out


def finished(pieces):
    """The good ones of pieces of sentences, each with a capital and a stop."""
    for c in (c.rstrip(';:,').strip() for c in pieces):
        if c:
            c = cap(c) + ('' if c[-1] in '.!?' else '.')
            if good(c):
                yield c


def read(name):
    return gzip.open(f'{paths.DATA}/text/{name}', 'rt', encoding='utf-8', errors='replace')


def shuffled(sentences):
    out = list(sentences)
    random.shuffle(out)
    return out


def book(name, n):
    paragraphs = (re.sub(r'\s+', ' ', p) for p in re.split(r'\n\s*\n', read(name + '.txt.gz').read()))
    sentences = (clean(s) for p in paragraphs for s in split_sents(p))
    return shuffled(c for s in sentences for c in finished([s] if len(s) <= 125 else clauses(s)))[:n]


def lj():
    sentences = (c for l in read('ljspeech_sentences.txt.gz') for c in split_sents(clean(l.rstrip('\n'))))
    return shuffled(c for s in sentences for c in finished(clauses(s)))


def num():
    """A number as it is written, mostly in digits."""
    k = random.random()
    for share, lo, hi, factor in ((0.3, 10, 99, 1), (0.5, 100, 999, 1), (0.62, 1100, 9999, 1), (0.7, 1, 99, 1000)):
        if k < share:
            return str(random.randint(lo, hi) * factor)
    if k < 0.76:
        return f'{random.randint(0, 99)}.{random.randint(1, 9)}'
    return random.choice(TEXT['small_number'])


TEXT = Sections(paths.HERE + '/data/everyday.txt')
SLOTS = Slots(TEXT, random, {'num': num})


def numeric():
    return SLOTS.draw('numeric', {})


def everyday():
    named = {k: SLOTS.draw(name, {}) for k, name in (('n', 'names'), ('n2', 'names'), ('v', 'verb'), ('t', 'the'), ('t2', 'the'))}
    return SLOTS.draw('everyday', named)


def gen(fn, n):
    s = set()
    while len(s) < n:
        x = cap(fn())
        if len(x) <= 125:
            s.add(x)
    return sorted(s)


def write(name, lines):
    open(f'text/{name}.txt', 'w').write('\n'.join(lines) + '\n')


def main():
    random.seed(1)
    parts = dict(bronte=book('bronte', 20000), darwin=book('darwin', 14000), lj=lj()[:12000], everyday=gen(everyday, 12000),
                 numeric=gen(numeric, 6000))
    held, rest = {}, []
    for k, v in parts.items():
        random.shuffle(v)
        print(k, len(v), v[:3])
        held[k] = v[:100]
        rest += v[100:]
    numbers = held.pop('numeric')
    test = [t for v in held.values() for t in v]
    known = {*test, *numbers}
    train = [t for t in dict.fromkeys(rest) if t not in known]
    random.shuffle(train)
    random.shuffle(test)
    for name, lines in (('train', train), ('eval', test), ('eval_numbers', numbers)):
        write(name, lines)
    print(len(train), 'train', len(test), 'eval', sum(map(len, train)) / len(train), 'chars/sentence')


if __name__ == '__main__':
    main()
