#!/usr/bin/env python3
"""Text of wide vocabulary, heard by nobody, for the text-only decoder steps (which learn to spell from phones): definitions and examples of
WordNet, those of Webster's dictionary of 1913, and every word of a word list among others. Debian: wordnet-base, dict-gcide, wamerican.
No sentence that shares six consecutive words with a test text stays. Output: text/words.txt"""

import glob, gzip, random, re
import paths
import text_more as T
import text_prep as P

R = random.Random(12)
LISTS = 3  # times that every word of the list occurs


def wordnet():
    """Glosses and their examples."""
    for f in glob.glob('/usr/share/wordnet/data.*'):
        for line in open(f):
            if ' | ' in line:
                for part in re.findall(r'"[^"]+"|[^;"]+', line.split(' | ', 1)[1]):
                    yield part.strip(' ;"\n')


def webster():
    """Definitions and quotations of the entries marked as those of 1913 (public domain; what GCIDE added is left out)."""
    text = gzip.open('/usr/share/dictd/gcide.dict.dz', 'rt', encoding='utf-8', errors='replace').read()
    for block in re.split(r'\n\s*\n', text):
        if '[1913 Webster]' not in block:
            continue
        body = [l for l in block.split('\n') if l.startswith('   ') and '[1913 Webster]' not in l]
        t = re.sub(r'\s+', ' ', ' '.join(body))
        t = re.sub(r'--\s?[A-Z][^.]*\.(\s?\[[^\]]*\])?', ' ', t)  # whose words they are
        t = re.sub(r'[{}"]|^.*?\]|\[[^\]]*\]|\([^)]*\)|\b\d+\.', ' ', t)  # etymology, labels, numbers of meanings
        t = re.sub(r'\b(Syn|pl|imp|p|v|n|a|adv|cf|Cf|See|Fr|L|AS|OE|Gr)[.:].*', '', t)
        for part in re.split(r'[;:]|; as,|(?<=[a-z]\.) ', t):
            yield part.strip()


def lists():
    """Every word LISTS times, two to six in a row."""
    words = [w for w in open('/usr/share/dict/american-english').read().split() if re.fullmatch('[a-z]{3,16}', w)]
    for _ in range(LISTS):
        R.shuffle(words)
        i = 0
        while i < len(words):
            n = R.randint(2, 6)
            yield T.cap(' '.join(words[i : i + n])) + '.'
            i += n


def main():
    free = T.free_of_tests()
    known = set(open('text/all.txt').read().split('\n'))
    parts = {name: [s for p in source() for s in T.sentences(p, 12, 100)] for name, source in dict(wordnet=wordnet, webster=webster).items()}
    parts['lists'] = list(lists())
    parts = {k: [t for t in dict.fromkeys(v) if t not in known and free(t)] for k, v in parts.items()}
    lines = list(dict.fromkeys(t for v in parts.values() for t in v))
    R.shuffle(lines)
    P.write('words', lines)
    print({k: len(v) for k, v in parts.items()}, {k: v[:: len(v) // 4] for k, v in parts.items()})


if __name__ == '__main__':
    main()
