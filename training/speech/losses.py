import torch, math

_cache = {}


def stft_mag(x, n, hop):
    w = _cache.setdefault(("w", n, x.device), torch.hann_window(n, device=x.device))
    z = torch.stft(x, n, hop, n, w, return_complex=True)
    return torch.sqrt(z.real.square() + z.imag.square() + 1e-9)


def mel_fb(n, sr, m, device, fmin=0.0, fmax=12000.0):
    key = ("mel", n, m, device)
    if key not in _cache:
        h = lambda f: 2595 * math.log10(1 + f / 700)
        pts = torch.linspace(h(fmin), h(fmax), m + 2)
        f = 700 * (10 ** (pts / 2595) - 1)
        bins = torch.arange(n // 2 + 1) * sr / n
        lo, c, hi = f[:-2, None], f[1:-1, None], f[2:, None]
        _cache[key] = torch.clamp(torch.minimum((bins - lo) / (c - lo), (hi - bins) / (hi - c)), min=0).to(device)
    return _cache[key]


def spectral_loss(y, t, resolutions=((512, 128), (1024, 256), (2048, 512)), floor=1e-4):
    """L1 on log magnitudes + spectral convergence at several resolutions, plus log-mel L1."""
    log, sc, mel = 0, 0, 0
    for n, hop in resolutions:
        a, b = stft_mag(y, n, hop) * (4 / n), stft_mag(t, n, hop) * (4 / n)
        log = log + (torch.log(a + floor) - torch.log(b + floor)).abs().mean() / len(resolutions)
        sc = sc + ((a - b).square().sum((1, 2)).sqrt() / (b.square().sum((1, 2)).sqrt() + 1e-2)).mean() / len(resolutions)
        if n == 1024:
            fb = mel_fb(n, 24000, 80, y.device)
            mel = (torch.log(fb @ a + floor) - torch.log(fb @ b + floor)).abs().mean()
    return log, sc, mel
