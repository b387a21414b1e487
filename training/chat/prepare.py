#!/usr/bin/env python3
"""Step 1 'filter': turn the public text sets into clean JSON lines.  Step 2 'pack': JSON lines -> fixed rows of uint16 tokens.

  python3 prepare.py filter --text DIR --out DIR        # DIR holds the .gz sets of the README
  python3 prepare.py pack --tok TOKDIR --out PREFIX --t 512 --t-short 256 file.jsonl[:share] ...

pack writes PREFIX.<T>.tok (uint16, rows x T), PREFIX.<T>.own (uint8: 1 assistant token, 2 other token, 0 padding) and PREFIX.json.
Several short documents share one row; a document never crosses a row, and train.py masks attention between documents.
"""

import argparse, gzip, hashlib, json, os, random, re
import numpy as np
from phrases import Phrases
from tokenizer import EOT, Tokenizer

FILTER = Phrases('filter')
BAD = re.compile(r'\b(' + '|'.join(FILTER['bad']) + r')\w*', re.I)
IDENT = re.compile('|'.join(FILTER['identity']), re.I)
WORDY = re.compile(r"^[A-Za-z0-9 ,.'!?;:()\-\"$%&/]+$")


PLAIN = str.maketrans({'\u2019': "'", '\u2018': "'", '\u201c': '"', '\u201d': '"', '\u2014': ' - ', '\u2013': '-', '\u2026': '...'})


def clean(s):
    return re.sub(r'[ \t]+', ' ', s.translate(PLAIN)).strip()


def sent_case(s):
    s = clean(s)
    s = s[:1].upper() + s[1:]
    s = re.sub(r"\bi('|\b)", lambda m: 'I' + m.group(1), s)
    if s and s[-1] not in '.?!"':
        s += '.'
    return s


def write(path, rows, held=0.02):
    """split by a hash of the first words so that near copies stay on one side"""
    tr, ho = open(path + '.jsonl', 'w'), open(path + '.held.jsonl', 'w')
    n = [0, 0]
    for r in rows:
        k = r.get('text') or r['messages'][0]['content']
        h = int(hashlib.md5(k[:60].lower().encode()).hexdigest(), 16) % 1000 < held * 1000
        (ho if h else tr).write(json.dumps(r, ensure_ascii=False) + '\n')
        n[h] += 1
    print(os.path.basename(path), 'train', n[0], 'held out', n[1])


def chat(src, turns, system=None):
    ms = [{'role': 'system', 'content': system}] if system else []
    return {'src': src, 'messages': ms + [{'role': 'user' if i % 2 == 0 else 'assistant', 'content': t} for i, t in enumerate(turns)]}


def gz(d, f):
    return gzip.open(os.path.join(d, f), 'rt', encoding='utf-8', errors='replace')


def f_oasst(d):
    best = {}
    for l in gz(d, 'oasst_model_eval_permissive.jsonl.gz'):
        r = json.loads(l)
        p, a = clean(r['p']), clean(r['r'])
        ws = a.lower().split()
        short = 3 <= len(p) <= 120 and 12 <= len(a) <= 260 and '\n' not in p + a
        clean_ = short and WORDY.match(p) and WORDY.match(a) and not BAD.search(p + ' ' + a) and not IDENT.search(p + ' ' + a)
        whole = clean_ and a[-1] in '.!?' and a[0].isupper() and 'http' not in a
        weak = '1b' in r['m'] or 'open-llama-chat' in r['m']  # the weakest writers
        if whole and not re.match(r'\d[.)]', a) and len(ws) > 2 and len(set(ws)) >= 0.6 * len(ws) and not weak:
            best.setdefault(p, []).append(a)
    for p, xs in best.items():
        different = {}
        for a in sorted(dict.fromkeys(xs), key=len)[:6]:
            different.setdefault(a[:25], a)
        yield from (chat('oasst', [p, a]) for a in different.values())


def spoken(d, source, longest, good=lambda turns: True):
    """Dialogues of an even number of turns, at most eight."""
    for l in gz(d, source + '.jsonl.gz'):
        t = [sent_case(x) for x in json.loads(l)['turns']][:8]
        if len(t) >= 4 and good(t) and all(WORDY.match(x) and len(x) <= longest for x in t):
            yield t[:len(t) // 2 * 2]


def f_self(d):
    return (chat('self', t) for t in spoken(d, 'self_dialogue', 120, lambda t: not BAD.search(' '.join(t)) and min(map(len, t)) > 1))


def f_sgd(d):
    return (chat('sgd', t) for t in spoken(d, 'sgd_turns', 160))


def f_trivia(d):
    for part in re.split('^#Q ', gz(d, 'open_trivia_qa.txt.gz').read(), flags=re.M)[1:]:
        q, *rest = part.split('\n')
        q, a = clean(q), ([clean(l[2:]) for l in rest if l.startswith('^ ')] or [''])[-1]
        if (a and 12 < len(q) < 110 and len(a) < 30 and WORDY.match(q) and WORDY.match(a) and not BAD.search(q + a)
                and a not in ('True', 'False') and q[-1] == '?' and 'these' not in q.lower() and 'following' not in q.lower()):
            yield chat('trivia', [q, a + '.'])


def f_prose(d):
    for f in ('bronte.txt.gz', 'darwin.txt.gz'):
        for p in re.split(r'\n\s*\n', gz(d, f).read()):
            p = clean(p.replace('\n', ' ')).replace('--', ' - ').replace('_', '')
            if 80 <= len(p) <= 700 and WORDY.match(p) and not p.isupper():
                yield {'src': 'prose', 'text': p}
    buf = ''
    for l in gz(d, 'ljspeech_sentences.txt.gz'):
        buf = (buf + ' ' + clean(l)).strip()
        if len(buf) > 300:
            if WORDY.match(buf) and not BAD.search(buf) and not re.search('|'.join(FILTER['crime']), buf):
                yield {'src': 'prose', 'text': buf}
            buf = ''


def documents(tok, spec, longest, rng, stats):
    """-> ids and whose they are (1 the assistant's, 2 others) of the documents of `file:share` that are not too long"""
    f, _, share = spec.partition(':')
    share = float(share or 1)
    lines = open(f).read().split('\n')[:-1]
    chosen = lines * int(share) + rng.sample(lines, int((share - int(share)) * len(lines)))
    kept = []
    for d in map(json.loads, chosen):
        if 'text' in d:
            ids = tok.plain(d['text']) + [EOT]
            own = [2] * len(ids)
        else:
            ids, own = tok.chat(d['messages'], False)
            ids = ids[:-1] + [EOT]
            own = [1 if o else 2 for o in own[:-1]] + [2]  # the last newline gives way to the end mark
        if len(ids) <= longest:
            kept.append((np.array(ids, np.uint16), np.array(own, np.uint8)))
            count = stats.setdefault(d['src'], [0, 0])
            count[0] += 1
            count[1] += len(ids)
    print(f, len(chosen), 'documents,', len(chosen) - len(kept), 'too long')
    return kept


def fill(docs, T):
    """Rows of documents that fit into T tokens together: first fit over a small window of open rows."""
    rows, open_rows = [], []
    for doc in docs:
        n = len(doc[0])
        row = next((r for r in open_rows if r[0] + n <= T), None)
        if row is None:
            row = [0, []]
            open_rows.append(row)
        row[0] += n
        row[1].append(doc)
        if len(open_rows) > 24:
            open_rows.sort(key=lambda r: -r[0])
            rows.append(open_rows.pop(0))
    return [docs for _, docs in rows + open_rows]


def pack(args):
    tok, rng, stats = Tokenizer(args.tok), random.Random(args.seed), {}
    docs = [d for spec in args.files for d in documents(tok, spec, args.t, rng, stats)]
    rng.shuffle(docs)
    info = {'sources': stats, 'buckets': {}}
    for T in (args.t_short, args.t):
        rows = fill([d for d in docs if (len(d[0]) <= args.t_short) == (T == args.t_short)], T)
        rng.shuffle(rows)
        if not rows:
            continue
        tok_rows, own_rows = np.full((len(rows), T), EOT, np.uint16), np.zeros((len(rows), T), np.uint8)
        for i, row in enumerate(rows):
            for all_rows, parts in zip((tok_rows, own_rows), zip(*row)):
                x = np.concatenate(parts)
                all_rows[i, :len(x)] = x
        tok_rows.tofile(f'{args.out}.{T}.tok')
        own_rows.tofile(f'{args.out}.{T}.own')
        own = [int((own_rows == 1).sum()), float((own_rows > 0).mean())]
        info['buckets'][str(T)] = {'rows': len(rows), 'tokens': int((own_rows > 0).sum()), 'assistant_tokens': own[0], 'fill': own[1]}
    json.dump(info, open(args.out + '.json', 'w'), indent=1)
    print(json.dumps(info))


if __name__ == '__main__':
    ap = argparse.ArgumentParser()
    sub = ap.add_subparsers(dest='cmd', required=True)
    f = sub.add_parser('filter')
    f.add_argument('--text', required=True)
    f.add_argument('--out', required=True)
    p = sub.add_parser('pack')
    p.add_argument('--tok', required=True)
    p.add_argument('--out', required=True)
    p.add_argument('--t', type=int, default=512)
    p.add_argument('--t-short', type=int, default=256)
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('files', nargs='+', help='file.jsonl or file.jsonl:share, share 0.5 = a random half, 2 = twice')
    a = ap.parse_args()
    if a.cmd == 'pack':
        pack(a)
    else:
        os.makedirs(a.out, exist_ok=True)
        for name, fn in (('oasst', f_oasst), ('self', f_self), ('sgd', f_sgd), ('trivia', f_trivia), ('prose', f_prose)):
            write(os.path.join(a.out, name), fn(a.text))
