#!/usr/bin/env python3
"""Train until --end; resumes from ckpt/last.pt. The rates are constant and fall linearly to zero in the last --decay minutes;
ckpt/trunk.pt is the state before they fall, from which a later run goes on (`--resume ckpt/trunk.pt`).
Arithmetic is bf16 on a copy of the weights (AMX on CPU), the weights themselves stay f32. Matrices: Muon; the rest: AdamW.
Under torchrun every process hears windows of its own and the gradients are averaged: `torchrun --standalone --nproc_per_node 2 train.py ...`."""

import argparse, gc, os, random, re, time
import torch, torch.distributed as dist, torch.nn.functional as F
import paths  # noqa: F401 (enters the work folder)
import data, model as M, tok
from safetensors.torch import load_file
from shared.work import Run, save, seconds_until

DROPPED = ('ctc.', 'phone_enc.')  # by an export
LAST, TRUNK = 'ckpt/last.pt', 'ckpt/trunk.pt'


def arguments():
    ap = argparse.ArgumentParser()
    A = ap.add_argument
    A('--end', default='3600', help='HH:MM (UTC), or seconds')
    A('--decay', type=float, default=0, help='minutes of falling rates before the end')
    A('--lr', type=float, default=1.2e-3, help='AdamW rate')
    A('--muon', type=float, default=0.01, help='Muon rate (spectral norm of a step on a square matrix)')
    A('--device', default='cpu')
    A('--frames', type=int, default=12000, help='mel frames per step')
    A('--corrupt', type=float, default=0.2, help="share of the decoder's input tokens that is replaced at random")
    A('--share', default='real=0.25,own=0.08', help='share of the windows that a group of clips gets; the rest is synthetic')
    A('--smooth', type=float, default=0.05, help='label smoothing')
    A('--text_batch', type=int, default=40, help='sentences of a text-only batch')
    A('--text_every', type=int, default=3, help='a text-only batch beside every n-th step (0: none)')
    A('--resume', default=LAST, help='state to go on from')
    A('--init', help='model.safetensors of the same shape to start from')
    A('--settle', type=int, default=0, help='after --init: steps in which only what an export drops (phone head and stand-in encoder) learns')
    A('--only', default='', help='pattern of the parameters that learn (what an export drops does too); where it changes the optimisers start anew')
    return ap.parse_args()


class Weights:
    """f32 weights, the bf16 copy that computes, and their optimisers."""

    def __init__(s, a, tk):
        shape = M.config(), len(data.PHONES), tk.t0
        s.net, s.low = M.Whisper(*shape).to(a.device), M.Whisper(*shape).to(a.device, torch.bfloat16).train()
        s.step, s.heard, s.only, s.ranks = 0, 0.0, a.only, int(os.environ.get('WORLD_SIZE', 1))
        state = None
        if a.init:
            print('from', a.init, s.net.load_state_dict({k: v.float() for k, v in load_file(a.init).items()}, strict=False))
            with torch.no_grad():
                s.net.ts.weight.zero_(), s.net.ts.bias.zero_()  # an export has them in its embeddings
        elif os.path.exists(a.resume):
            state = torch.load(a.resume, map_location=a.device)
            print('resumed', a.resume, s.net.load_state_dict(state['net'], strict=False))
            s.step, s.heard = state['step'], state['heard']
        learns = lambda n: bool(re.search(a.only, n)) or n.startswith(DROPPED)
        copies = [(n, p, q) for (n, p), q in zip(s.net.named_parameters(), s.low.parameters())]
        for n, p, q in copies:
            p.requires_grad_(p.requires_grad and learns(n))
            q.requires_grad_(p.requires_grad)
        s.named = [c for c in copies if c[1].requires_grad]
        s.matrices = [p for n, p, _ in s.named if p.ndim == 2 and 'layers.' in n]
        s.rest = [p for n, p, _ in s.named if p.ndim != 2 or 'layers.' not in n]
        groups = [dict(params=[p for p in s.rest if (p.ndim > 1) == wide], weight_decay=decay) for wide, decay in ((True, 0.01), (False, 0.0))]
        s.adam = torch.optim.AdamW(groups, lr=a.lr, betas=(0.9, 0.98), eps=1e-8)
        s.muon = torch.optim.Muon(s.matrices, lr=a.muon, weight_decay=0.02, momentum=0.95) if s.matrices else None
        if state and state['only'] == a.only:
            s.adam.load_state_dict(state['adam'])
            s.muon and s.muon.load_state_dict(state['muon'])
        s.begun = s.step
        s.copy(copies)
        for x, y in zip(s.low.buffers(), s.net.buffers()):
            x.data.copy_(y)

    @torch.no_grad()
    def copy(s, copies):
        torch._foreach_copy_([q for _, _, q in copies], [p for _, p, _ in copies])

    def save(s, path):
        optimisers = dict(adam=s.adam.state_dict(), muon=s.muon.state_dict() if s.muon else None)
        save(dict(net=s.net.state_dict(), step=s.step, heard=s.heard, only=s.only, **optimisers), path)

    def average(s, share):
        """Averages the bf16 gradients over the ranks, in place; returns rank 0's share, which decides for all."""
        if s.ranks == 1:
            return share
        grads = [torch.zeros_like(q) if q.grad is None else q.grad for _, _, q in s.named]
        flat = torch.cat([g.flatten() for g in grads] + [torch.tensor([0.0 if dist.get_rank() else share], dtype=torch.bfloat16)])
        dist.all_reduce(flat)
        for (_, _, q), g in zip(s.named, flat[:-1].div(s.ranks).split([g.numel() for g in grads])):
            q.grad = g.view(q.shape)
        return flat[-1].item()

    def update(s, a, share, settling):
        """One optimiser step from the copy's gradients; returns the norm of those that AdamW sees (nan: no step was made)."""
        for n, p, q in s.named:
            p.grad = None if settling and not n.startswith(DROPPED) else torch.zeros_like(p) if q.grad is None else q.grad.float()
            q.grad = None
        norm = torch.nn.utils.clip_grad_norm_(s.rest, 1.0).item()
        if norm < 1e6:
            for optimiser, lr in ((s.adam, a.lr * (5 if settling else share)), (s.muon, a.muon * share)):
                for group in optimiser.param_groups if optimiser else []:
                    group['lr'] = lr
                optimiser and optimiser.step()
            s.copy(s.named)
        s.step += 1
        return norm


class Losses:
    """Of the bf16 copy, for batches of data.Sampler."""

    def __init__(s, a, low, tk, rr):
        s.a, s.low, s.tk, s.rr = a, low, tk, rr

    def corrupt(s, x, p):
        """Replace a share p of the decoder's input text tokens at random, so that it listens instead of reciting."""
        m = (torch.rand(x.shape, device=x.device) < p) & (x < s.tk.eot)
        return torch.where(m, torch.randint(256, s.tk.eot, x.shape, device=x.device), x)

    def guide(s, b, positions):
        """Attention mass of half of the cross-attention heads that lies away from where a token is expected."""
        on = b['guide'][..., 0] >= 0
        pos = torch.arange(positions, device=on.device)[None, None]
        w = (1 - torch.exp(-0.5 * ((pos - b['guide'][..., :1]) / b['guide'][..., 1:])**2)) * on[..., None]
        layers, w = s.low.model.decoder.layers, w.to(torch.bfloat16)[:, None]
        return sum((l.encoder_attn.att[:, :2] * w).float().sum() for l in layers) / (2 * len(layers) * on.sum().clamp(min=1))

    def tokens(s, b, enc, p_corrupt):
        """-> cross entropy, share of right tokens"""
        at = (b['y'] != -100).flatten().nonzero()[:, 0]
        y = b['y'].flatten()[at]
        at = F.pad(at, (0, -len(at) % 128))  # few shapes; the additional rows are dropped again
        logits = s.low.decode(s.corrupt(b['x'], p_corrupt), enc, keep=at)[:len(y)].float()
        return F.cross_entropy(logits, y, label_smoothing=s.a.smooth), (logits.argmax(-1) == y).float().mean()

    def phones(s, b, enc):
        lp = s.low.ctc(enc).float().log_softmax(-1).transpose(0, 1)
        n = torch.full((lp.shape[1], ), lp.shape[0], dtype=torch.long)
        return F.ctc_loss(lp, b['ph'], n, b['pl'], zero_infinity=True, reduction='sum') / b['pl'].sum().clamp(min=1)

    def audio(s, b, settling):
        """-> loss and what it is made of; settling: only the phone head's, on the encoder as it is"""
        with torch.set_grad_enabled(not settling):
            enc = s.low.model.encoder(b['mel'].to(torch.bfloat16), b['off'])
        ctc = s.phones(b, enc)
        if settling:
            return ctc, dict(ctc=ctc)
        ce, acc = s.tokens(b, enc, s.a.corrupt if s.rr.random() < 0.8 else 0.0)
        ga = s.guide(b, enc.shape[1])
        return ce + 0.4 * ctc + 0.2 * ga, dict(ce=ce, ctc=ctc, ga=ga, acc=acc)

    def text(s, b):
        enc = s.low.phone_enc(b['p'], s.low.model.encoder.embed_positions.weight)
        ce, acc = s.tokens(b, enc, s.a.corrupt)
        anchor = F.cross_entropy(s.low.ctc(enc).float().flatten(0, 1), b['p'].flatten())  # keeps the stand-in states in the encoder's phone space
        return ce + 0.1 * anchor + 0.2 * s.guide(b, b['p'].shape[1]), dict(text_ce=ce, text_acc=acc)


def plan(sampler, frames, rr):
    """(T frames, windows, utterances per window): mostly one utterance in a window that fits; some windows of several, some of the full 30 s."""
    u = rr.random()
    if u < 0.08:
        return 3000, max(2, frames // 4500), rr.choice([1, 1, 2, 3, 5, 99])
    if u < 0.24:
        T = rr.choice(data.LENGTHS[-7:-1])
        return T, max(2, frames // T), rr.choice([1, 2, 3, 4, 6])
    T = sampler.length(rr)
    return T, max(2, frames // T), 1


def main():
    a = arguments()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    rank = int(os.environ.get('RANK', 0))
    tk = tok.Tok()
    weights = Weights(a, tk)
    if weights.ranks > 1:
        dist.init_process_group('gloo')
    run = Run(seconds_until(a.end), every=150)
    gc.disable()
    store = data.Store()
    sampler = data.Sampler(store, tk, int(time.time()) + rank, {g: float(p) for g, p in (x.split('=') for x in a.share.split(','))})
    sampler.load_text()
    gc.enable()
    gc.freeze()  # the sentences are a million small objects: never look through them again
    rr = random.Random(weights.step)  # the same on every rank: equal work, equal waiting
    losses = Losses(a, weights.low, tk, rr)
    to = lambda b: {k: torch.from_numpy(v).to(a.device) if hasattr(v, 'dtype') else v for k, v in b.items()}
    if not rank:
        hours = {g: f'{len(u)} = {store.frames[g].sum() / 360000:.1f} h' for g, u in store.utts.items()}
        print('store', hours, len(sampler.txt), 'text-only sentences;', len(weights.matrices), 'matrices by Muon', flush=True)
    trunk, told, refreshed, sums = not a.decay, time.time(), time.time(), {}
    while True:
        left = run.seconds - run.spent
        if not trunk and left < 60 * a.decay:
            rank or weights.save(TRUNK)
            trunk = True
        T, B, k = plan(sampler, a.frames, rr)
        settling = weights.step - weights.begun < a.settle
        loss, seen = losses.audio(to(sampler.batch(T, B, k)), settling)
        loss.backward()
        if a.text_every and (settling or weights.step % a.text_every == 0):
            loss, more = losses.text(to(sampler.text_batch(a.text_batch)))
            (loss * 0.5).backward()
            seen.update(more)
        # a warm-up of 40 steps, constant, then linear to 0 in the last minutes
        fall = min(1.0, max(0.0, left / (60 * a.decay))) if a.decay else 1.0
        share = weights.average(-1.0 if run.stopping else min(1, max(0, weights.step - weights.begun - a.settle + 1) / 40) * fall)
        if share < 0:
            break
        seen['norm'] = weights.update(a, share, settling)
        weights.heard += weights.ranks * B * T / 360000
        for name, x in seen.items():
            sums.setdefault(name, []).append(x.item() if torch.is_tensor(x) else x)
        if weights.step % 50 == 0 and not rank:
            means = ' '.join(f'{name} {sum(x) / len(x):.3f}' for name, x in sums.items())
            print(f'{time.strftime("%H:%M:%S", time.gmtime())} step {weights.step} rate {share:.2f} {means} | '
                  f'{(time.time() - told) / 50:.3f} s/step, {weights.heard:.1f} h', flush=True)
            told, sums = time.time(), {}
        if run.due() and not rank:
            weights.save(LAST)
        if time.time() - refreshed > 240:
            store.refresh()
            gc.freeze()
            refreshed = time.time()
    if not rank:
        weights.save(LAST)
        print('done', weights.step, flush=True)
    if weights.ranks > 1:
        dist.destroy_process_group()


if __name__ == '__main__':
    main()
