#!/usr/bin/env python3
"""Train a byte-level BPE on text/train.txt, export HF tokenizer files with Whisper's special tokens, and a pure-python encoder for training."""

import re, json, os, collections

from paths import WORK as HERE

N_TEXT = 1400  # 256 bytes + merges; special tokens follow


def byte_alphabet():
    """Printable stand-ins for the 256 byte values (the usual byte-level BPE alphabet)."""
    keep = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    m, n = {}, 0
    for b in range(256):
        if b in keep:
            m[b] = chr(b)
        else:
            m[b] = chr(256 + n)
            n += 1
    return m


B2C = byte_alphabet()
C2B = {c: b for b, c in B2C.items()}
# ASCII-equivalent of the GPT-2 pre-tokenizer (training text is ASCII; HF's ByteLevel regex gives the same splits on it)
PRE = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[^\W\d_]+| ?\d+| ?[^\s\w]+|\s+(?!\S)|\s+")


def pre(text):
    return [''.join(B2C[b] for b in w.encode()) for w in PRE.findall(text)]


SPECIAL = [
    '<|endoftext|>', '<|startoftranscript|>', '<|en|>', '<|translate|>', '<|transcribe|>', '<|startoflm|>', '<|startofprev|>',
    '<|nospeech|>', '<|notimestamps|>'
]
STAMPS = [f'<|{i * 0.02:.2f}|>' for i in range(1501)]


def train_bpe(lines, n_text):
    words = collections.Counter()
    for l in lines:
        words.update(pre(' ' + l))
    seqs = [list(w) for w in words]
    cnt = list(words.values())
    pairs, where = collections.Counter(), collections.defaultdict(set)
    for i, s in enumerate(seqs):
        for p in zip(s, s[1:]):
            pairs[p] += cnt[i]
            where[p].add(i)
    ok = lambda p: not any(c.isdigit() for c in p[0] + p[1]) or (p[0] == '\u0120' and len(p[1]) == 1)  # digits stay single tokens
    merges = []
    while len(merges) < n_text - 256:
        best = max((p for p in pairs if ok(p)), key=lambda p: (pairs[p], p))
        merges.append(best)
        new = best[0] + best[1]
        for i in list(where[best]):
            s = seqs[i]
            c = cnt[i]
            for p in zip(s, s[1:]):
                pairs[p] -= c
                if pairs[p] <= 0:
                    del pairs[p]
                where[p].discard(i)
            out, j = [], 0
            while j < len(s):
                if j + 1 < len(s) and (s[j], s[j + 1]) == best:
                    out.append(new)
                    j += 2
                else:
                    out.append(s[j])
                    j += 1
            seqs[i] = out
            for p in zip(out, out[1:]):
                pairs[p] += c
                where[p].add(i)
    return merges


class Tok:

    def __init__(self, path=os.path.join(HERE, 'out/tokenizer.json')):
        j = json.load(open(path))
        self.vocab = dict(j['model']['vocab'])
        m = j['model']['merges']
        self.rank = {tuple(x.split(' ') if isinstance(x, str) else x): i for i, x in enumerate(m)}
        for a in j['added_tokens']:
            self.vocab[a['content']] = a['id']
        self.inv = {i: t for t, i in self.vocab.items()}
        self.cache = {}
        v = self.vocab
        self.eot, self.sot, self.en, self.tr, self.nosp, self.nots = (v[SPECIAL[k]] for k in (0, 1, 2, 4, 7, 8))
        self.t0 = v[STAMPS[0]]

    def _bpe(self, w):
        if w in self.cache:
            return self.cache[w]
        s = list(w)
        while len(s) > 1:
            r, i = min((self.rank.get((s[i], s[i + 1]), 1 << 30), i) for i in range(len(s) - 1))
            if r == 1 << 30:
                break
            p = (s[i], s[i + 1])
            out, j = [], 0
            while j < len(s):
                if j + 1 < len(s) and (s[j], s[j + 1]) == p:
                    out.append(p[0] + p[1])
                    j += 2
                else:
                    out.append(s[j])
                    j += 1
            s = out
        ids = [self.vocab[x] for x in s]
        self.cache[w] = ids
        return ids

    def encode(self, text):
        return [i for w in pre(text) for i in self._bpe(w)]

    def decode(self, ids, stamps=False):
        out = b''
        for i in ids:
            t = self.inv[int(i)]
            if int(i) >= self.eot:
                out += t.encode() if stamps and int(i) >= self.t0 else b''
            else:
                out += bytes(C2B[c] for c in t)
        return out.decode('utf-8', 'replace')


def main():
    lines = open(f'{HERE}/text/train.txt').read().split('\n')
    merges = train_bpe(lines, N_TEXT)
    vocab = {B2C[b]: i for i, b in enumerate(sorted(range(256), key=lambda b: B2C[b]))}
    for a, b in merges:
        vocab[a + b] = len(vocab)
    assert len(vocab) == N_TEXT, len(vocab)
    added = [
        dict(id=N_TEXT + i, content=t, single_word=False, lstrip=False, rstrip=False, normalized=False, special=i < len(SPECIAL))
        for i, t in enumerate(SPECIAL + STAMPS)
    ]
    ids = {a['content']: a['id'] for a in added}
    sp = lambda t: {'SpecialToken': {'id': t, 'type_id': 0}}
    st = ['<|startoftranscript|>', '<|notimestamps|>']
    tj = dict(version='1.0',
              truncation=None,
              padding=None,
              added_tokens=added,
              normalizer=None,
              pre_tokenizer=dict(type='ByteLevel', add_prefix_space=False, trim_offsets=True, use_regex=True),
              post_processor=dict(type='TemplateProcessing',
                                  single=[sp(t) for t in st] +
                                  [{'Sequence': {'id': 'A', 'type_id': 0}}, sp('<|endoftext|>')],
                                  pair=[sp(t)
                                        for t in st] + [{'Sequence': {'id': 'A', 'type_id': 0}}, {'Sequence': {'id': 'B', 'type_id': 1}},
                                                        sp('<|endoftext|>')],
                                  special_tokens={t: dict(id=t, ids=[ids[t]], tokens=[t])
                                                  for t in st + ['<|endoftext|>']}),
              decoder=dict(type='ByteLevel', add_prefix_space=True, trim_offsets=True, use_regex=True),
              model=dict(type='BPE',
                         dropout=None,
                         unk_token=None,
                         continuing_subword_prefix='',
                         end_of_word_suffix='',
                         fuse_unk=False,
                         byte_fallback=False,
                         vocab=vocab,
                         merges=[f'{a} {b}' for a, b in merges]))
    os.makedirs(f'{HERE}/out', exist_ok=True)
    O = f'{HERE}/out/'
    json.dump(tj, open(O + 'tokenizer.json', 'w'), ensure_ascii=False, indent=0)
    json.dump({t: i for t, i in vocab.items()}, open(O + 'vocab.json', 'w'), ensure_ascii=False)
    open(O + 'merges.txt', 'w').write('#version: 0.2\n' + '\n'.join(f'{a} {b}' for a, b in merges) + '\n')
    dec = {str(a['id']): {k: a[k] for k in ('content', 'lstrip', 'normalized', 'rstrip', 'single_word', 'special')} for a in added}
    json.dump(dict(add_prefix_space=False,
                   added_tokens_decoder=dec,
                   additional_special_tokens=SPECIAL,
                   bos_token='<|endoftext|>',
                   eos_token='<|endoftext|>',
                   pad_token='<|endoftext|>',
                   unk_token='<|endoftext|>',
                   clean_up_tokenization_spaces=True,
                   errors='replace',
                   model_max_length=448,
                   processor_class='WhisperProcessor',
                   return_attention_mask=False,
                   tokenizer_class='WhisperTokenizer'),
              open(O + 'tokenizer_config.json', 'w'),
              indent=1)
    json.dump(dict(bos_token='<|endoftext|>',
                   eos_token='<|endoftext|>',
                   pad_token='<|endoftext|>',
                   unk_token='<|endoftext|>',
                   additional_special_tokens=SPECIAL),
              open(O + 'special_tokens_map.json', 'w'),
              indent=1)
    json.dump({a['content']: a['id'] for a in added}, open(O + 'added_tokens.json', 'w'), indent=0)
    t = Tok()
    n = [len(t.encode(' ' + l)) for l in lines[:3000]]
    print('vocab', len(t.vocab), 'tokens/sentence',
          sum(n) / len(n), 'roundtrip', all(t.decode(t.encode(' ' + l)) == ' ' + l for l in lines[:3000]))
    print([t.inv[i] for i in t.encode(' The quick brown fox cost $19.84 in 1984.')])


if __name__ == '__main__':
    main()
