#!/usr/bin/env python3
"""Byte-level BPE (GPT-2 style), trained from scratch and written as a Hugging Face tokenizer folder.

Digits never merge, so every digit is one token (small sums are easier to learn that way).

  python3 tokenizer.py train --out TOKDIR --vocab 4096 a.jsonl b.jsonl ...
  python3 tokenizer.py test  --tok TOKDIR "some text"
Input lines: {"messages": [...]} or {"text": "..."}.
"""

import argparse, collections, heapq, json, os, re

SPECIALS = ['<|endoftext|>', '<|im_start|>', '<|im_end|>']  # ids 0, 1, 2
EOT, IM_START, IM_END = 0, 1, 2
TEMPLATE = ("{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
            "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
# GPT-2 pattern, with re's classes standing for \p{L} and \p{N}
PAT = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


def bytes_to_unicode():
    bs = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    cs = bs[:]
    n = 0
    for b in range(256):
        if b not in bs:
            bs.append(b)
            cs.append(256 + n)
            n += 1
    return dict(zip(bs, map(chr, cs)))


B2U = bytes_to_unicode()
U2B = {u: b for b, u in B2U.items()}


def texts(path):
    for l in open(path, encoding='utf-8'):
        d = json.loads(l)
        if 'text' in d:
            yield d['text']
        else:
            for m in d['messages']:
                yield m['content']


def train(files, vocab_size, out, max_len=2048):
    counts = collections.Counter()
    for f in files:
        for t in texts(f):
            counts.update(PAT.findall(t))
    words = []
    freq = []
    for w, c in counts.items():
        if c < 2:
            continue
        words.append([B2U[b] for b in w.encode('utf-8')])
        freq.append(c)
    digit = set('0123456789')
    pairs = collections.Counter()
    where = collections.defaultdict(set)

    def ok(p):
        return not (digit & set(p[0])) and not (digit & set(p[1]))

    for i, w in enumerate(words):
        for p in zip(w, w[1:]):
            if ok(p):
                pairs[p] += freq[i]
                where[p].add(i)
    vocab = {s: i for i, s in enumerate(SPECIALS)}
    for b in sorted(B2U):
        vocab[B2U[b]] = len(vocab)
    merges = []
    heap = [(-c, p) for p, c in pairs.items()]
    heapq.heapify(heap)
    while len(vocab) < vocab_size:
        c, p = heapq.heappop(heap)
        if pairs.get(p, 0) != -c:
            if pairs.get(p, 0) > 0:
                heapq.heappush(heap, (-pairs[p], p))
            continue
        merges.append(p)
        new = p[0] + p[1]
        if new not in vocab:
            vocab[new] = len(vocab)
        touched = set()
        for i in list(where[p]):
            w = words[i]
            f = freq[i]
            j = 0
            o = []
            while j < len(w):
                if j + 1 < len(w) and w[j] == p[0] and w[j + 1] == p[1]:
                    o.append(new)
                    j += 2
                else:
                    o.append(w[j])
                    j += 1
            if len(o) == len(w):
                continue
            for q in zip(w, w[1:]):
                if ok(q):
                    pairs[q] -= f
                    touched.add(q)
            for q in zip(o, o[1:]):
                if ok(q):
                    pairs[q] += f
                    where[q].add(i)
                    touched.add(q)
            words[i] = o
        pairs.pop(p, None)
        for q in touched:
            if pairs.get(q, 0) > 0:
                heapq.heappush(heap, (-pairs[q], q))
    os.makedirs(out, exist_ok=True)
    added = [{'id': i, 'content': s, 'single_word': False, 'lstrip': False, 'rstrip': False, 'normalized': False, 'special': True}
             for i, s in enumerate(SPECIALS)]
    bl = {'type': 'ByteLevel', 'add_prefix_space': False, 'trim_offsets': True, 'use_regex': True}
    tj = {
        'version': '1.0', 'truncation': None, 'padding': None, 'added_tokens': added, 'normalizer': None, 'pre_tokenizer': bl,
        'post_processor': dict(bl, trim_offsets=False), 'decoder': bl, 'model': {
            'type': 'BPE', 'dropout': None, 'unk_token': None, 'continuing_subword_prefix': None, 'end_of_word_suffix': None,
            'fuse_unk': False, 'byte_fallback': False, 'vocab': vocab, 'merges': [' '.join(m) for m in merges]
        }
    }
    json.dump(tj, open(os.path.join(out, 'tokenizer.json'), 'w', encoding='utf-8'), ensure_ascii=False, indent=1)
    tc = {
        'add_bos_token': False, 'add_eos_token': False, 'add_prefix_space': False,
        'added_tokens_decoder': {str(i): {k: v
                                          for k, v in dict(a, id=None).items() if k != 'id'}
                                 for i, a in enumerate(added)}, 'additional_special_tokens': ['<|im_start|>', '<|im_end|>'],
        'bos_token': None, 'chat_template': TEMPLATE, 'clean_up_tokenization_spaces': False, 'eos_token': '<|im_end|>', 'errors': 'replace',
        'model_max_length': max_len, 'pad_token': '<|endoftext|>', 'tokenizer_class': 'GPT2Tokenizer', 'unk_token': None
    }
    json.dump(tc, open(os.path.join(out, 'tokenizer_config.json'), 'w'), indent=2)
    json.dump({'eos_token': '<|im_end|>', 'pad_token': '<|endoftext|>'}, open(os.path.join(out, 'special_tokens_map.json'), 'w'), indent=2)
    print(f'{len(counts)} different pieces, {len(vocab)} tokens, {len(merges)} merges')


class Tokenizer:
    """Encode and decode with a folder written by train()."""

    def __init__(self, folder):
        m = json.load(open(os.path.join(folder, 'tokenizer.json'), encoding='utf-8'))['model']
        self.vocab = m['vocab']
        self.inv = {i: s for s, i in self.vocab.items()}
        self.rank = {tuple(x.split(' ')): i for i, x in enumerate(m['merges'])}
        self.cache = {}
        self.split = re.compile('(' + '|'.join(map(re.escape, SPECIALS)) + ')')

    def piece(self, w):
        r = self.cache.get(w)
        if r is None:
            s = [B2U[b] for b in w.encode('utf-8')]
            while len(s) > 1:
                best = min(range(len(s) - 1), key=lambda i: self.rank.get((s[i], s[i + 1]), 1 << 30))
                if (s[best], s[best + 1]) not in self.rank:
                    break
                p = (s[best], s[best + 1])
                o = []
                j = 0
                while j < len(s):
                    if j + 1 < len(s) and (s[j], s[j + 1]) == p:
                        o.append(p[0] + p[1])
                        j += 2
                    else:
                        o.append(s[j])
                        j += 1
                s = o
            r = self.cache[w] = [self.vocab[x] for x in s]
        return r

    def plain(self, t):
        """text without special tokens"""
        return [i for w in PAT.findall(t) for i in self.piece(w)]

    def encode(self, t):
        o = []
        for part in self.split.split(t):
            if part in SPECIALS:
                o.append(SPECIALS.index(part))
            elif part:
                o += self.plain(part)
        return o

    def decode(self, ids, skip_special=True):
        o = b''
        for i in ids:
            s = self.inv[int(i)]
            if s in SPECIALS:
                o += b'' if skip_special else s.encode()
            else:
                o += bytes(U2B[c] for c in s)
        return o.decode('utf-8', 'replace')

    def chat(self, messages, generation_prompt=True):
        """token ids of the chat template, and 1 for every token that the assistant writes (its closing <|im_end|> too)"""
        ids, own = [], []
        nl = self.plain('\n')
        for m in messages:
            h = [IM_START] + self.plain(m['role'] + '\n')
            c = self.plain(m['content']) + [IM_END]
            a = m['role'] == 'assistant'
            ids += h + c + nl
            own += [0] * len(h) + [1 if a else 0] * len(c) + [0] * len(nl)
        if generation_prompt:
            h = [IM_START] + self.plain('assistant\n')
            ids += h
            own += [0] * len(h)
        return ids, own


if __name__ == '__main__':
    ap = argparse.ArgumentParser()
    sub = ap.add_subparsers(dest='cmd', required=True)
    a = sub.add_parser('train')
    a.add_argument('--out', required=True)
    a.add_argument('--vocab', type=int, default=4096)
    a.add_argument('--max-len', type=int, default=2048)
    a.add_argument('files', nargs='+')
    b = sub.add_parser('test')
    b.add_argument('--tok', required=True)
    b.add_argument('text')
    x = ap.parse_args()
    if x.cmd == 'train':
        train(x.files, x.vocab, x.out, x.max_len)
    else:
        t = Tokenizer(x.tok)
        i = t.encode(x.text)
        print(i)
        print([t.inv[k] for k in i])
        print(repr(t.decode(i, False)))
