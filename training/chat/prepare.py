#!/usr/bin/env python3
"""Step 1 'filter': turn the public text sets into clean JSON lines.  Step 2 'pack': JSON lines -> fixed rows of uint16 tokens.

  python3 prepare.py filter --text DIR --out DIR        # DIR holds the .gz sets of the README
  python3 prepare.py pack --tok TOKDIR --out PREFIX --t 512 --t-short 256 file.jsonl[:share] ...

pack writes PREFIX.<T>.tok (uint16, rows x T), PREFIX.<T>.own (uint8: 1 assistant token, 2 other token, 0 padding) and PREFIX.json.
Several short documents share one row; a document never crosses a row, and train.py masks attention between documents.
"""

import argparse, gzip, hashlib, json, os, random, re
import numpy as np
from tokenizer import Tokenizer, EOT

BAD = re.compile(
    r"\b(kill|murder|suicid|sex|porn|rape|nazi|hitler|drug|cocaine|weed|bomb|weapon|gun|shoot|racis|nigg|fuck|shit|damn|bitch|ass|asshole|hell|crap|cum|dick|penis|vagina|boob|terroris|terrif?y|blood|gore|die|died|dead|death|drunk|naked|nude|slut|whore|gay|lesbian|trump|obama|clinton|politic|muslim|jew|abortion|crotch)\w*",
    re.I)
IDENT = re.compile(
    r"open.?assistant|language model|\bAI\b|\bLAION\b|chatgpt|openai|as an assistant|trained|my training|cut.?off|clarif|rephrase|more context|more details|URL_|\bpython|\bcode\b|javascript|function|algorithm|\bSQL\b|crypto",
    re.I)
WORDY = re.compile(r"^[A-Za-z0-9 ,.'!?;:()\-\"$%&/]+$")


def clean(s):
    s = (s.replace('\u2019', "'").replace('\u2018', "'").replace('\u201c',
                                                                 '"').replace('\u201d',
                                                                              '"').replace('\u2014',
                                                                                           ' - ').replace('\u2013',
                                                                                                          '-').replace('\u2026', '...'))
    return re.sub(r'[ \t]+', ' ', s).strip()


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
        if not (3 <= len(p) <= 120 and 12 <= len(a) <= 260) or '\n' in p + a:
            continue
        if not WORDY.match(p) or not WORDY.match(a) or BAD.search(p + ' ' + a) or IDENT.search(p + ' ' + a):
            continue
        if a[-1] not in '.!?' or not a[0].isupper() or re.match(r'\d[.)]', a) or 'http' in a:
            continue
        ws = a.lower().split()
        if len(set(ws)) < 0.6 * len(ws) or len(ws) < 3:
            continue
        if '1b' in r['m'] or 'open-llama-chat' in r['m']:
            continue  # the weakest writers
        best.setdefault(p, []).append(a)
    for p, xs in best.items():
        seen = set()
        for a in sorted(set(xs), key=len)[:6]:
            if a[:25] in seen:
                continue
            seen.add(a[:25])
            yield chat('oasst', [p, a])


def f_self(d):
    for l in gz(d, 'self_dialogue.jsonl.gz'):
        t = [sent_case(x) for x in json.loads(l)['turns']][:8]
        if len(t) < 4 or BAD.search(' '.join(t)) or any(not WORDY.match(x) or len(x) > 120 or len(x) < 2 for x in t):
            continue
        if len(t) % 2:
            t = t[:-1]
        yield chat('self', t)


def f_sgd(d):
    for l in gz(d, 'sgd_turns.jsonl.gz'):
        t = [sent_case(x) for x in json.loads(l)['turns']][:8]
        if len(t) < 4 or any(not WORDY.match(x) or len(x) > 160 for x in t):
            continue
        if len(t) % 2:
            t = t[:-1]
        yield chat('sgd', t)


def f_trivia(d):
    q = None
    a = None

    def emit():
        if (q and a and 12 < len(q) < 110 and len(a) < 30 and WORDY.match(q) and WORDY.match(a) and not BAD.search(q + a)
                and a not in ('True', 'False') and q[-1] == '?' and 'these' not in q.lower() and 'following' not in q.lower()):
            return chat('trivia', [q, a + '.'])

    for l in gz(d, 'open_trivia_qa.txt.gz'):
        l = l.rstrip('\n')
        if l.startswith('#Q '):
            r = emit()
            if r:
                yield r
            q, a = clean(l[3:]), None
        elif l.startswith('^ '):
            a = clean(l[2:])
    r = emit()
    if r:
        yield r


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
            if (WORDY.match(buf) and not BAD.search(buf)
                    and not re.search('assassin|execut|prison|hang|gaol|Oswald|rifle|crime|convict', buf)):
                yield {'src': 'prose', 'text': buf}
            buf = ''


def pack(args):
    tok = Tokenizer(args.tok)
    rng = random.Random(args.seed)
    docs = []
    stats = {}
    for spec in args.files:
        f, _, share = spec.partition(':')
        share = float(share or 1)
        lines = open(f).read().split('\n')[:-1]
        reps = int(share)
        sel = lines * reps + rng.sample(lines, int((share - reps) * len(lines)))
        cut = 0
        for l in sel:
            d = json.loads(l)
            if 'text' in d:
                ids = tok.plain(d['text']) + [EOT]
                own = [2] * len(ids)
            else:
                ids, own = tok.chat(d['messages'], False)
                ids = ids[:-1] + [EOT]
                own = [1 if o else 2 for o in own[:-1]] + [2]  # the last newline gives way to the end mark
            if len(ids) > args.t:
                cut += 1
                continue
            docs.append((np.array(ids, np.uint16), np.array(own, np.uint8)))
            s = stats.setdefault(d['src'], [0, 0])
            s[0] += 1
            s[1] += len(ids)
        print(f, len(sel), 'documents,', cut, 'too long')
    rng.shuffle(docs)
    info = {'sources': stats, 'buckets': {}}
    for T in sorted({args.t_short, args.t}):
        mine = [d for d in docs if (len(d[0]) <= args.t_short) == (T == args.t_short)] if args.t != args.t_short else docs
        rows = []
        open_rows = []  # first fit over a small window of open rows
        for ids, own in mine:
            for r in open_rows:
                if r[0] + len(ids) <= T:
                    r[1].append((ids, own))
                    r[0] += len(ids)
                    break
            else:
                open_rows.append([len(ids), [(ids, own)]])
            if len(open_rows) > 24:
                open_rows.sort(key=lambda r: -r[0])
                rows.append(open_rows.pop(0))
        rows += open_rows
        rng.shuffle(rows)
        if not rows:
            continue
        A = np.full((len(rows), T), EOT, np.uint16)
        O = np.zeros((len(rows), T), np.uint8)
        for i, (n, ds) in enumerate(rows):
            j = 0
            for ids, own in ds:
                A[i, j:j + len(ids)] = ids
                O[i, j:j + len(ids)] = own
                j += len(ids)
        A.tofile(f'{args.out}.{T}.tok')
        O.tofile(f'{args.out}.{T}.own')
        info['buckets'][str(T)] = {
            'rows': len(rows), 'tokens': int((O > 0).sum()), 'assistant_tokens': int((O == 1).sum()), 'fill': float((O > 0).mean())
        }
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
