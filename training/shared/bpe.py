"""Byte-level BPE (GPT-2 style): trained here, written in the shape of a bundled model's tokenizer, and used through the package `tokenizers`."""

import collections, heapq, json, os, shutil
import tokenizers


def byte_alphabet():
    """Printable stand-ins for the 256 byte values."""
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = (b for b in range(256) if b not in keep)
    return dict(sorted({**{b: chr(b) for b in keep}, **{b: chr(256 + n) for n, b in enumerate(others)}}.items()))


BYTES = byte_alphabet()


def train(words, vocab, size, may, last=False):
    """Adds to vocab {token: id} until it has `size` tokens; -> the merges. words: {text: count}; may(pair): whether two tokens may merge.
    Of pairs that are equally frequent the first in the alphabet is merged, or the last."""
    rank = (lambda p: tuple((*(-ord(c) for c in t), 1) for t in p)) if last else lambda p: p
    pieces = [[BYTES[b] for b in w.encode('utf-8')] for w in words]
    counts = list(words.values())
    pairs, where = collections.Counter(), collections.defaultdict(set)
    for i, piece in enumerate(pieces):
        for p in filter(may, zip(piece, piece[1:])):
            pairs[p] += counts[i]
            where[p].add(i)
    heap = [(-n, rank(p), p) for p, n in pairs.items()]
    heapq.heapify(heap)
    merges = []
    while len(vocab) < size:
        n, _, p = heapq.heappop(heap)
        if pairs[p] != -n:  # grew or shrank since
            if pairs[p] > 0:
                heapq.heappush(heap, (-pairs[p], rank(p), p))
            continue
        merges.append(p)
        vocab.setdefault(p[0] + p[1], len(vocab))
        touched = set()
        for i in where.pop(p):
            old, new = pieces[i], merged(pieces[i], p)
            for change, piece in ((-counts[i], old), (counts[i], new)):
                for q in filter(may, zip(piece, piece[1:])):
                    pairs[q] += change
                    where[q].add(i)
                    touched.add(q)
            pieces[i] = new
        del pairs[p]
        for q in touched:
            if pairs[q] > 0:
                heapq.heappush(heap, (-pairs[q], rank(q), q))
    return merges


def merged(piece, pair):
    """The tokens of a piece after one merge."""
    out = []
    for t in piece:
        if out and (out[-1], t) == pair:
            out[-1:] = [pair[0] + pair[1], None]
        else:
            out.append(t)
    return [t for t in out if t is not None]


def write(out, like, vocab, merges, indent, copied):
    """OUT/tokenizer.json with this vocabulary in the shape of the model folder `like`, whose other files come along."""
    os.makedirs(out, exist_ok=True)
    shape = json.load(open(f'{like}/tokenizer.json', encoding='utf-8'))
    shape['model'].update(vocab=vocab, merges=[' '.join(m) for m in merges])
    json.dump(shape, open(f'{out}/tokenizer.json', 'w', encoding='utf-8'), ensure_ascii=False, indent=indent)
    for name in copied:
        shutil.copy(f'{like}/{name}', out)


def load(path):
    """The tokenizer of a file; special tokens in a text are text."""
    tokenizer = tokenizers.Tokenizer.from_file(path)
    tokenizer.encode_special_tokens = True
    return tokenizer
