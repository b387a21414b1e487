#!/usr/bin/env python3
"""Held-out loss per source, the written test prompts with a rule-based grade, and a repetition check, on an exported folder.

python3 evaluate.py --model OUT/model --prompts eval_prompts.json --samples OUT/samples.txt --json OUT/eval.json --held a.held.jsonl b.held.jsonl ...
"""

import argparse, collections, json, math, re
import torch
from tokenizer import Tokenizer, EOT, IM_END
from export import load, greedy


def held_loss(net, tok, files, limit):
    """mean loss per token: all tokens, and only what the assistant writes; also its perplexity"""
    s = collections.defaultdict(lambda: [0.0, 0, 0.0, 0])
    for f in files:
        for l in open(f).read().split('\n')[:limit]:
            if not l:
                continue
            d = json.loads(l)
            if 'text' in d:
                ids = tok.plain(d['text']) + [EOT]
                own = [0] * len(ids)
            else:
                ids, own = tok.chat(d['messages'], False)
                ids[-1] = EOT
            if len(ids) > 512:
                continue
            x = torch.tensor([ids])
            with torch.no_grad():
                z = torch.log_softmax(net.logits(x)[0, :-1], -1)
            n = -z.gather(1, x[0, 1:, None])[:, 0]
            o = torch.tensor(own[1:]).bool()
            src = d['src'].split('/')[0]
            for k in {src, d['src'] if src == 'syn' else src}:
                e = s[k]
                e[0] += float(n.sum())
                e[1] += len(n)
                e[2] += float(n[o].sum())
                e[3] += int(o.sum())
    return {
        k: {
            'tokens': v[1], 'loss_all': round(v[0] / v[1], 4), 'loss_assistant': round(v[2] / v[3], 4) if v[3] else None,
            'ppl_assistant': round(math.exp(v[2] / v[3]), 3) if v[3] else None
        }
        for k, v in sorted(s.items())
    }


def repeats(ids):
    """share of 4-grams that came before"""
    g = [tuple(ids[i:i + 4]) for i in range(len(ids) - 3)]
    return 1 - len(set(g)) / len(g) if g else 0.0


if __name__ == '__main__':
    ap = argparse.ArgumentParser()
    A = ap.add_argument
    A('--model', required=True)
    A('--prompts', required=True)
    A('--samples')
    A('--json')
    A('--held', nargs='*', default=[])
    A('--limit', type=int, default=150, help='held-out lines per file')
    A('--max-new', type=int, default=120)
    A('--threads', type=int, default=1)
    a = ap.parse_args()
    torch.set_num_threads(a.threads)
    net = load(a.model)
    tok = Tokenizer(a.model)
    P = json.load(open(a.prompts))
    lines = []
    by = collections.defaultdict(lambda: [0, 0])
    R = []
    for p in P:
        ids, _ = tok.chat(p['messages'])
        g = greedy(net, ids, a.max_new)
        ended = g[-1] in (IM_END, EOT)
        t = tok.decode(g)
        rep = repeats(g)
        ok = ended and all(re.search(x, t, re.I) for x in p['all']) and not any(re.search(x, t, re.I) for x in p['none'])
        by[p['cat']][0] += ok
        by[p['cat']][1] += 1
        R.append(dict(id=p['id'], cat=p['cat'], ok=ok, ended=ended, repeats=round(rep, 3), answer=t))
        lines.append(f"[{p['id']}] {p['cat']} {'PASS' if ok else 'FAIL'}" + ('' if ended else ' (did not stop)') + '\n' +
                     '\n'.join(f"  {m['role']}: {m['content']}" for m in p['messages']) + f'\n  >> {t}\n')
    n = sum(r['ok'] for r in R)
    res = {
        'passed': n, 'of': len(R), 'by_category': {k: f'{v[0]}/{v[1]}'
                                                   for k, v in by.items()}, 'stopped_by_itself': sum(r['ended'] for r in R),
        'answers_with_repeats_over_20_percent': sum(r['repeats'] > 0.2 for r in R),
        'mean_repeats': round(sum(r['repeats'] for r in R) / len(R), 4)
    }
    if a.held:
        res['held_out'] = held_loss(net, tok, a.held, a.limit)
    text = json.dumps({k: v for k, v in res.items()}, indent=1)
    if a.samples:
        open(a.samples, 'w').write('Greedy answers of the exported float16 weights (float32 arithmetic), raw.\n\n' + '\n'.join(lines) +
                                   '\n' + text + '\n')
    if a.json:
        json.dump(dict(res, answers=R), open(a.json, 'w'), indent=1)
    print('\n'.join(lines))
    print(text)
