#!/usr/bin/env python3
"""Byte-level BPE, trained from scratch and written as a Hugging Face tokenizer folder like the bundled model's.

Digits never merge, so every digit is one token (small sums are easier to learn that way).

  python3 tokenizer.py --out TOKDIR --vocab 4096 a.jsonl b.jsonl ...
Input lines: {"messages": [...]} or {"text": "..."}.
"""

import argparse, collections, json, re
import paths  # noqa: F401 (training/shared)
from shared import bpe
from shared.work import MODELS

SPECIALS = ['<|endoftext|>', '<|im_start|>', '<|im_end|>']  # ids 0, 1, 2
EOT, IM_START, IM_END = 0, 1, 2
CONFIGURATION = ('tokenizer_config.json', 'special_tokens_map.json')
# GPT-2 pattern, with re's classes standing for \p{L} and \p{N}
PIECE = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")
DIGIT = re.compile(r'\d')


def texts(path):
    for l in open(path, encoding='utf-8'):
        d = json.loads(l)
        yield from [d['text']] if 'text' in d else [m['content'] for m in d['messages']]


def train(files, size, out):
    counts = collections.Counter(w for f in files for t in texts(f) for w in PIECE.findall(t))
    vocab = {t: i for i, t in enumerate(SPECIALS + list(bpe.BYTES.values()))}
    merges = bpe.train({w: n for w, n in counts.items() if n > 1}, vocab, size, lambda p: not DIGIT.search(p[0] + p[1]))
    bpe.write(out, MODELS + '/parley-chat', vocab, merges, 1, CONFIGURATION)
    print(f'{len(counts)} different pieces, {len(vocab)} tokens, {len(merges)} merges')


class Tokenizer:
    """Encode and decode with a folder written by train()."""

    def __init__(self, folder):
        self.tokens = bpe.load(f'{folder}/tokenizer.json')

    def plain(self, t):
        """text without special tokens"""
        return self.tokens.encode(t, add_special_tokens=False).ids

    def decode(self, ids, skip_special=True):
        return self.tokens.decode([int(i) for i in ids], skip_special_tokens=skip_special)

    def chat(self, messages, generation_prompt=True):
        """token ids of the chat template, and 1 for every token that the assistant writes (its closing <|im_end|> too)"""
        ids, own = [], []
        nl = self.plain('\n')
        for m in messages:
            h = [IM_START] + self.plain(m['role'] + '\n')
            c = self.plain(m['content']) + [IM_END]
            ids += h + c + nl
            own += [0] * len(h) + [int(m['role'] == 'assistant')] * len(c) + [0] * len(nl)
        h = [IM_START] + self.plain('assistant\n') if generation_prompt else []
        return ids + h, own + [0] * len(h)


if __name__ == '__main__':
    ap = argparse.ArgumentParser()
    ap.add_argument('--out', required=True)
    ap.add_argument('--vocab', type=int, default=4096)
    ap.add_argument('files', nargs='+')
    a = ap.parse_args()
    train(a.files, a.vocab, a.out)
