"""Whisper log-mel features in numpy: 16 kHz, n_fft 400, hop 160, 80 Slaney mel bins, reflect-padded centred frames, last frame dropped."""

from fractions import Fraction
import numpy as np, scipy.fft, soundfile
from scipy.signal import resample_poly
from transformers.audio_utils import mel_filter_bank

SR, NFFT, HOP, NMEL = 16000, 400, 160, 80


# (201, 80) triangular filters, Slaney scale, area-normalised, 0 to 8000 Hz
FILT = mel_filter_bank(NFFT // 2 + 1, NMEL, 0, SR / 2, SR, norm='slaney', mel_scale='slaney').astype(np.float32)
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
