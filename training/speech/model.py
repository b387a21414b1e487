"""Small Kokoro-architecture TTS model (own implementation, parameter names as in the Kokoro checkpoint).

Everything is driven by config.json.  Extra keys that Kokoro's config does not have:
  decoder_dim  width of decoder.encode / decoder.decode blocks (Kokoro 1024)
  asr_res_dim  width of decoder.asr_res (Kokoro 64)
The decoder's output width is istftnet.upsample_initial_channel (512 in Kokoro).
"""

import json, math
import numpy as np
import torch, torch.nn as nn, torch.nn.functional as F
import paths  # noqa: F401 (training/shared)
from shared.work import MODELS
from torch.nn.utils import weight_norm
from transformers import AlbertConfig, AlbertModel

SR = 24000
COMPUTE = dict(dtype=torch.float32)  # dtype of the wide convolutions while training (bf16 where the CPU or GPU has it)


def conv(c, x):
    """Conv1d in COMPUTE's dtype (its result keeps that dtype); weight_norm stays f32."""
    if COMPUTE["dtype"] == torch.float32:
        return c(x)
    w, dt = torch._weight_norm(c.weight_v, c.weight_g, 0) if hasattr(c, "weight_g") else c.weight, COMPUTE["dtype"]
    return F.conv1d(x.to(dt), w.to(dt), None if c.bias is None else c.bias.to(dt), c.stride, c.padding, c.dilation, c.groups)


# ----------------------------------------------------------------------------- AdaIN building blocks
class Styled(nn.Module):
    """Two numbers a channel out of a style vector: a gain beside 1 and a bias."""

    def __init__(self, sd, c):
        super().__init__()
        self.fc = nn.Linear(sd, 2 * c)
        nn.init.normal_(self.fc.weight, 0, 0.02)
        nn.init.zeros_(self.fc.bias)


class AdaIN1d(Styled):
    def forward(self, x, s):
        g, b = self.fc(s).unsqueeze(-1).chunk(2, 1)
        return (1 + g) * F.instance_norm(x, eps=1e-5) + b


def adain_snake(norm, x, s, alpha):
    """snake(AdaIN(x, s)) with snake(y) = y + sin(alpha y)^2 / alpha, in COMPUTE's dtype"""
    t = norm(x.float(), s)
    return (t + torch.sin(alpha * t).square() / alpha).to(COMPUTE["dtype"])


class AdaINResBlock1(nn.Module):
    """three (AdaIN, snake, dilated conv, AdaIN, snake, conv) residual units"""

    def __init__(self, c, k, dil, sd):
        super().__init__()
        mk = lambda d: weight_norm(nn.Conv1d(c, c, k, dilation=d, padding=(k - 1) * d // 2))
        self.convs1, self.convs2 = nn.ModuleList(mk(d) for d in dil), nn.ModuleList(mk(1) for _ in dil)
        self.adain1, self.adain2 = (nn.ModuleList(AdaIN1d(sd, c) for _ in dil) for _ in range(2))
        self.alpha1, self.alpha2 = (nn.ParameterList(nn.Parameter(torch.ones(1, c, 1)) for _ in dil) for _ in range(2))

    def forward(self, x, s):
        for c1, c2, n1, n2, a1, a2 in zip(self.convs1, self.convs2, self.adain1, self.adain2, self.alpha1, self.alpha2):
            x = x + conv(c2, adain_snake(n2, conv(c1, adain_snake(n1, x, s, a1)), s, a2))
        return x


class AdainResBlk1d(nn.Module):
    def __init__(self, ci, co, sd, up=False, p=0.0):
        super().__init__()
        self.up = up
        self.conv1 = weight_norm(nn.Conv1d(ci, co, 3, padding=1))
        self.conv2 = weight_norm(nn.Conv1d(co, co, 3, padding=1))
        self.norm1, self.norm2 = AdaIN1d(sd, ci), AdaIN1d(sd, co)
        if ci != co:
            self.conv1x1 = weight_norm(nn.Conv1d(ci, co, 1, bias=False))
        if up:
            self.pool = weight_norm(nn.ConvTranspose1d(ci, ci, 3, stride=2, groups=ci, padding=1, output_padding=1))
        self.p = p

    def forward(self, x, s):
        r = F.leaky_relu(self.norm1(x, s), 0.2)
        if self.up:
            r = self.pool(r)
            x = x.repeat_interleave(2, -1)
        r = conv(self.conv1, F.dropout(r, self.p, self.training)).float()
        r = conv(self.conv2, F.dropout(F.leaky_relu(self.norm2(r, s), 0.2), self.p, self.training)).float()
        if hasattr(self, "conv1x1"):
            x = conv(self.conv1x1, x).float()
        return (x + r) * (0.5**0.5)


# ----------------------------------------------------------------------------- generator
class SourceModule(nn.Module):
    def __init__(self, harmonics=8):
        super().__init__()
        self.l_linear = nn.Linear(harmonics + 1, 1)
        nn.init.constant_(self.l_linear.weight, 1.0)
        nn.init.zeros_(self.l_linear.bias)


class Generator(nn.Module):
    def __init__(self, sd, c):
        super().__init__()
        self.n_fft, self.hop = c["gen_istft_n_fft"], c["gen_istft_hop_size"]
        rates, ks, ch = c["upsample_rates"], c["upsample_kernel_sizes"], c["upsample_initial_channel"]
        self.scale = math.prod(rates) * self.hop
        self.nk = len(c["resblock_kernel_sizes"])
        self.m_source = SourceModule()
        self.noise_convs, self.noise_res, self.ups, self.resblocks = (nn.ModuleList() for _ in range(4))
        for i, (u, k) in enumerate(zip(rates, ks)):
            co = ch >> (i + 1)
            self.ups.append(weight_norm(nn.ConvTranspose1d(ch >> i, co, k, u, padding=(k - u) // 2)))
            for kk, dd in zip(c["resblock_kernel_sizes"], c["resblock_dilation_sizes"]):
                self.resblocks.append(AdaINResBlock1(co, kk, dd, sd))
            if i + 1 < len(rates):
                st = math.prod(rates[i + 1 :])
                self.noise_convs.append(nn.Conv1d(self.n_fft + 2, co, 2 * st, st, padding=(st + 1) // 2))
                self.noise_res.append(AdaINResBlock1(co, 7, [1, 3, 5], sd))
            else:
                self.noise_convs.append(nn.Conv1d(self.n_fft + 2, co, 1))
                self.noise_res.append(AdaINResBlock1(co, 11, [1, 3, 5], sd))
        self.conv_post = weight_norm(nn.Conv1d(co, self.n_fft + 2, 7, padding=3))

    def source(self, f0, noise=None):
        """f0 [B, T] in Hz per F0 frame -> merged excitation [B, T*scale]. noise: standard normals [B, T*scale, 9]."""
        h = torch.arange(1, 10, device=f0.device, dtype=f0.dtype)
        rad = (f0.double()[:, None] * h[None, :, None].double() / SR) % 1
        ph = torch.cumsum(rad, -1) * self.scale
        # linear interpolation between frame centres, clamped at both ends (align_corners=False)
        ph = F.interpolate(ph, scale_factor=self.scale, mode="linear", align_corners=False)
        sines = torch.sin(2 * math.pi * (ph % 1).to(f0.dtype)).transpose(1, 2) * 0.1
        uv = (f0 > 10).to(f0.dtype).repeat_interleave(self.scale, -1).unsqueeze(-1)
        return sines * uv + (uv * 0.003 + (1 - uv) * 0.1 / 3) * (torch.randn_like(sines) if noise is None else noise)

    def forward(self, x, s, f0, noise=None, tap=None):
        with torch.no_grad():
            sw = self.source(f0, noise)
        har = torch.tanh(self.m_source.l_linear(sw)).squeeze(-1)
        with torch.no_grad():
            z = torch.stft(har.detach(), self.n_fft, self.hop, self.n_fft, torch.hann_window(self.n_fft, device=har.device), return_complex=True)
            hs = torch.cat([z.abs(), z.angle()], 1)
        tap = {} if tap is None else tap
        tap.update(har_source=har, har_spec_phase=hs)
        for i, up in enumerate(self.ups):
            x = F.leaky_relu(x, 0.1)
            xs = self.noise_res[i](self.noise_convs[i](hs), s)
            x = up(x)
            if i == len(self.ups) - 1:
                x = torch.cat([x[..., 1:2], x], -1)  # reflection pad (1, 0)
            x = x + xs
            x = sum(self.resblocks[i * self.nk + j](x, s) for j in range(self.nk)) / self.nk
            tap["gen_stage%d" % i] = x
        x = self.conv_post(F.leaky_relu(x))
        k = self.n_fft // 2 + 1
        mag, ph = torch.exp(x[:, :k].clamp(max=8)), torch.sin(x[:, k:])
        tap.update(spec=mag, phase=ph)
        return torch.istft(torch.polar(mag, ph), self.n_fft, self.hop, self.n_fft, torch.hann_window(self.n_fft, device=x.device))


class Decoder(nn.Module):
    def __init__(self, hid, sd, c, D, R):
        super().__init__()
        out = c["upsample_initial_channel"]
        self.encode = AdainResBlk1d(hid + 2, D, sd)
        self.decode = nn.ModuleList([AdainResBlk1d(D + 2 + R, D, sd) for _ in range(3)] + [AdainResBlk1d(D + 2 + R, out, sd, up=True)])
        self.F0_conv = weight_norm(nn.Conv1d(1, 1, 3, 2, padding=1))
        self.N_conv = weight_norm(nn.Conv1d(1, 1, 3, 2, padding=1))
        self.asr_res = nn.Sequential(weight_norm(nn.Conv1d(hid, R, 1)))
        self.generator = Generator(sd, c)

    def forward(self, asr, f0, n, s, noise=None, tap=None):
        return self.generator(self.front(asr, f0, n, s, tap), s, f0, noise, tap)

    def front(self, asr, f0, n, s, tap=None):
        a, b = self.F0_conv(f0.unsqueeze(1)), self.N_conv(n.unsqueeze(1))
        x = self.encode(torch.cat([asr, a, b], 1), s)
        r = self.asr_res(asr)
        tap = {} if tap is None else tap
        tap["decoder_encode"] = x
        for blk in self.decode:
            x = blk(torch.cat([x, r, a, b], 1), s)
        tap["decoder_out"] = x
        return x


# ----------------------------------------------------------------------------- text side
class ChanNorm(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.ones(c)), nn.Parameter(torch.zeros(c))

    def forward(self, x):
        return F.layer_norm(x.transpose(1, 2), (x.shape[1],), self.gamma, self.beta, 1e-5).transpose(1, 2)


def run_lstm(lstm, x, lens):
    if lens is None:
        return lstm(x)[0]
    p = nn.utils.rnn.pack_padded_sequence(x, lens, batch_first=True, enforce_sorted=False)
    return nn.utils.rnn.pad_packed_sequence(lstm(p)[0], batch_first=True, total_length=x.shape[1])[0]


class TextEncoder(nn.Module):
    def __init__(self, c, k, depth, ntok):
        super().__init__()
        self.embedding = nn.Embedding(ntok, c)
        step = lambda: nn.Sequential(weight_norm(nn.Conv1d(c, c, k, padding=(k - 1) // 2)), ChanNorm(c), nn.LeakyReLU(0.2), nn.Dropout(0.1))
        self.cnn = nn.ModuleList(step() for _ in range(depth))
        self.lstm = nn.LSTM(c, c // 2, batch_first=True, bidirectional=True)

    def forward(self, ids, lens=None, mask=None):
        mask = 1 if mask is None else mask
        x = self.embedding(ids).transpose(1, 2) * mask
        for c in self.cnn:
            x = c(x) * mask
        return run_lstm(self.lstm, x.transpose(1, 2), lens).transpose(1, 2)


class AdaLayerNorm(Styled):
    def forward(self, x, s):
        g, b = self.fc(s).unsqueeze(1).chunk(2, -1)
        return (1 + g) * F.layer_norm(x, (x.shape[-1],)) + b


class DurationEncoder(nn.Module):
    def __init__(self, sd, d, n, p):
        super().__init__()
        self.lstms = nn.ModuleList()
        for _ in range(n):
            self.lstms += [nn.LSTM(d + sd, d // 2, batch_first=True, bidirectional=True), AdaLayerNorm(sd, d)]
        self.p = p

    def forward(self, x, s, lens=None):  # x [B, T, d]
        sx = s.unsqueeze(1).expand(-1, x.shape[1], -1)
        x = torch.cat([x, sx], -1)
        for i in range(0, len(self.lstms), 2):
            h = F.dropout(run_lstm(self.lstms[i], x, lens), self.p, self.training)
            x = torch.cat([self.lstms[i + 1](h, s), sx], -1)
        return x


class ProsodyPredictor(nn.Module):
    def __init__(self, sd, d, n, max_dur, p):
        super().__init__()
        self.text_encoder = DurationEncoder(sd, d, n, p)
        self.lstm = nn.LSTM(d + sd, d // 2, batch_first=True, bidirectional=True)
        self.duration_proj = nn.ModuleDict(dict(linear_layer=nn.Linear(d, max_dur)))  # as Kokoro calls it
        self.shared = nn.LSTM(d + sd, d // 2, batch_first=True, bidirectional=True)
        widths = ((d, d, False), (d, d // 2, True), (d // 2, d // 2, False))
        self.F0, self.N = (nn.ModuleList(AdainResBlk1d(i, o, sd, up=up, p=p) for i, o, up in widths) for _ in range(2))
        self.F0_proj, self.N_proj = nn.Conv1d(d // 2, 1, 1), nn.Conv1d(d // 2, 1, 1)

    def durations(self, d, lens=None):
        return self.duration_proj["linear_layer"](run_lstm(self.lstm, d, lens))

    def f0n(self, en, s):  # en [B, T, d+sd] at token-frame rate
        x = self.shared(en)[0].transpose(1, 2)
        a = b = x
        for f, n in zip(self.F0, self.N):
            a, b = f(a, s), n(b, s)
        return self.F0_proj(a).squeeze(1), self.N_proj(b).squeeze(1)


class Bert(AlbertModel):
    """PL-BERT"""

    def __init__(self, ntok, c):
        kept = {k: v for k, v in c.items() if k != "dropout"}
        super().__init__(AlbertConfig(vocab_size=ntok, hidden_dropout_prob=0, attention_probs_dropout_prob=0, **kept))

    def forward(self, ids, mask=None):
        return super().forward(ids, attention_mask=None if mask is None else mask.bool()).last_hidden_state


class Model(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        hid, sd = cfg["hidden_dim"], cfg["style_dim"]
        self.sd = sd
        self.bert = Bert(cfg["n_token"], cfg["plbert"])
        self.bert_encoder = nn.Linear(cfg["plbert"]["hidden_size"], hid)
        self.predictor = ProsodyPredictor(sd, hid, cfg["n_layer"], cfg["max_dur"], cfg["dropout"])
        self.text_encoder = TextEncoder(hid, cfg["text_encoder_kernel_size"], cfg["n_layer"], cfg["n_token"])
        self.decoder = Decoder(hid, sd, cfg["istftnet"], cfg["decoder_dim"], cfg["asr_res_dim"])

    @torch.no_grad()
    def infer(self, ids, ref_s, noise_seed=None, tap=None):
        """ids: list incl. the 0 at both ends; ref_s [2*style_dim]: decoder half, then predictor half. -> samples; tap gets what is on the way."""
        t, ids = {} if tap is None else tap, torch.tensor(ids)[None]
        sdec, sp = ref_s[None, :self.sd], ref_s[None, self.sd:]
        bert = self.bert(ids)
        den = self.bert_encoder(bert)
        d = self.predictor.text_encoder(den, sp)
        dl = torch.sigmoid(self.predictor.durations(d)).sum(-1)
        pd = torch.round(dl).clamp(min=1).long()[0]
        f0, n = self.predictor.f0n(d.repeat_interleave(pd, 1), sp)
        te = self.text_encoder(ids)
        asr = te.repeat_interleave(pd, -1)
        noise = None if noise_seed is None else torch.from_numpy(seeded_noise(noise_seed, f0.shape[1] * self.decoder.generator.scale))[None]
        wav = self.decoder(asr, f0, n, sdec, noise, t)
        t.update(bert=bert, d_en=den, d=d, duration=dl, pred_dur=pd, F0=f0, N=n, t_en=te, asr=asr, audio=wav)
        return wav[0]


def seeded_noise(seed, T):
    """[T, 9] standard normals: mulberry32 counter stream + Box-Muller (cosine branch), draw order t-major, harmonic-minor.
    Uniform i: a = (seed + (i+1)*0x6D2B79F5) mod 2^32, mulberry32-mixed, / 2^32."""
    i = np.arange(1, 2 * T * 9 + 1, dtype=np.uint64)
    a = ((np.uint64(seed) + i * np.uint64(0x6D2B79F5)) & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    with np.errstate(over="ignore"):
        t = (a ^ (a >> np.uint32(15))) * (a | np.uint32(1))
        t = t ^ (t + (t ^ (t >> np.uint32(7))) * (t | np.uint32(61)))
        t = t ^ (t >> np.uint32(14))
    u = t.astype(np.float64) / 4294967296.0
    z = np.sqrt(-2 * np.log(np.maximum(u[0::2], 1e-12))) * np.cos(2 * np.pi * u[1::2])
    return z.astype(np.float32).reshape(T, 9)


def load_config(path=MODELS + "/parley-speech/config.json"):
    """The bundled model's configuration, or another's."""
    return json.load(open(path))
