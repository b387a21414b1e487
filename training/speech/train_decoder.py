#!/usr/bin/env python3
"""Text_encoder + decoder + style vectors with the teacher's durations, F0 and energy (random crops).
usage: train_decoder.py SECONDS|HH:MM [--bf16] [--device cuda].  Resumes from ckpt/dec.pt; stop any time (SIGTERM saves)."""

import argparse, datetime, math, os, signal, time
import numpy as np, torch
import torch.nn as nn
import model as M
from data import NAMES, ROOT, Corpus, pad_tokens
from losses import mel_fb, spectral_loss, stft_mag
from model import Model, load_config

ap = argparse.ArgumentParser()
ap.add_argument("end", help="seconds to train, or the clock time HH:MM (UTC) at which the learning rate reaches its end")
ap.add_argument("--device", default="cpu")
ap.add_argument("--batch", type=int, default=4)
ap.add_argument("--frames", type=int, default=72)
ap.add_argument("--lr", type=float, default=1e-3)
ap.add_argument("--lr_end", type=float, default=1e-4)
ap.add_argument("--bf16", action="store_true", help="wide convolutions in bfloat16 (AVX512-BF16/AMX or a GPU)")
ap.add_argument("--from_ema", action="store_true", help="start from the averaged weights (warm restart without optimiser state)")
ap.add_argument("--ema", type=float, default=0.998)
ap.add_argument("--threads", type=int, default=1)
ap.add_argument("--warm", type=int, default=150)
ap.add_argument("--ckpt", default=ROOT + "/ckpt/dec.pt")
ap.add_argument("--pro", default=ROOT + "/ckpt/pro.pt")
ap.add_argument("--pred", type=float, default=0.0, help="share of items fed the trained predictor's N and voicing instead of the teacher's")
a = ap.parse_args()
torch.set_num_threads(a.threads)
torch.set_flush_denormal(True)
dev = a.device
if a.bf16:
    M.COMPUTE["dtype"] = torch.bfloat16
if ":" in a.end:
    now = datetime.datetime.now(datetime.timezone.utc)
    h, mi = map(int, a.end.split(":"))
    SECONDS = (now.replace(hour=h, minute=mi, second=0) - now).total_seconds() % 86400
else:
    SECONDS = float(a.end)
cfg = load_config(ROOT + "/config.json")
torch.manual_seed(1)
model = Model(cfg).to(dev)
style = nn.Embedding(len(NAMES), 2 * cfg["style_dim"]).to(dev)
with torch.no_grad():
    g = model.decoder.generator
    g.conv_post.bias[:g.n_fft // 2 + 1] -= 3.0  # start quiet
    model.decoder.F0_conv.weight_g.mul_(0.01 / model.decoder.F0_conv.weight_g.abs())  # F0 arrives in Hz
net = nn.ModuleDict(dict(text_encoder=model.text_encoder, decoder=model.decoder, style=style))
params = [p for n, p in net.named_parameters() if "bert" not in n and "predictor" not in n]
# auxiliary head: log-mel straight from decoder_out (100 Hz).  Only a training aid (direct gradient to text_encoder and the
# low-rate decoder blocks, on a larger batch than the generator can afford); not exported.
aux = nn.Conv1d(cfg["istftnet"]["upsample_initial_channel"], 80, 1).to(dev)
aopt = torch.optim.AdamW(aux.parameters(), 2e-3, betas=(0.9, 0.98))
opt = torch.optim.AdamW(params, a.lr, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
em = Model(cfg).to(dev)
ema = nn.ModuleDict(dict(text_encoder=em.text_encoder, decoder=em.decoder, style=nn.Embedding(len(NAMES),
                                                                                              2 * cfg["style_dim"]).to(dev))).eval()
ema.load_state_dict(net.state_dict())
for p in ema.parameters():
    p.requires_grad_(False)
step0 = 0
if os.path.exists(a.ckpt):
    ck = torch.load(a.ckpt, map_location=dev)
    ck = {
        k: ({n: t.float() if t.dtype == torch.float16 else t
             for n, t in v.items()} if k in ("net", "ema", "aux") else v)
        for k, v in ck.items()
    }
    net.load_state_dict(ck["ema" if a.from_ema or "net" not in ck else "net"])
    ema.load_state_dict(ck["ema"])
    "opt" in ck and opt.load_state_dict(ck["opt"])
    step0 = ck["step"]
    if "aux" in ck:
        aux.load_state_dict(ck["aux"])
        "aopt" in ck and aopt.load_state_dict(ck["aopt"])
    for gr in opt.param_groups:
        gr["betas"] = (0.9, 0.98)
corpus = Corpus()
print("utterances", len(corpus.items), "voices", len(corpus.voices), "from step", step0, flush=True)
rng = np.random.default_rng(step0 + 11)
SUB = model.decoder.generator.scale
FRM = 2 * SUB


def batch(B, C):
    its = [corpus.pick(rng, C) for _ in range(B)]
    tok, mask, lens = pad_tokens(its)
    idx, f0, n, wav = [], [], [], []
    for it in its:
        T = int(it[2].sum())
        u = rng.random()
        s = 0 if u < 0.12 else T - C if u > 0.88 else int(rng.integers(0, T - C + 1))  # edges oversampled
        idx.append(np.repeat(np.arange(len(it[2])), it[2])[s:s + C])
        f0.append(it[3][2 * s:2 * (s + C)])
        n.append(it[4][2 * s:2 * (s + C)])
        wav.append(it[5][FRM * s:FRM * (s + C)].astype(np.float32) / 32767)
    t = lambda l: torch.from_numpy(np.stack(l)).to(dev)
    return torch.tensor([i[0] for i in its], device=dev), tok.to(dev), mask.to(dev), lens, t(idx), t(f0), t(n), t(wav)


def synth(net, v, tok, mask, lens, idx, f0, n, G):
    """-> waveform of the first G items, aux log-mel of all"""
    te = net["text_encoder"](tok, lens, mask)
    asr = torch.gather(te, 2, idx[:, None].expand(-1, te.shape[1], -1))
    s = net["style"](v)[:, :cfg["style_dim"]]
    x = net["decoder"].front(asr, f0, n, s)
    return net["decoder"].generator(x[:G], s[:G], f0[:G]), aux(x)


def mel_target(w):
    m = mel_fb(1024, 24000, 80, w.device) @ (stft_mag(w, 1024, 240) * (4 / 1024))
    m = torch.log(m + 1e-4)
    return 0.5 * (m[..., :-1] + m[..., 1:])


if a.pred > 0:
    pc = torch.load(a.pro, map_location=dev)["ema"]
    pro = nn.ModuleDict(
        dict(bert=model.bert, bert_encoder=model.bert_encoder, predictor=model.predictor, style=nn.Embedding(len(NAMES),
                                                                                                             cfg["style_dim"]))).to(dev)
    pro.load_state_dict(pc)
    pro.eval()


@torch.no_grad()
def mix_predicted(v, tok, mask, lens, idx, f0, n):
    """the decoder must not lean on details of N / voicing that the predictor cannot supply at inference"""
    s = pro["style"](v)
    d = pro["predictor"].text_encoder(pro["bert_encoder"](pro["bert"](tok, mask[:, 0])), s, lens)
    fp, np_ = pro["predictor"].f0n(torch.gather(d, 1, idx[..., None].expand(-1, -1, d.shape[-1])), s)
    fp = fp * 100
    fm = torch.where(fp > 10, torch.where(f0 > 10, f0, fp), torch.zeros_like(f0))  # predicted voicing, teacher pitch where there is one
    c = torch.rand(len(v), 1, device=dev) < a.pred
    return torch.where(c, fm, f0), torch.where(c, np_, n)


def save(step):
    os.makedirs(os.path.dirname(a.ckpt), exist_ok=True)
    d = dict(net=net.state_dict(), ema=ema.state_dict(), opt=opt.state_dict(), aux=aux.state_dict(), aopt=aopt.state_dict(), step=step)
    torch.save(d, a.ckpt + ".tmp")
    os.replace(a.ckpt + ".tmp", a.ckpt)


stop = []
signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
t0 = last = time.time()
step = step0
acc = []
EP, NP = list(ema.parameters()), list(net.parameters())
while time.time() - t0 < SECONDS and not stop:
    prog = (time.time() - t0) / SECONDS
    lr = min((step - step0 + 1) / a.warm, 1) * (a.lr_end + 0.5 * (a.lr - a.lr_end) * (1 + math.cos(math.pi * prog)))
    for gr in opt.param_groups:
        gr["lr"] = lr
    net.train()
    if a.pred > 0:
        pro.eval()
    # crop length varies a little so that the instance norms do not lock on to one length
    C = (a.frames * 2, a.frames, a.frames * 2 // 3, a.frames)[step % 4]
    B = (a.batch // 2, a.batch, a.batch * 3 // 2, a.batch)[step % 4]
    v, tok, mask, lens, idx, f0, n, wav = batch(2 * B, C)
    if a.pred > 0 and step % 4 == 2:
        f0, n = mix_predicted(v, tok, mask, lens, idx, f0, n)
    y, am = synth(net, v, tok, mask, lens, idx, f0, n + 0.05 * torch.randn_like(n), B)
    la = (am - mel_target(wav)).abs().mean()
    wav = wav[:B]
    log, sc, mel = spectral_loss(y, wav)
    loss = log + 0.5 * sc + mel + 2 * la
    opt.zero_grad()
    aopt.zero_grad()
    loss.backward()
    gn = nn.utils.clip_grad_norm_(params, 8.0)
    if torch.isfinite(gn):
        opt.step()
        aopt.step()
    step += 1
    with torch.no_grad():
        torch._foreach_lerp_(EP, NP, 1 - min(a.ema, (step + 1) / (step + 50)))
    acc.append([log.item(), sc.item(), mel.item(), float(gn), la.item()])
    if step % 50 == 0:
        m = np.mean(acc, 0)
        acc = []
        print("%s step %d  %.0f s  lr %.2e  log %.3f sc %.3f mel %.3f gn %.2f aux-mel %.3f" %
              (time.strftime("%H:%M:%S"), step, time.time() - t0, lr, *m),
              flush=True)
    if time.time() - last > 120:
        save(step)
        last = time.time()
save(step)
