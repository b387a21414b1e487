#!/usr/bin/env python3
"""Widen the training text: dialogues, questions and answers, everyday templates and random word lists beside the sentences of text_prep.py.
Numbers are spelled out, because one spelling per sound is all that a model of this size can learn. No sentence that shares six consecutive
words with a test text stays (nor one that equals a short test text). Output: text/all.txt (in the order in which it is synthesised)."""

import collections, csv, glob, json, os, random, re
import paths
import text_prep as P
from shared.sections import ONES, Slots, cap, words
from text_prep import read

R = random.Random(11)
ORDINAL = {'one': 'first', 'two': 'second', 'three': 'third', 'five': 'fifth', 'eight': 'eighth', 'nine': 'ninth', 'twelve': 'twelfth'}
PANGRAM = 'quick brown fox'


def year(n):
    if 1100 <= n <= 1999 or n >= 2010:
        return words(n // 100) + ' ' + ('hundred' if n % 100 == 0 else ('oh ' if n % 100 < 10 else '') + words(n % 100))
    return words(n)


def ordinal(n):
    *head, last = words(n).split()
    last = ORDINAL.get(last) or (last[:-1] + 'ieth' if last.endswith('y') else last + 'th')
    return ' '.join(head + [last])


def spell(t):
    """Writes out prices, times, percentages, years, ordinals, decimals and plain numbers."""
    n = lambda s: int(s.replace(',', ''))
    t = re.sub(r'(?<=\d),(?=\d{3}\b)', '', t)
    t = re.sub(r'\$(\d+)\.(\d\d)\b', lambda m: f'{words(n(m[1]))} dollars and {words(n(m[2]))} cents', t)
    t = re.sub(r'\$(\d+)', lambda m: words(n(m[1])) + (' dollar' if m[1] == '1' else ' dollars'), t)
    t = re.sub(r'\b(\d+)%', lambda m: words(n(m[1])) + ' percent', t)
    t = re.sub(r'\b(\d{1,2}):00\b', lambda m: words(n(m[1])) + " o'clock", t)
    t = re.sub(r'\b(\d{1,2}):(\d\d)\b', lambda m: words(n(m[1])) + (' oh ' if m[2][0] == '0' else ' ') + words(n(m[2])), t)
    t = re.sub(r'\b(\d+)(?:st|nd|rd|th)\b', lambda m: ordinal(n(m[1])), t)
    t = re.sub(r'\b(\d+)\.(\d+)\b', lambda m: words(n(m[1])) + ' point ' + ' '.join(ONES[int(d)] for d in m[2]), t)
    t = re.sub(r'(?<![\w-])-(\d+)', r'minus \1', t)
    t = re.sub(r'(?<!\d)(1[1-9]\d\d|20[1-3]\d)(?!\d)', lambda m: year(n(m[1])), t)
    t = re.sub(r'\b\d{1,9}\b', lambda m: words(n(m[0])), t)
    return t


def key(t):
    return re.sub(r"[^a-z' ]+", ' ', t.lower()).split()


def sentences(text, lo=10, hi=110):
    """Clean sentences of free text; lower-case chat gets a capital, a final stop and its "I"."""
    for s in P.split_sents(P.clean(re.sub(r'\s+', ' ', text))):
        s = re.sub(r"\bi\b(?=$|[ ,.!?']|'m|'ve|'ll|'d)", 'I', s.rstrip(';:, ').strip())
        s = spell(s)
        if not s or re.search(r'\d|\$|%|/|\.com|www', s):
            continue
        s = s[0].upper() + s[1:]
        if s[-1] not in '.!?':
            s += '?' if re.match(r'(who|what|when|where|why|how|which|do|does|did|is|are|can|have|would|will) ', s.lower()) else '.'
        if P.good(s, lo, hi):
            yield s


def take(it, n):
    out = list(dict.fromkeys(it))
    R.shuffle(out)
    return out[:n]


def dialogue(name):
    for l in read(name):
        for t in json.loads(l)['turns']:
            yield from sentences(t)


def oasst():
    for l in read('oasst_model_eval_permissive.jsonl.gz'):
        j = json.loads(l)
        if j['r'].isascii() and '```' not in j['r']:
            yield from sentences(j['r'][:600])


def trivia():
    for l in read('open_trivia_qa.txt.gz'):
        if l.startswith('#Q '):
            yield from sentences(l[3:])


def up_to(k):
    """A number up to k in words, small ones more often."""
    return lambda: words(R.choice([R.randint(0, 20), R.randint(0, 99), R.randint(0, k)]))


SLOTS = Slots(P.TEXT, R, {f'n{k}': up_to(k) for k in (99, 999, 1999)})


def salad(vocabulary):
    """Random words in a row: nothing to recite, so that the decoder must listen."""
    return cap(' '.join(R.choice(vocabulary) for _ in range(R.randint(2, 9)))) + '.'


def held_out():
    """Every text that any test set uses."""
    out = [l.rstrip('\n') for f in ('eval.txt', 'eval_numbers.txt') for l in open(f'text/{f}')]
    out += [t for v in json.load(open('text/real_heldout.json')).values() for _, t in v]
    out += ['The quick brown fox jumps over the lazy dog.']
    P.random.seed(4242)
    out += [P.everyday() for _ in range(60)]  # eval_make.py takes its everyday sentences from these
    here = os.path.dirname(paths.HERE)
    for f in glob.glob(f'{here}/speech/eval_texts*.tsv'):
        out += [r[-1] for r in csv.reader(open(f), delimiter='\t') if r]
    out += [l.split('\t')[-1] for f in glob.glob(f'{paths.DATA}/../audio/transcripts.tsv') for l in open(f)]
    return out


def free_of_tests():
    """A function that tells whether a sentence is far enough from every test text."""
    held = [key(spell(t)) for t in held_out()]
    grams = {tuple(h[i:i + 6]) for h in held for i in range(len(h) - 5)}
    exact = {' '.join(h) for h in held}

    def free(t):
        k = key(t)
        return ' '.join(k) not in exact and PANGRAM not in ' '.join(k) and not any(tuple(k[i:i + 6]) in grams for i in range(len(k) - 5))

    return free


def main():
    free = free_of_tests()
    base = [spell(l.rstrip('\n')) for l in open(f'text/train.txt')]
    parts = dict(base=[t for t in base if not re.search(r'\d|\$|%', t)],
                 talk=take(dialogue('self_dialogue.jsonl.gz'), 60000),
                 sgd=take(dialogue('sgd_turns.jsonl.gz'), 12000),
                 oasst=take(oasst(), 30000),
                 trivia=take(trivia(), 25000),
                 plain=take((cap(SLOTS.draw('plain', {})) for _ in range(14000)), 12000))
    count = collections.Counter(w for v in parts.values() for t in v for w in dict.fromkeys(key(t)))
    vocabulary = [w for w, n in count.items() if n >= 4 and w.isalpha() and (len(w) > 1 or w in 'ai')]
    parts['salad'] = [salad(vocabulary) for _ in range(16000)]
    parts = {k: [t for t in v if free(t)] for k, v in parts.items()}
    weight = dict(base=1.0, talk=0.5, sgd=0.5, oasst=0.5, trivia=0.4, plain=1.0, salad=0.6)  # of being synthesised early
    order = sorted((R.random()**(1 / weight[k]), t) for k, v in parts.items() for t in v)
    lines = list(dict.fromkeys(t for _, t in reversed(order)))
    P.write('all', lines)
    print({k: len(v) for k, v in parts.items()}, len(vocabulary), 'words in the lists;', len(lines), 'sentences')


if __name__ == '__main__':
    main()
