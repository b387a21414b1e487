#!/usr/bin/env python3
"""Evaluation clips as 16 kHz wavs in eval/SET/NN.wav with eval/refs.json {set: [[wav, reference], ...]}. Texts are never in the training set.
`--only noise long` makes the sets whose names begin so, the same to the sample as among all: noise and long want flite alone."""

import argparse, functools, json, os, random, re, subprocess
import numpy as np
import soundfile
import paths, feat, text_prep
from shared.sections import cap
from text_more import spell

R = random.Random(7)
EV = [l for l in open('text/eval.txt').read().split('\n')[:-1] if not re.search(r'\d|\$|%', l)]
NUM = open('text/eval_numbers.txt').read().split('\n')[:-1]
arguments = argparse.ArgumentParser()
arguments.add_argument('--only', nargs='+', default=[''])
ONLY = tuple(arguments.parse_args().only)
refs = {}


def wanted(name):
    return name.startswith(ONLY)


@functools.cache
def say(voice, text):
    """The text in a voice, 'flite:slt' or 'espeak:en-us' or 'festival:ked_diphone', at 16 kHz."""
    engine, name = voice.split(':')
    wav, scm = paths.TMP + '/ev.wav', paths.TMP + '/ev.scm'
    if os.path.exists(wav):
        os.remove(wav)
    with open(scm, 'w') as f:
        f.write(f'(voice_{name}) (utt.save.wave (utt.synth (Utterance Text "{text.replace(chr(34), "")}")) "{wav}" \'riff)')
    commands = dict(flite=['flite', '-voice', name, '-t', text, '-o', wav], espeak=['espeak-ng', '-v', name, '-s', '160', '-w', wav, text],
                    festival=['festival', '-b', scm])
    subprocess.run(commands[engine], capture_output=True)
    return level(real(wav))


def level(x):
    return x / max(1e-3, abs(x).max()) * 0.6


def real(path):
    sr, x = feat.read_wav(path)
    return feat.to16k(x, sr)


def put(name, i, sound, ref):
    """One clip of a set; `sound` makes it, and is not asked where the set is not wanted."""
    if not wanted(name):
        return
    p = f'eval/{name}/{i:02d}.wav'
    os.makedirs(f'eval/{name}', exist_ok=True)
    soundfile.write(p, np.clip(sound(), -1, 1), 16000, 'PCM_16')
    refs.setdefault(name, []).append([p, ref])


V = dict(seen_flite_slt='flite:slt', seen_flite_rms='flite:rms', seen_flite_awb='flite:awb', seen_flite_kal16='flite:kal16',
         seen_festival_slt_hts='festival:cmu_us_slt_arctic_hts', seen_espeak_en_us='espeak:en-us', seen_espeak_gb_f3='espeak:en-gb+f3',
         unseen_festival_ked='festival:ked_diphone', unseen_espeak_scotland='espeak:en-gb-scotland',
         unseen_espeak_rp_variant='espeak:en-gb-x-rp+gustave')
bank = {v: R.sample(EV, 100) for v in V.values()}
for name, v in V.items():
    for i, t in enumerate(bank[v]):
        put(name, i, lambda: say(v, t), t)
for i, t in enumerate(R.sample(NUM, 40)):  # one reading for the voice and the reference
    put('numbers_slt_rms', i, lambda: say('flite:slt' if i % 2 else 'flite:rms', spell(t)), spell(t))


@functools.cache
def noisy():
    """Three voices in noise, 24 clips a level one after the other: white in the even ones, low-pitched in the odd ones."""
    out, draw = [], np.random.default_rng(7)
    for snr in SNRS:
        for i, (voice, t) in enumerate(NOISY):
            x = np.pad(say(voice, t), (4000, 8000))
            n = draw.standard_normal(len(x)).astype(np.float32)
            if i % 2:
                n = np.cumsum(n)
                n = n - np.convolve(n, np.ones(401) / 401, 'same')
            out.append(x + n * (np.sqrt((x**2).mean() / (n**2).mean()) * 10**(-snr / 20)))
    return out


def joined(voice, texts, pause):
    return np.concatenate(sum(([say(voice, t), np.zeros(pause, np.float32)] for t in texts), []))


def first_seconds(voice, texts, pause, seconds):
    """As many of the texts as fit."""
    out, n = [], 0
    for t in texts:
        n += len(say(voice, t)) + pause
        if n > seconds * 16000:
            return out
        out.append(t)


THREE = ['flite:slt', 'flite:rms', 'flite:awb']
SNRS = (20, 10, 5)
POOL = [(v, t) for v in THREE for t in bank[v]]
NOISY = [POOL[(i * 3) % len(POOL)] for i in range(24)]
for k, snr in enumerate(SNRS):
    for i, (_, t) in enumerate(NOISY):
        put(f'noise_{snr}dB', i, lambda: noisy()[k * 24 + i], t)
for i in range(6):  # 20-29 s of consecutive sentences, one voice
    texts = list(bank[THREE[i % 3]])
    R.shuffle(texts)
    if wanted('long_under_30s'):
        texts = first_seconds(THREE[i % 3], texts, 6400, 29)
        put('long_under_30s', i, lambda: joined(THREE[i % 3], texts, 6400), ' '.join(texts))
for i in range(2):
    put('long_over_60s', i, lambda: joined(THREE[i], bank[THREE[i]], 8000), ' '.join(bank[THREE[i]]))
TRAINED = set(open('text/train.txt').read().split('\n'))
text_prep.random.seed(4242)
fresh = []
while len(fresh) < 36:  # fresh sentences of the template generator that wrote part of the training text
    t = cap(text_prep.everyday())
    if t not in TRAINED:
        fresh.append(t)
for i, t in enumerate(fresh[:24]):
    put('everyday_seen_voices', i, lambda: say(THREE[i % 3], t), t)
for i, t in enumerate(fresh[24:]):
    put('everyday_unseen_ked', i, lambda: say('festival:ked_diphone', t), t)
draw = np.random.default_rng(8)
for i in range(20):  # silence, hum, white and coloured noise: nothing may be transcribed
    n = 16000 * int(draw.integers(2, 12))
    w = draw.standard_normal(n).astype(np.float32)
    x = [np.zeros(n, np.float32), w, np.cumsum(w) * 0.01, np.sin(np.arange(n) * 2 * np.pi * 60 / 16000)][i % 4]
    put('nothing', i, lambda: (0.02 * x / max(1e-3, abs(x).max())).astype(np.float32), '')


# ---- real human speech ----
HELD_OUT = json.load(open('text/real_heldout.json')) if wanted('real_lj_heldout') or wanted('real_ocean_heldout') else {}
for name, clips in HELD_OUT.items():  # ocean: adults, never heard; lj: the reader's other clips were heard
    for i, (p, t) in enumerate(clips):
        put(f'real_{name}_heldout', i, lambda: real(p), t)
P = '/usr/share/pocketsphinx/test/data/'  # Debian pocketsphinx-testdata
for name, listed in (('librivox', 'transcription'), ('cards', 'cards.transcription')):
    for i, l in enumerate(open(P + f'{name}/{listed}') if os.path.exists(P) else []):
        said = re.match(r'(?:<s> )?(.*?)(?: </s>)? \((.*)\)', l.strip())
        if said:
            put(f'real_{name}', i, lambda: real(f'{P}{name}/{said[2]}.wav'), said[1])
json.dump(refs, open('eval/refs.json', 'w'), indent=1)
for k, v in refs.items():
    print(k, len(v), v[0])
