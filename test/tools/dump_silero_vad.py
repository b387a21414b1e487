#!/usr/bin/env python3
"""Silero VAD's weights for 16 kHz from PyPI `silero-vad` as models/silero-vad/model.safetensors in f16, and what the package's own model says with them as
test/fixtures/silero-vad/golden.json.

    pip install silero-vad safetensors torch; python test/tools/dump_silero_vad.py

The JIT file is the package's default; silero_vad_16k.safetensors beside it has the weights of an older release. The DFT's basis is not stored: it is a
periodic Hann window times cosines and minus sines, which this script checks to 1e-7.
"""

import json, os, random, wave
import numpy as np
import torch
from safetensors.torch import save_file
from silero_vad import load_silero_vad
from silero_vad.utils_vad import get_speech_timestamps_from_probs

ROOT = os.path.join(os.path.dirname(__file__), '../..')
CHUNK = 512

model = load_silero_vad()
parts = model._model.state_dict()
names = {'decoder.rnn.weight_ih': 'lstm.weight_ih', 'decoder.rnn.weight_hh': 'lstm.weight_hh', 'decoder.rnn.bias_ih': 'lstm.bias_ih',
         'decoder.rnn.bias_hh': 'lstm.bias_hh', 'decoder.decoder.2.weight': 'out.weight', 'decoder.decoder.2.bias': 'out.bias'}
for i in range(4):
    for kind in ('weight', 'bias'):
        names[f'encoder.{i}.reparam_conv.{kind}'] = f'conv{i + 1}.{kind}'
assert set(parts) == set(names) | {'stft.forward_basis_buffer'}, sorted(parts)

n, k = np.arange(256), np.arange(129)[:, None]
window = 0.5 - 0.5 * np.cos(2 * np.pi * n / 256)
basis = np.concatenate([window * np.cos(2 * np.pi * k * n / 256), -window * np.sin(2 * np.pi * k * n / 256)])
assert np.abs(parts['stft.forward_basis_buffer'][:, 0].numpy() - basis).max() < 1e-7


def probabilities(sound):
    model.reset_states()
    padded = np.zeros(-(-len(sound) // CHUNK) * CHUNK, np.float32)
    padded[: len(sound)] = sound
    with torch.no_grad():
        return np.array([model(torch.from_numpy(padded[None, i : i + CHUNK]), 16000).item() for i in range(0, len(padded), CHUNK)])


with wave.open(f'{ROOT}/test/fixtures/parley-transcribe/clip.wav') as file:
    assert file.getframerate() == 16000 and file.getnchannels() == 1 and file.getsampwidth() == 2
    clip = np.frombuffer(file.readframes(file.getnframes()), '<i2').astype(np.float32) / 32768
# Speech, digital silence, speech at a tenth, and speech backwards; the end is no whole chunk.
sound = np.concatenate([clip, np.zeros(24000, np.float32), clip * np.float32(0.1), clip[::-1], clip, clip[:777]])

published = probabilities(sound)
with torch.no_grad():
    for name, tensor in parts.items():
        if name in names:
            tensor.copy_(tensor.half().float())
rounded = probabilities(sound)

random.seed(5)
cases = []
for threshold, least, silence, pad in ((0.5, 250, 100, 30), (0.5, 250, 2000, 400), (0.7, 0, 200, 300), (0.12, 250, 500, 200)):
    level, walk = 0.2, []
    for _ in range(400):
        level = min(1, max(0, level + random.choice((-1, 1)) * random.choice((0, 0.02, 0.1, 0.4))))
        walk.append(round(level, 2))
    length = 400 * CHUNK - 300
    found = get_speech_timestamps_from_probs(walk, threshold=threshold, min_speech_duration_ms=least, min_silence_duration_ms=silence,
                                             speech_pad_ms=pad, audio_length_samples=length)
    cases.append(dict(threshold=threshold, minSpeechMs=least, minSilenceMs=silence, padMs=pad, length=length, probabilities=walk,
                      segments=[[one['start'], one['end']] for one in found]))

os.makedirs(f'{ROOT}/test/fixtures/silero-vad', exist_ok=True)
with open(f'{ROOT}/test/fixtures/silero-vad/golden.json', 'w') as file:
    json.dump(dict(probabilities=[round(float(p), 6) for p in rounded], cases=cases), file)
os.makedirs(f'{ROOT}/models/silero-vad', exist_ok=True)
save_file({new: parts[old].half().contiguous() for old, new in names.items()}, f'{ROOT}/models/silero-vad/model.safetensors',
          metadata=dict(source='PyPI silero-vad, silero_vad.jit, 16 kHz; MIT'))
os.chmod(f'{ROOT}/models/silero-vad/model.safetensors', 0o644)
print(f'{len(rounded)} chunks; f16 weights differ by {np.abs(published - rounded).max():.1e} at most')
