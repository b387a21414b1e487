#!/usr/bin/env python3
"""Evaluation clips as 16 kHz wavs in eval/SET/NN.wav with eval/refs.json {set: [[wav, reference], ...]}. Texts are never in the training set."""

import json, os, random, re, subprocess
import numpy as np
import soundfile
import paths, feat, text_prep
from shared.sections import cap
from text_more import spell

R = random.Random(7)
NP = np.random.default_rng(7)
EV = [l for l in open('text/eval.txt').read().split('\n')[:-1] if not re.search(r'\d|\$|%', l)]
NUM = open('text/eval_numbers.txt').read().split('\n')[:-1]
refs = {}


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


def put(name, i, x, ref):
    p = f'eval/{name}/{i:02d}.wav'
    os.makedirs(f'eval/{name}', exist_ok=True)
    soundfile.write(p, np.clip(x, -1, 1), 16000, 'PCM_16')
    refs.setdefault(name, []).append([p, ref])


V = dict(seen_flite_slt='flite:slt', seen_flite_rms='flite:rms', seen_flite_awb='flite:awb', seen_flite_kal16='flite:kal16',
         seen_festival_slt_hts='festival:cmu_us_slt_arctic_hts', seen_espeak_en_us='espeak:en-us', seen_espeak_gb_f3='espeak:en-gb+f3',
         unseen_festival_ked='festival:ked_diphone', unseen_espeak_scotland='espeak:en-gb-scotland',
         unseen_espeak_rp_variant='espeak:en-gb-x-rp+gustave')
bank = {}
for name, v in V.items():
    for i, t in enumerate(R.sample(EV, 100)):
        x = say(v, t)
        bank.setdefault(v, []).append((x, t))
        put(name, i, x, t)
for i, t in enumerate(R.sample(NUM, 40)):
    put('numbers_slt_rms', i, say('flite:slt' if i % 2 else 'flite:rms', spell(t)), spell(t))  # one reading for the voice and the reference
pool = bank['flite:slt'] + bank['flite:rms'] + bank['flite:awb']
for snr in (20, 10, 5):
    for i in range(24):
        x, t = pool[(i * 3) % len(pool)]
        x = np.pad(x, (4000, 8000))
        n = NP.standard_normal(len(x)).astype(np.float32)
        if i % 2:
            n = np.cumsum(n)
            n = n - np.convolve(n, np.ones(401) / 401, 'same')  # low-frequency noise
        n *= np.sqrt((x**2).mean() / (n**2).mean()) * 10**(-snr / 20)
        put(f'noise_{snr}dB', i, x + n, t)
for i in range(6):  # 20-29 s of consecutive sentences, one voice
    b = list(bank[['flite:slt', 'flite:rms', 'flite:awb'][i % 3]])
    R.shuffle(b)
    xs, ts, n = [], [], 0
    for x, t in b:
        if n + len(x) + 6400 > 29 * 16000:
            break
        xs += [x, np.zeros(6400, np.float32)]
        ts.append(t)
        n += len(x) + 6400
    put('long_under_30s', i, np.concatenate(xs), ' '.join(ts))
for i in range(2):
    b = list(bank[['flite:slt', 'flite:rms'][i]])
    xs = sum(([x, np.zeros(8000, np.float32)] for x, _ in b), [])
    put('long_over_60s', i, np.concatenate(xs), ' '.join(t for _, t in b))
TRAINED = set(open('text/train.txt').read().split('\n'))
text_prep.random.seed(4242)
fresh = []
while len(fresh) < 36:  # fresh sentences of the template generator that wrote part of the training text
    t = cap(text_prep.everyday())
    if t not in TRAINED:
        fresh.append(t)
for i, t in enumerate(fresh[:24]):
    put('everyday_seen_voices', i, say(['flite:slt', 'flite:rms', 'flite:awb'][i % 3], t), t)
for i, t in enumerate(fresh[24:]):
    put('everyday_unseen_ked', i, say('festival:ked_diphone', t), t)
for i in range(20):  # silence, hum, white and coloured noise: nothing may be transcribed
    n = 16000 * int(NP.integers(2, 12))
    w = NP.standard_normal(n).astype(np.float32)
    x = [np.zeros(n, np.float32), w, np.cumsum(w) * 0.01, np.sin(np.arange(n) * 2 * np.pi * 60 / 16000)][i % 4]
    put('nothing', i, (0.02 * x / max(1e-3, abs(x).max())).astype(np.float32), '')


# ---- real human speech ----
for name, clips in json.load(open('text/real_heldout.json')).items():  # ocean: adults, never heard; lj: the reader's other clips were heard
    for i, (p, t) in enumerate(clips):
        put(f'real_{name}_heldout', i, real(p), t)
P = '/usr/share/pocketsphinx/test/data/'  # Debian pocketsphinx-testdata
for name, listed in (('librivox', 'transcription'), ('cards', 'cards.transcription')):
    for i, l in enumerate(open(P + f'{name}/{listed}') if os.path.exists(P) else []):
        said = re.match(r'(?:<s> )?(.*?)(?: </s>)? \((.*)\)', l.strip())
        if said:
            put(f'real_{name}', i, real(f'{P}{name}/{said[2]}.wav'), said[1])
json.dump(refs, open('eval/refs.json', 'w'), indent=1)
for k, v in refs.items():
    print(k, len(v), v[0])
