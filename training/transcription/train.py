#!/usr/bin/env python3
"""Train until --end HH:MM (UTC); resumes from ckpt/last.pt. The rates are constant and fall linearly to zero in the last --decay minutes;
ckpt/trunk.pt is the state before they fall, from which a later run goes on (`--resume ckpt/trunk.pt`).
Arithmetic is bf16 on a copy of the weights (AMX on CPU), the weights themselves stay f32. Matrices: Muon; the rest: AdamW.
Under torchrun every process hears windows of its own and the gradients are averaged: `torchrun --standalone --nproc_per_node 2 train.py ...`."""

import argparse, datetime, gc, os, random, re, signal, time
import torch, torch.distributed as dist, torch.nn.functional as F
import paths  # noqa: F401 (enters the work folder)
import data, model as M, tok

ap = argparse.ArgumentParser()
A = ap.add_argument
A('--end', default='')
A('--hours', type=float, default=1.0)
A('--decay', type=float, default=0, help='minutes of falling rates before the end')
A('--d', type=int, default=256)
A('--enc', type=int, default=4)
A('--dec', type=int, default=4)
A('--heads', type=int, default=4)
A('--lr', type=float, default=1.2e-3, help='AdamW rate')
A('--muon', type=float, default=0.01, help='Muon rate (spectral norm of a step on a square matrix)')
A('--device', default='cpu')
A('--threads', type=int, default=1)
A('--frames', type=int, default=12000, help='mel frames per step')
A('--corrupt', type=float, default=0.2, help="share of the decoder's input tokens that is replaced at random")
A('--share', default='real=0.25,own=0.08', help='share of the windows that a group of clips gets; the rest is synthetic')
A('--smooth', type=float, default=0.05, help='label smoothing')
A('--text_batch', type=int, default=40, help='sentences of a text-only batch')
A('--text_every', type=int, default=3, help='a text-only batch beside every n-th step (0: none)')
A('--steps', type=int, default=0, help='stop after so many steps and print a profile; nothing is saved')
A('--ckpt', default='ckpt')
A('--resume', default='', help='state to go on from instead of CKPT/last.pt')
A('--init', default='', help='model.safetensors of the same shape to start from')
A('--settle', type=int, default=0, help='after --init: steps in which only what an export drops (phone head and stand-in encoder) learns')
A('--only', default='', help='pattern of the parameters that learn (what an export drops does too); the optimisers start anew')
a = ap.parse_args()
torch.set_num_threads(a.threads)
torch.set_flush_denormal(True)
os.makedirs(a.ckpt, exist_ok=True)
RANK, RANKS = int(os.environ.get('RANK', 0)), int(os.environ.get('WORLD_SIZE', 1))
if RANKS > 1:
    dist.init_process_group('gloo')
START = time.time()
DROPPED = ('ctc.', 'phone_enc.')  # by an export
END = START + a.hours * 3600
if a.end:
    now = datetime.datetime.now(datetime.timezone.utc)
    h, m = map(int, a.end.split(':'))
    END = START + (now.replace(hour=h, minute=m, second=0) - now).total_seconds() % 86400  # past midnight: tomorrow's

tk = tok.Tok()
cfg = M.config(a.d, a.heads, a.enc, a.dec, 4 * a.d, len(tk.vocab), dict(eot=tk.eot, sot=tk.sot))
net = M.Whisper(cfg, len(data.PHONES), tk.t0).to(a.device)  # f32 weights
if a.init:
    print('from', a.init, net.load_state_dict({k: v.float() for k, v in M.load_st(a.init).items()}, strict=False))
    with torch.no_grad():
        net.ts.weight.zero_(), net.ts.bias.zero_()  # an export has them in its embeddings
low = M.Whisper(cfg, len(data.PHONES), tk.t0).to(a.device, torch.bfloat16).train()  # what computes
for n, p in [*net.named_parameters(), *low.named_parameters()] if a.only else []:
    p.requires_grad &= bool(re.search(a.only, n)) or n.startswith(DROPPED)
copies = list(zip(net.parameters(), low.parameters()))
pairs = [(p, q) for p, q in copies if p.requires_grad]
name_of = {p: n for n, p in net.named_parameters()}
wide = [p for p, _ in pairs if p.ndim >= 2 and 'layers.' in name_of[p] or 'conv' in name_of[p] and p.ndim == 3]
rest = [p for p, _ in pairs if not any(p is w for w in wide)]
RANK or print('parameters', sum(p.numel() for p in net.model.parameters()) / 1e6, 'M;', len(wide), 'matrices by Muon', flush=True)


class Muon:
    """Momentum whose matrix updates are orthogonalised by five Newton-Schulz steps. Matrices of one shape are kept and updated as one stack:
    the f32 weights, the bf16 copies and the momentum; the parameters become views of the first two."""

    def __init__(s, pairs):
        s.groups = {}
        for p, q in pairs:
            s.groups.setdefault((p.shape[0], p[0].numel()), []).append((p, q))
        s.stacks = []
        for (rows, cols), ps in s.groups.items():
            w = torch.stack([p.data.reshape(rows, cols) for p, _ in ps])
            low = w.bfloat16()
            for (p, q), x, y in zip(ps, w, low):
                p.data, q.data = x.view(p.shape), y.view(q.shape)
            s.stacks.append((w, low, torch.zeros_like(w), [q for _, q in ps]))

    @torch.no_grad()
    def step(s, lr):
        for w, low, m, qs in s.stacks:
            rows, cols = w.shape[1:]
            g = torch.stack([(torch.zeros_like(q) if q.grad is None else q.grad).reshape(rows, cols) for q in qs]).float()
            m.lerp_(g, 0.05)
            x = g.lerp_(m, 0.95)
            x = (x / (x.norm(dim=(1, 2), keepdim=True) + 1e-8)).bfloat16()
            x = x.mT.contiguous() if rows > cols else x
            for _ in range(5):
                y = x @ x.mT
                x = torch.baddbmm(x, torch.baddbmm(y, y, y, beta=-4.7750, alpha=2.0315), x, beta=3.4445)
            x = x.mT if rows > cols else x
            w.mul_(1 - 0.02 * lr).sub_(x.float(), alpha=lr * max(1, rows / cols) ** 0.5)
            low.copy_(w)


muon = Muon([(p, q) for p, q in pairs if any(p is w for w in wide)])
adam = torch.optim.AdamW(
    [dict(params=[p for p in rest if p.ndim >= 2], weight_decay=0.01), dict(params=[p for p in rest if p.ndim < 2], weight_decay=0.0)],
    lr=a.lr, betas=(0.9, 0.98), eps=1e-8, foreach=True,
)  # fmt: skip
small = [(p, q) for p, q in pairs if not any(p is w for w in wide)]
step = begun = 0
heard = 0.0  # hours of audio
last = a.ckpt + '/last.pt'
source = a.resume or last
if os.path.exists(source) and not a.init:
    s = torch.load(source, map_location=a.device)
    print('resumed', source, net.load_state_dict(s['net'], strict=False))
    step = begun = s['step']
    if not a.only:
        adam.load_state_dict(s['adam'])
        for stack, m in zip(muon.stacks, s['muon']):
            stack[2].copy_(m)
    heard = s['heard']


def save(path=last):
    if RANK:
        return
    state = dict(net=net.state_dict(), adam=adam.state_dict(), muon=[m for _, _, m, _ in muon.stacks], step=step, heard=heard, cfg=cfg)
    torch.save(state, path + '.tmp')
    os.replace(path + '.tmp', path)


stopping = False


def stop(*_):
    global stopping
    stopping = True


signal.signal(signal.SIGTERM, stop)
gc.disable()
store = data.Store()
shares = {g: float(p) for g, p in (x.split('=') for x in a.share.split(','))}
S = data.Sampler(store, tk, int(time.time()) + RANK, shares)
S.load_text()
rr = random.Random(step)  # the same on every rank: equal work, equal waiting


def describe():
    h = {g: f'{len(u)} = {store.frames[g].sum() / 360000:.1f} h' for g, u in store.utts.items()}
    print('store', h, len(S.txt), 'text-only sentences', flush=True)


if not RANK:
    describe()
gc.enable()
gc.freeze()  # the sentences are a million small objects: never look through them again


def rate():
    """Share of the full rates: a warm-up of 40 steps, constant, then linear to 0 in the last --decay minutes."""
    fall = min(1.0, max(0.0, (END - time.time()) / (60 * a.decay))) if a.decay else 1.0
    return min(1.0, max(0, step - begun - a.settle + 1) / 40) * fall


def plan():
    """(T frames, windows, utterances per window): mostly one utterance in a window that fits; some windows of several, some of the full 30 s."""
    u = rr.random()
    if u < 0.08:
        return 3000, max(2, a.frames // 4500), rr.choice([1, 1, 2, 3, 5, 99])
    if u < 0.24:
        T = rr.choice(data.LENGTHS[-7:-1])
        return T, max(2, a.frames // T), rr.choice([1, 2, 3, 4, 6])
    T = S.length(rr)
    return T, max(2, a.frames // T), 1


def corrupt(x, p):
    """Replace a share p of the decoder's input text tokens at random, so that it listens instead of reciting."""
    m = (torch.rand(x.shape, device=x.device) < p) & (x < tk.eot)
    return torch.where(m, torch.randint(256, tk.eot, x.shape, device=x.device), x)


def to(b):
    return {k: torch.from_numpy(v).to(a.device) if hasattr(v, 'dtype') else v for k, v in b.items()}


def guide_loss(b, positions):
    """Attention mass of half of the cross-attention heads that lies away from where a token is expected."""
    on = b['guide'][..., 0] >= 0
    pos = torch.arange(positions, device=on.device)[None, None]
    w = (1 - torch.exp(-0.5 * ((pos - b['guide'][..., :1]) / b['guide'][..., 1:]) ** 2)) * on[..., None]
    layers = low.model.decoder.layers
    w = w.to(torch.bfloat16)[:, None]
    return sum((l.encoder_attn.att[:, :2] * w).float().sum() for l in layers) / (2 * len(layers) * on.sum().clamp(min=1))


def token_loss(b, enc, e, p_corrupt):
    at = (b['y'] != -100).flatten().nonzero()[:, 0]
    y = b['y'].flatten()[at]
    at = F.pad(at, (0, -len(at) % 128))  # few shapes; the additional rows are dropped again
    logits = low.decode(corrupt(b['x'], p_corrupt), enc, e=e, keep=at)[: len(y)].float()
    return F.cross_entropy(logits, y, label_smoothing=a.smooth), (logits.argmax(-1) == y).float().mean().item()


def phone_loss(b, enc):
    lp = low.ctc(enc).float().log_softmax(-1).transpose(0, 1)
    n = torch.full((lp.shape[1],), lp.shape[0], dtype=torch.long)
    return F.ctc_loss(lp, b['ph'], n, b['pl'], zero_infinity=True, reduction='sum') / b['pl'].sum().clamp(min=1)


def audio_loss(b, e):
    enc = low.model.encoder(b['mel'].to(torch.bfloat16), b['off'])
    ce, acc = token_loss(b, enc, e, a.corrupt if rr.random() < 0.8 else 0.0)
    ctc = phone_loss(b, enc)
    ga = guide_loss(b, enc.shape[1])
    return ce + 0.4 * ctc + 0.2 * ga, dict(ce=ce.item(), ctc=ctc.item(), ga=ga.item(), acc=acc)


def settling_loss(b):
    """The phone head's loss on the encoder as it is."""
    with torch.no_grad():
        enc = low.model.encoder(b['mel'].to(torch.bfloat16), b['off'])
    ctc = phone_loss(b, enc)
    return ctc, dict(ctc=ctc.item())


def text_loss(b, e):
    enc = low.phone_enc(b['p'], low.model.encoder.embed_positions.weight)
    ce, acc = token_loss(b, enc, e, a.corrupt)
    anchor = F.cross_entropy(low.ctc(enc).float().flatten(0, 1), b['p'].flatten())  # keeps the stand-in states in the encoder's phone space
    return ce + 0.1 * anchor + 0.2 * guide_loss(b, b['p'].shape[1]), (ce.item(), acc)


def average(share):
    """Averages the bf16 gradients over the ranks, in place; returns rank 0's share, which decides for all."""
    if RANKS == 1:
        return share
    for _, q in pairs:
        q.grad = torch.zeros_like(q) if q.grad is None else q.grad
    flat = torch.cat([q.grad.flatten() for _, q in pairs] + [torch.tensor([0.0 if RANK else share], dtype=torch.bfloat16)])
    dist.all_reduce(flat)
    share = flat[-1].item()
    flat /= RANKS
    for (_, q), g in zip(pairs, flat.split([q.numel() for _, q in pairs] + [1])):
        q.grad = g.view(q.shape)
    return share


def update(share, settling):
    """One optimiser step from the bf16 copy's gradients; returns the norm of those that AdamW sees (nan: no step was made)."""
    for p, q in small:
        p.grad = q.grad.float() if q.grad is not None else torch.zeros_like(p)
        if settling and not name_of[p].startswith(DROPPED):
            p.grad = None
    norm = torch.nn.utils.clip_grad_norm_(rest, 1.0).item()
    if norm == norm and norm < 1e6:
        for g in adam.param_groups:
            g['lr'] = a.lr * (5 if settling else share)
        adam.step()
        settling or muon.step(a.muon * share)
        with torch.no_grad():
            torch._foreach_copy_([q for _, q in small], [p for p, _ in small])
    for _, q in pairs:
        q.grad = None
    return norm


with torch.no_grad():
    torch._foreach_copy_([q for _, q in copies], [p for p, _ in copies])
    for (_, x), (_, y) in zip(low.named_buffers(), net.named_buffers()):
        x.copy_(y)
sums, spent = {}, dict(data=0.0, audio=0.0, text=0.0, update=0.0)


def add(**kw):
    for k, v in kw.items():
        n, t = sums.get(k, (0, 0.0))
        sums[k] = n + 1, t + v


t_log = t_save = t_ref = time.time()
trunk = not a.decay
while not (a.steps and step - begun >= a.steps):
    if not trunk and time.time() > END - 60 * a.decay:
        save(a.ckpt + '/trunk.pt')
        trunk = True
    t0 = time.process_time()
    T, B, k = plan()
    b = to(S.batch(T, B, k))
    t1 = time.process_time()
    settling = step - begun < a.settle
    loss, seen = settling_loss(b) if settling else audio_loss(b, low.emb())
    text = a.text_every and (settling or step % a.text_every == 0)
    loss.backward()
    t2 = time.process_time()
    if text:
        loss, (tce, tacc) = text_loss(to(S.text_batch(a.text_batch)), low.emb())
        (loss * 0.5).backward()
        add(text_ce=tce, text_acc=tacc)
    t3 = time.process_time()
    share = average(-1.0 if stopping or time.time() >= END else rate())
    if share < 0:
        break
    norm = update(share, settling)
    t4 = time.process_time()
    for key, dt in zip(spent, (t1 - t0, t2 - t1, t3 - t2, t4 - t3)):
        spent[key] += dt
    heard += RANKS * B * T / 360000
    step += 1
    add(**seen, norm=norm, audio=RANKS * B * T / 100)
    if step % 50 == 0 and not RANK:
        el = time.time() - t_log
        txt = ' '.join(f'{k} {t / n:.3f}' for k, (n, t) in sums.items() if k != 'audio')
        times = 'CPU: ' + ' '.join(f'{k} {v / 50:.3f}' for k, v in spent.items())
        rt = sums['audio'][1] / el
        print(f'{datetime.datetime.now(datetime.timezone.utc):%H:%M:%S} step {step} rate {rate():.2f} {txt} | {el / 50:.3f} s/step ({times}) {rt:.0f}x real time, {heard:.1f} h', flush=True)
        sums, spent, t_log = {}, dict.fromkeys(spent, 0.0), time.time()
    if a.steps:
        continue
    if time.time() - t_save > 150:
        save()
        t_save = time.time()
    if time.time() - t_ref > 240:
        store.refresh()
        gc.freeze()
        t_ref = time.time()
if not a.steps:
    save()
if not RANK:
    print('done', step, flush=True)
if RANKS > 1:
    dist.destroy_process_group()
