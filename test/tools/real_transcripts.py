#!/usr/bin/env python3
"""What transformers hears in recordings with published Whisper weights: the reference of test/models/real-whisper.test.ts.

    python3 test/tools/real_transcripts.py HUGGING_FACE_FOLDER RECORDINGS OUT [COUNT]

Needs torch, transformers, soundfile, scipy. RECORDINGS is a folder with transcripts.tsv (file first) and the files it names, such as LJ Speech's;
the first COUNT (40) go to OUT as 16 kHz WAV, and what is heard in each, greedily in f32 and without times, to OUT/FOLDER.json.
"""
import json
import os
import sys

import numpy as np
import soundfile
import torch
from scipy.signal import resample_poly
from transformers import AutoTokenizer, WhisperFeatureExtractor, WhisperForConditionalGeneration

folder, recordings, out = sys.argv[1:4]
count = int(sys.argv[4]) if len(sys.argv) > 4 else 40
name = os.path.basename(os.path.normpath(folder))
os.makedirs(out, exist_ok=True)
model = WhisperForConditionalGeneration.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
tokenizer = AutoTokenizer.from_pretrained(folder)
features = WhisperFeatureExtractor.from_pretrained(folder)
options = {"language": "en", "task": "transcribe"} if model.generation_config.is_multilingual else {}
golden = {}
for line in open(os.path.join(recordings, "transcripts.tsv"), encoding="utf-8").read().splitlines()[:count]:
    file, *rest = line.split("\t")
    samples, rate = soundfile.read(os.path.join(recordings, file), dtype="float32")
    wav = os.path.splitext(file)[0] + ".wav"
    down = resample_poly(samples, 16000 // np.gcd(16000, rate), rate // np.gcd(16000, rate))
    soundfile.write(os.path.join(out, wav), down, 16000, subtype="PCM_16")
    heard, _ = soundfile.read(os.path.join(out, wav), dtype="float32")
    mel = features(heard, sampling_rate=16000, return_tensors="pt").input_features
    with torch.no_grad():
        tokens = model.generate(mel, do_sample=False, num_beams=1, **options)[0]
    golden[wav] = {"heard": tokenizer.decode(tokens, skip_special_tokens=True).strip(), "spoken": rest[-1]}
    print(wav, golden[wav]["heard"], flush=True)
    json.dump(golden, open(os.path.join(out, f"{name}.json"), "w"), indent=1, ensure_ascii=False)
