#!/usr/bin/env python3
"""Decoding exactly as the engine does it (30 s windows, 1500 positions) from out/model.safetensors, and WER per set.
usage: evaluate.py [--sets a,b] [--n N] [--ckpt ckpt/last.pt]  (writes eval/results.json)"""

import json, os, argparse, time, re, wave, numpy as np, torch
import paths  # noqa: F401 (enters the work folder)
import model as M, tok, feat

ap = argparse.ArgumentParser()
A = ap.add_argument
A('--sets', default='')
A('--n', type=int, default=999)
A('--ckpt', default='')
A('--threads', type=int, default=1)
A('--show', type=int, default=1)
A('--out', default='eval/results.json')
A('--secs', type=int, default=30)


def load(ckpt=''):
    tk = tok.Tok()
    if ckpt:
        s = torch.load(ckpt, map_location='cpu')
        cfg = s['cfg']
        net = M.Whisper(cfg, len(s['net']['ctc.bias']) - 1, tk.t0)
        net.load_state_dict(s['net'], strict=False)
        sd = net.hf_state()
    else:
        cfg = json.load(open('out/config.json'))
        sd = {k: v.float() for k, v in M.load_st('out/model.safetensors').items()}
    net = M.Whisper(cfg)
    net.load_state_dict(sd, strict=False)
    return net.eval(), tk, cfg


def timestamp_rules(lo, said, tk):
    """Masks the logits lo (V,) in place as transformers' WhisperTimeStampLogitsProcessor does: times begin, come in pairs and grow, and win where
    together they are likelier than any word."""
    off = -1e9
    if not said:
        lo[:tk.t0] = off
        lo[tk.t0 + 51:] = off
        return
    last, before = said[-1] >= tk.t0, len(said) < 2 or said[-2] >= tk.t0
    if last:
        if before:
            lo[tk.t0:] = off
        else:
            lo[:tk.eot] = off
    times = [t for t in said if t >= tk.t0]
    if times:
        lo[tk.t0:times[-1] + (0 if last and not before else 1)] = off
    lp = lo.log_softmax(-1)
    if lp[tk.t0:].logsumexp(-1) > lp[:tk.t0].max():
        lo[:tk.t0] = off


@torch.no_grad()
def greedy(net, tk, mels, stamps=False, max_len=220):
    """mels (B, 80, T) -> list of token id lists (prompt excluded)."""
    enc = net.model.encoder(mels)
    B = len(mels)
    e = net.emb()
    pre = [tk.sot, tk.en, tk.tr] + ([] if stamps else [tk.nots])
    ids = torch.tensor([pre] * B)
    cache = net.new_cache()
    pos = 0
    done = torch.zeros(B, dtype=torch.bool)
    out = []
    x = ids
    for _ in range(max_len):
        lo = net.decode(x, enc, cache, pos, e=e, last=True)[:, -1]
        pos += x.shape[1]
        lo[:, tk.eot + 1:tk.t0 if stamps else len(tk.vocab)] = -1e9
        if stamps:
            for i in range(B):
                timestamp_rules(lo[i], [int(o[i]) for o in out], tk)
        n = lo.argmax(-1)
        n[done] = tk.eot
        done |= n == tk.eot
        out.append(n)
        if done.all():
            break
        x = n[:, None]
    o = torch.stack(out, 1).tolist()
    return [r[:r.index(tk.eot)] if tk.eot in r else r for r in o]


@torch.no_grad()
def beam_search(net, tk, mel, width, stamps=False, max_len=224):
    """mel (80, T) -> token ids; the plainest form of engine/tasks/beam-search.ts: every hypothesis is decoded anew at every step."""
    enc, e = net.model.encoder(mel[None]), net.emb()
    pre = [tk.sot, tk.en, tk.tr] + ([] if stamps else [tk.nots])
    live, finished = [([], 0.0)], []
    while len(finished) < width and live and len(live[0][0]) < max_len:
        x = torch.tensor([pre + said for said, _ in live])
        lo = net.decode(x, enc.expand(len(live), -1, -1), e=e, last=True)[:, -1]
        lo[:, tk.eot + 1:tk.t0 if stamps else len(tk.vocab)] = -1e9
        ranked = []
        for (said, score), row in zip(live, lo):
            if stamps:
                timestamp_rules(row, said, tk)
            best = row.log_softmax(-1).topk(width + 1)
            ranked += [(said, t, score + p) for t, p in zip(best.indices.tolist(), best.values.tolist())]
        ranked.sort(key=lambda one: -one[2])
        silent = not live[0][0] and ranked[0][1] == tk.eot
        live = []
        for rank, (said, t, score) in enumerate(ranked):
            if t != tk.eot:
                live.append((said + [t], score))
            elif rank < width:
                finished.append((said, score))
            if len(live) == width:
                break
        if silent:
            break
    return max(finished or live, key=lambda one: one[1] / (len(one[0]) + 1))[0]


def wav(p):
    w = wave.open(p)
    return np.frombuffer(w.readframes(w.getnframes()), np.int16).astype(np.float32) / 32768


def norm(t):
    return re.sub(r"[^a-z0-9' ]+", ' ', t.lower().replace('-', ' ').replace('mr.', 'mister')).split()


def edits(a, b):
    d = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        p, d[0] = d[0], i
        for j, y in enumerate(b, 1):
            p, d[j] = d[j], min(d[j] + 1, d[j - 1] + 1, p + (x != y))
    return d[-1]


def long_form(net, tk, x):
    """Sequential 30 s windows; advance to the last complete segment end stamp, else by the full window."""
    i, text = 0, ''
    while i < len(x) - 1600:
        ids = greedy(net, tk, torch.from_numpy(feat.whisper_input(x[i:i + 480000]))[None], True)[0]
        st = [t - tk.t0 for t in ids if t >= tk.t0]
        more = len(x) - i > 480000
        if more and len(st) > 1:
            cut = [k for k, t in enumerate(ids) if t >= tk.t0]
            if len(cut) % 2 or st[-1] * 0.02 > 28.5:
                last = [k for k in cut if (ids[k] - tk.t0) * 0.02 <= 28.5]
                last = last[len(last) - len(last) % 2 - 1] if last else cut[-1]
            else:
                last = cut[-1]
            adv = max(1.0, (ids[last] - tk.t0) * 0.02)
            ids = ids[:last]
        else:
            adv = 30.0
        text += tk.decode([t for t in ids if t < tk.eot])
        i += int(adv * 16000)
    return text


def main():
    a = ap.parse_args()
    torch.set_num_threads(a.threads)
    net, tk, _ = load(a.ckpt)
    refs = json.load(open('eval/refs.json'))
    res = {}
    t0 = time.time()
    ps = json.load(open('eval/pocketsphinx.json')) if os.path.exists('eval/pocketsphinx.json') else {}
    for k, v in refs.items():
        if a.sets and not any(s in k for s in a.sets.split(',')):
            continue
        e = w = 0
        pe = pw = qe = 0
        hyps = []
        for p, ref in v[:a.n]:
            x = wav(p)
            if k == 'long_over_60s':
                h = long_form(net, tk, x)
            else:
                h = tk.decode(greedy(net, tk, torch.from_numpy(feat.whisper_input(x, a.secs))[None])[0])
            r = norm(ref)
            d = edits(r, norm(h))
            e += d
            w += len(r)
            hyps.append([p, ref, h])
            if p in ps:
                pe += edits(r, norm(re.sub(r'\(\d\)', '', ps[p])))
                pw += len(r)
                qe += d
        res[k] = dict(wer=e / max(w, 1),
                      false_words=sum(len(norm(h[2])) for h in hyps) if not w else None,
                      words=w,
                      clips=len(v[:a.n]),
                      pocketsphinx_wer=pe / pw if pw else None,
                      ours_on_the_same_clips=qe / pw if pw else None,
                      hyps=hyps)
        print(f'{k:30s} WER {100 * e / max(w, 1):5.1f}%  ({w} words)' +
              (f'  same clips: ours {100 * qe / pw:.1f}% pocketsphinx {100 * pe / pw:.1f}%' if pw else ''),
              f'{time.time() - t0:.0f}s',
              flush=True)
        for p, r, h in hyps[:a.show]:
            print('   ref:', r[:150], '\n   hyp:', h[:150], flush=True)
        json.dump(res, open(a.out, 'w'), indent=1)


if __name__ == '__main__':
    main()
