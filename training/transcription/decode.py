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


def allowed(lo, said, tk, stamps):
    """The logits lo (V,) of what may follow; without `stamps` no times."""
    lo[tk.eot + 1:tk.t0 if stamps else tk.size] = -1e9
    if stamps:
        timestamp_rules(lo, said, tk)
    return lo


def prompt(tk, stamps):
    return [tk.sot, tk.en, tk.tr] + ([] if stamps else [tk.nots])


@torch.no_grad()
def greedy(net, tk, mel, stamps=False, longest=220):
    """mel (80, T) -> token ids (prompt excluded)"""
    enc, cache, pos, said = net.model.encoder(mel[None]), net.new_cache(), 0, []
    x = prompt(tk, stamps)
    while len(said) < longest:
        lo = net.decode(torch.tensor([x]), enc, cache, pos)[0, -1]
        pos += len(x)
        x = [int(allowed(lo, said, tk, stamps).argmax())]
        if x[0] == tk.eot:
            break
        said += x
    return said


@torch.no_grad()
def beam_search(net, tk, mel, width, stamps=False, longest=224):
    """mel (80, T) -> token ids; the plainest form of engine/tasks/beam-search.ts: every hypothesis is decoded anew at every step."""
    enc = net.model.encoder(mel[None])
    live, finished = [([], 0.0)], []
    while len(finished) < width and live and len(live[0][0]) < longest:
        x = torch.tensor([prompt(tk, stamps) + said for said, _ in live])
        logits = net.decode(x, enc.expand(len(live), -1, -1))[:, -1]
        ranked = []
        for (said, score), lo in zip(live, logits):
            best = allowed(lo, said, tk, stamps).log_softmax(-1).topk(width + 1)
            ranked += [(said, t, score + p) for t, p in zip(best.indices.tolist(), best.values.tolist())]
        ranked.sort(key=lambda one: -one[2])
        silent = not live[0][0] and ranked[0][1] == tk.eot
        finished += [(said, score) for said, t, score in ranked[:width] if t == tk.eot]
        live = [(said + [t], score) for said, t, score in ranked if t != tk.eot][:width]
        if silent:
            break
    return max(finished or live, key=lambda one: one[1] / (len(one[0]) + 1))[0]
