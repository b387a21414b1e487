"""Whisper log-mel features in numpy: 16 kHz, n_fft 400, hop 160, 80 Slaney mel bins, reflect-padded centred frames, last frame dropped."""

from fractions import Fraction
import numpy as np, scipy.fft, soundfile
from scipy.signal import resample_poly

SR, NFFT, HOP, NMEL = 16000, 400, 160, 80


def _hz2mel(f):
    f = np.asarray(f, np.float64)
    return np.where(f < 1000, f * 3 / 200, 15 + 27 * np.log(np.maximum(f, 1e-9) / 1000) / np.log(6.4))


def _mel2hz(m):
    m = np.asarray(m, np.float64)
    return np.where(m < 15, m * 200 / 3, 1000 * np.exp(np.log(6.4) * (m - 15) / 27))


def mel_filters(n_mels=NMEL):
    """(201, n_mels) triangular filters, Slaney scale, area-normalised, 0..8000 Hz."""
    fft = np.linspace(0, SR / 2, NFFT // 2 + 1)
    pts = _mel2hz(np.linspace(_hz2mel(0.0), _hz2mel(SR / 2), n_mels + 2))
    lo, mid, hi = pts[:-2], pts[1:-1], pts[2:]
    w = np.maximum(0, np.minimum((fft[:, None] - lo) / (mid - lo), (hi - fft[:, None]) / (hi - mid)))
    return (w * (2 / (hi - lo))).astype(np.float32)


FILT = mel_filters()
WIN = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(NFFT) / NFFT)).astype(np.float32)


def log10_mel(x):
    """Un-normalised log10 mel power, shape (T, 80), T = len(x)//160."""
    x = np.pad(np.asarray(x, np.float32), NFFT // 2, mode='reflect')
    n = (len(x) - NFFT) // HOP
    fr = np.lib.stride_tricks.as_strided(x, (n, NFFT), (x.strides[0] * HOP, x.strides[0]))
    p = scipy.fft.rfft(fr * WIN, axis=1)
    p = p.real**2 + p.imag**2
    return np.log10(np.maximum(p @ FILT, 1e-10))


def normalise(l):
    """Whisper normalisation of log10 mel (any layout): clamp to max-8, (x+4)/4."""
    return ((np.maximum(l, l.max() - 8.0) + 4.0) / 4.0).astype(np.float32)


def whisper_input(x, seconds=30):
    """(80, 3000) normalised features of a clip padded or cut to `seconds`."""
    n = SR * seconds
    x = np.pad(x[:n], (0, max(0, n - len(x))))
    return normalise(log10_mel(x)).T.copy()


def read_wav(path):
    """-> rate, samples of one channel"""
    x, sr = soundfile.read(path, dtype='float32')
    return sr, x.mean(1) if x.ndim > 1 else x


def to16k(x, sr, speed=1.0):
    """Resample to 16 kHz; speed > 1 also plays faster with higher pitch and formants."""
    f = Fraction(SR / (sr * speed)).limit_denominator(160)
    return x if f == 1 else resample_poly(x, f.numerator, f.denominator).astype(np.float32)
