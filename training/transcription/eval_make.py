#!/usr/bin/env python3
"""Evaluation clips as 16 kHz wavs in eval/SET/NN.wav with eval/refs.json {set: [[wav, reference], ...]}. Texts are never in the training set."""

import json, os, random, re, subprocess, wave
import numpy as np
import soundfile
import paths, feat, text_prep
from text_more import spell

R = random.Random(7)
NP = np.random.default_rng(7)
EV = [l for l in open('text/eval.txt').read().split('\n')[:-1] if not re.search(r'\d|\$|%', l)]
NUM = open('text/eval_numbers.txt').read().split('\n')[:-1]
refs = {}


def save(path, x):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    w = wave.open(path, 'wb')
    w.setnchannels(1)
    w.setsampwidth(2)
    w.setframerate(16000)
    w.writeframes((np.clip(x, -1, 1) * 32767).astype(np.int16).tobytes())
    w.close()


def say(voice, text, tmp=paths.TMP + '/ev.wav'):
    k, n = voice.split(':')
    if os.path.exists(tmp):
        os.remove(tmp)
    if k == 'flite':
        subprocess.run(['flite', '-voice', n, '-t', text, '-o', tmp], capture_output=True)
    elif k == 'espeak':
        subprocess.run(['espeak-ng', '-v', n, '-s', '160', '-w', tmp, text], capture_output=True)
    else:
        open(paths.TMP + '/ev.scm',
             'w').write(f'(voice_{n}) (utt.save.wave (utt.synth (Utterance Text "{re.sub(chr(34), "", text)}")) "{tmp}" \'riff)')
        subprocess.run(['festival', '-b', paths.TMP + '/ev.scm'], capture_output=True)
    sr, x = feat.read_wav(tmp)
    x = feat.to16k(x, sr)
    return x / max(1e-3, abs(x).max()) * 0.6


def put(name, i, x, ref):
    p = f'eval/{name}/{i:02d}.wav'
    save(p, x)
    refs.setdefault(name, []).append([p, ref])


V = {
    'seen_flite_slt': 'flite:slt', 'seen_flite_rms': 'flite:rms', 'seen_flite_awb': 'flite:awb', 'seen_flite_kal16': 'flite:kal16',
    'seen_festival_slt_hts': 'festival:cmu_us_slt_arctic_hts', 'seen_espeak_en_us': 'espeak:en-us', 'seen_espeak_gb_f3': 'espeak:en-gb+f3',
    'unseen_festival_ked': 'festival:ked_diphone', 'unseen_espeak_scotland': 'espeak:en-gb-scotland',
    'unseen_espeak_rp_variant': 'espeak:en-gb-x-rp+gustave'
}
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
    t = text_prep.everyday()
    t = t[0].upper() + t[1:]
    if t not in TRAINED:
        fresh.append(t)
for i, t in enumerate(fresh):
    if i < 24:
        put('everyday_seen_voices', i, say(['flite:slt', 'flite:rms', 'flite:awb'][i % 3], t), t)
    else:
        put('everyday_unseen_ked', i - 24, say('festival:ked_diphone', t), t)
for i in range(20):  # silence, hum, white and coloured noise: nothing may be transcribed
    n = 16000 * int(NP.integers(2, 12))
    w = NP.standard_normal(n).astype(np.float32)
    x = [np.zeros(n, np.float32), w, np.cumsum(w) * 0.01, np.sin(np.arange(n) * 2 * np.pi * 60 / 16000)][i % 4]
    put('nothing', i, (0.02 * x / max(1e-3, abs(x).max())).astype(np.float32), '')


# ---- real human speech ----
def real(path):
    x, sr = soundfile.read(path, dtype='float32')
    return feat.to16k(x, sr)


for name, clips in json.load(open('text/real_heldout.json')).items():  # ocean: adults, never heard; lj: the reader's other clips were heard
    for i, (p, t) in enumerate(clips):
        put(f'real_{name}_heldout', i, real(p), t)
P = '/usr/share/pocketsphinx/test/data/'  # Debian pocketsphinx-testdata
if os.path.exists(P):
    for i, l in enumerate(open(P + 'librivox/transcription')):
        t, f = re.match(r'<s> (.*) </s> \((.*)\)', l).groups()
        put('real_librivox', i, real(f'{P}librivox/{f}.wav'), t)
    for i, l in enumerate(open(P + 'cards/cards.transcription')):
        m = re.match(r'(?:<s> )?(.*?)(?: </s>)? \((.*)\)', l.strip())
        if m:
            put('real_cards', i, real(f'{P}cards/{m.group(2)}.wav'), m.group(1))
json.dump(refs, open('eval/refs.json', 'w'), indent=1)
for k, v in refs.items():
    print(k, len(v), v[0])
