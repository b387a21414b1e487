import numpy as np, torch
from transformers.audio_utils import mel_filter_bank

_cache = {}


def stft_mag(x, n, hop):
    w = _cache.setdefault(("w", n, x.device), torch.hann_window(n, device=x.device))
    z = torch.stft(x, n, hop, n, w, return_complex=True)
    return torch.sqrt(z.real.square() + z.imag.square() + 1e-9)


def mel_fb(n, sr, m, device):
    """[m, n / 2 + 1] triangular filters up to 12 kHz"""
    key = ("mel", n, m, device)
    if key not in _cache:
        filters = mel_filter_bank(n // 2 + 1, m, 0.0, 12000.0, sr, mel_scale="htk")
        _cache[key] = torch.from_numpy(filters.T.copy()).float().to(device)
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


def logmel(x, hop=480):
    """Log-mel spectrogram [frames, 80] of a clip at 24 kHz."""
    z = torch.stft(torch.from_numpy(x), 1024, hop, 1024, torch.hann_window(1024), return_complex=True).abs() * (4 / 1024)
    return torch.log(mel_fb(1024, 24000, 80, "cpu") @ z + 1e-4).numpy().T


def align(a, b):
    """Dynamic time warping of two log-mels -> pairs of frames."""
    D = np.sqrt(((a[:, None] - b[None])**2).mean(-1))
    C = np.full((len(a) + 1, len(b) + 1), np.inf)
    C[0, 0] = 0
    for i in range(1, len(a) + 1):
        best, cur = np.minimum(C[i - 1, 1:], C[i - 1, :-1]), C[i]
        for j in range(1, len(b) + 1):
            cur[j] = D[i - 1, j - 1] + min(best[j - 1], cur[j - 1])
    i, j, path = len(a), len(b), []
    while i > 0 and j > 0:
        path.append((i - 1, j - 1))
        k = int(np.argmin((C[i - 1, j - 1], C[i - 1, j], C[i, j - 1])))
        i, j = i - (k != 2), j - (k != 1)
    return path
