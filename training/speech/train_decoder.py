#!/usr/bin/env python3
"""Text_encoder + decoder + style vectors with the teacher's durations, F0 and energy (random crops).
usage: train_decoder.py SECONDS|HH:MM [--bf16] [--device cuda].  Resumes from ckpt/dec.pt; stop any time (SIGTERM saves)."""

import numpy as np, torch, torch.nn as nn
import model as M
from data import FRAME, Corpus, crop, pad_tokens
from losses import mel_fb, spectral_loss, stft_mag
from shared.work import WORK
from trainer import Trainer, arguments, prosody_side
from voices import NAMES


def decoder_side(m, cfg):
    return nn.ModuleDict(dict(text_encoder=m.text_encoder, decoder=m.decoder, style=nn.Embedding(len(NAMES), 2 * cfg["style_dim"])))


def mel_target(w):
    m = torch.log(mel_fb(1024, 24000, 80, w.device) @ (stft_mag(w, 1024, 240) * (4 / 1024)) + 1e-4)
    return 0.5 * (m[..., :-1] + m[..., 1:])


def batch(corpus, rng, B, frames, device):
    items, crops = [corpus.pick(rng, frames) for _ in range(B)], []
    for it in items:
        T, u = int(it[2].sum()), rng.random()
        start = 0 if u < 0.12 else T - frames if u > 0.88 else int(rng.integers(0, T - frames + 1))  # edges oversampled
        crops.append(crop(it, start, frames))
    tok, mask, lens = pad_tokens(items)
    idx, f0, n, wav = (torch.from_numpy(np.stack(x)).to(device) for x in zip(*crops))
    return torch.tensor([i[0] for i in items], device=device), tok.to(device), mask.to(device), lens, idx, f0, n, wav


@torch.no_grad()
def mix_predicted(pro, share, v, tok, mask, lens, idx, f0, n):
    """the decoder must not lean on details of N / voicing that the predictor cannot supply at inference"""
    s = pro["style"](v)
    d = pro["predictor"].text_encoder(pro["bert_encoder"](pro["bert"](tok, mask[:, 0])), s, lens)
    fp, np_ = pro["predictor"].f0n(torch.gather(d, 1, idx[..., None].expand(-1, -1, d.shape[-1])), s)
    fp = fp * 100
    fm = torch.where(fp > 10, torch.where(f0 > 10, f0, fp), torch.zeros_like(f0))  # predicted voicing, teacher pitch where there is one
    c = torch.rand(len(v), 1, device=v.device) < share
    return torch.where(c, fm, f0), torch.where(c, np_, n)


def main():
    ap = arguments(WORK + "/ckpt/dec.pt", batch=4, lr=1e-3)
    ap.add_argument("--frames", type=int, default=72)
    ap.add_argument("--bf16", action="store_true", help="wide convolutions in bfloat16 (AVX512-BF16/AMX or a GPU)")
    ap.add_argument("--pred", type=float, default=0.0, help="share of items fed the trained predictor's N and voicing instead of the teacher's")
    a = ap.parse_args()
    M.COMPUTE["dtype"] = torch.bfloat16 if a.bf16 else torch.float32
    torch.manual_seed(1)
    cfg = M.load_config()
    net, ema = (decoder_side(M.Model(cfg), cfg).to(a.device) for _ in range(2))
    decoder = net["decoder"]
    with torch.no_grad():
        decoder.generator.conv_post.bias[:decoder.generator.n_fft // 2 + 1] -= 3.0  # start quiet
        decoder.F0_conv.weight_g.mul_(0.01 / decoder.F0_conv.weight_g.abs())  # F0 arrives in Hz
    ema.requires_grad_(False)
    # auxiliary head: log-mel straight from decoder_out (100 Hz).  Only a training aid (direct gradient to text_encoder and the
    # low-rate decoder blocks, on a larger batch than the generator can afford); not exported.
    aux = nn.Conv1d(cfg["istftnet"]["upsample_initial_channel"], 80, 1).to(a.device)
    opt = torch.optim.AdamW(net.parameters(), a.lr, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
    aux_opt = torch.optim.AdamW(aux.parameters(), 2e-3, betas=(0.9, 0.98))
    trainer = Trainer(a, net, ema, dict(opt=opt, aux=aux, aopt=aux_opt), warm=150, clip=8.0)
    if a.pred > 0:
        pro = prosody_side(cfg).to(a.device).eval()
        pro.load_state_dict(torch.load(WORK + "/ckpt/pro.pt", map_location=a.device)["ema"])
    corpus, rng = Corpus(), np.random.default_rng(trainer.step + 11)
    print("utterances", len(corpus.items), "voices", len(corpus.voices), "from step", trainer.step, "samples a frame", FRAME, flush=True)
    while trainer.goes_on():
        # crop length varies a little so that the instance norms do not lock on to one length
        turn = trainer.step % 4
        frames = (a.frames * 2, a.frames, a.frames * 2 // 3, a.frames)[turn]
        B = (a.batch // 2, a.batch, a.batch * 3 // 2, a.batch)[turn]  # for the generator; the head gets twice as many
        v, tok, mask, lens, idx, f0, n, wav = batch(corpus, rng, 2 * B, frames, a.device)
        if a.pred > 0 and turn == 2:
            f0, n = mix_predicted(pro, a.pred, v, tok, mask, lens, idx, f0, n)
        text = net["text_encoder"](tok, lens, mask)
        s = net["style"](v)[:, :cfg["style_dim"]]
        x = decoder.front(torch.gather(text, 2, idx[:, None].expand(-1, text.shape[1], -1)), f0, n + 0.05 * torch.randn_like(n), s)
        mel_error = (aux(x) - mel_target(wav)).abs().mean()
        log, sc, mel = spectral_loss(decoder.generator(x[:B], s[:B], f0[:B]), wav[:B])
        trainer.update(log + 0.5 * sc + mel + 2 * mel_error, (log, sc, mel, mel_error), "log %.3f sc %.3f mel %.3f aux-mel %.3f")
    trainer.save()


if __name__ == "__main__":
    main()
