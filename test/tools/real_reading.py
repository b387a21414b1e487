#!/usr/bin/env python3
"""What transformers hears in a reading of minutes: the reference of test/models/real-reading.test.ts.

    python3 test/tools/real_reading.py HUGGING_FACE_FOLDER RECORDINGS OUT [SECONDS]

Needs torch, transformers, soundfile, scipy. RECORDINGS is a folder with transcripts.tsv (file first, what is said last) and the files it names, such as LJ
Speech's; the first of them, with half a second between, are joined to OUT/reading.wav of SECONDS (180) or a little more, at 16 kHz. OUT/FOLDER.reading.json
has what is said, and what is heard greedily in f32 by transformers' own walk through long audio.
"""
import json
import os
import sys

import numpy as np
import soundfile
import torch
from scipy.signal import resample_poly
from transformers import AutoTokenizer, WhisperFeatureExtractor, WhisperForConditionalGeneration

RATE = 16000
folder, recordings, out = sys.argv[1:4]
seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 180
name = os.path.basename(os.path.normpath(folder))
os.makedirs(out, exist_ok=True)

parts, said, length = [], [], 0
for line in open(os.path.join(recordings, "transcripts.tsv"), encoding="utf-8").read().splitlines():
    if length >= seconds * RATE:
        break
    file, *rest = line.split("\t")
    samples, rate = soundfile.read(os.path.join(recordings, file), dtype="float32")
    parts += [resample_poly(samples, RATE // np.gcd(RATE, rate), rate // np.gcd(RATE, rate)), np.zeros(RATE // 2, np.float32)]
    said.append(rest[-1])
    length += len(parts[-2]) + len(parts[-1])
wav = os.path.join(out, "reading.wav")
soundfile.write(wav, np.concatenate(parts), RATE, subtype="PCM_16")
reading, _ = soundfile.read(wav, dtype="float32")

model = WhisperForConditionalGeneration.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
tokenizer = AutoTokenizer.from_pretrained(folder)
features = WhisperFeatureExtractor.from_pretrained(folder)
options = {"do_sample": False, "num_beams": 1}
if model.generation_config.is_multilingual and len(model.generation_config.lang_to_id) > 1:
    options |= {"language": "en", "task": "transcribe"}

found = features(reading, sampling_rate=RATE, return_tensors="pt", truncation=False, padding="longest", return_attention_mask=True)
with torch.no_grad():
    tokens = model.generate(found.input_features, attention_mask=found.attention_mask, return_timestamps=True, **options)[0]
heard = {"said": " ".join(said), "heard": tokenizer.decode(tokens, skip_special_tokens=True).strip()}
with open(os.path.join(out, f"{name}.reading.json"), "w", encoding="utf-8") as file:
    json.dump(heard, file, indent=1, ensure_ascii=False)
print(f"{name}: {len(reading) / RATE:.1f} s, {len(heard['said'].split())} words")
