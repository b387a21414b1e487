#!/usr/bin/env python3
"""Trains a byte-level BPE on text/train.txt -> out/ (tokenizer.json, vocab.json, merges.txt and the bundled model's other tokenizer files: Whisper's
special tokens follow the text tokens). Tok is that tokenizer."""

import collections, json, re
import paths
from shared import bpe

N_TEXT = 1400  # 256 bytes + merges; special tokens follow
COPIED = ('tokenizer_config.json', 'special_tokens_map.json', 'added_tokens.json')
# ASCII-equivalent of the GPT-2 pre-tokenizer (training text is ASCII; HF's ByteLevel regex gives the same splits on it)
PIECE = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[^\W\d_]+| ?\d+| ?[^\s\w]+|\s+(?!\S)|\s+")


def may_merge(p):
    """Digits stay single tokens, alone or after a space."""
    return not any(c.isdigit() for c in p[0] + p[1]) or (p[0] == '\u0120' and len(p[1]) == 1)


class Tok:
    """The tokenizer of a file; ids of the special tokens, t0 is <|0.00|>."""

    def __init__(self, path=paths.WORK + '/out/tokenizer.json'):
        self.tokens = bpe.load(path)
        self.size = self.tokens.get_vocab_size()
        names = ('endoftext', 'startoftranscript', 'en', 'transcribe', 'nospeech', 'notimestamps', '0.00')
        self.eot, self.sot, self.en, self.tr, self.nosp, self.nots, self.t0 = (self.tokens.token_to_id(f'<|{n}|>') for n in names)

    def encode(self, text):
        return self.tokens.encode(text, add_special_tokens=False).ids

    def decode(self, ids, stamps=False):
        """The text of ids; special tokens are left out, with `stamps` all but the times."""
        kept = [int(i) for i in ids if i < self.eot or stamps and i >= self.t0]
        return self.tokens.decode(kept, skip_special_tokens=False)


def main():
    out = paths.WORK + '/out'
    lines = open('text/train.txt').read().split('\n')
    vocab = {c: i for i, c in enumerate(sorted(bpe.BYTES.values()))}
    words = collections.Counter(w for l in lines for w in PIECE.findall(' ' + l))
    merges = bpe.train(words, vocab, N_TEXT, may_merge, last=True)
    bpe.write(out, paths.MODELS + '/parley-transcribe', vocab, merges, 0, COPIED)
    json.dump(vocab, open(out + '/vocab.json', 'w'), ensure_ascii=False)
    open(out + '/merges.txt', 'w').write('#version: 0.2\n' + '\n'.join(' '.join(m) for m in merges) + '\n')
    t = Tok()
    ids = [t.encode(' ' + l) for l in lines[:3000]]
    same = all(t.decode(i) == ' ' + l for i, l in zip(ids, lines))
    print('vocab', t.size, 'tokens/sentence', sum(map(len, ids)) / len(ids), 'roundtrip', same)


if __name__ == '__main__':
    main()
