"""Decoding in PyTorch as the engine does it (30 s windows, 1500 positions): what the golden fixture is made with."""

import torch
import paths  # noqa: F401 (enters the work folder)
import model as M, tok
from safetensors.torch import load_file


def load(folder='out'):
    """An exported model, in float32, and its tokenizer."""
    net = M.Whisper(M.config())
    net.load_state_dict({k: v.float() for k, v in load_file(folder + '/model.safetensors').items()}, strict=False)
    return net.eval(), tok.Tok(folder + '/tokenizer.json')


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
        lo[:, tk.eot + 1:tk.t0 if stamps else tk.size] = -1e9
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
        lo[:, tk.eot + 1:tk.t0 if stamps else tk.size] = -1e9
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
