#!/usr/bin/env python3
"""When words are spoken, by transformers: the reference of test/models/word-times.test.ts and test/models/real-words.test.ts.

    python3 test/tools/dump_whisper_words.py                                   the committed fixtures of the random and the bundled checkpoint
    python3 test/tools/dump_whisper_words.py HUGGING_FACE_FOLDER RECORDINGS    RECORDINGS/FOLDER.words.json

Needs torch, transformers, soundfile. RECORDINGS holds 16 kHz WAV files of at most 30 s, or beside a longer one NAME.windows.json: the windows
[first sample, samples] that Parley cuts it into. Each is decoded greedily in f32, with times, by transformers' rules for them; what follows the last closed segment is
decoded again, as in Parley. Times of tokens and words are transformers' (`_extract_token_timestamps`, `_combine_tokens_into_words`); of a segment's first and last
word they are bounded as in OpenAI's code.
"""
import glob
import json
import os
import sys

import soundfile
import torch
from safetensors.numpy import load_file
from transformers import AutoTokenizer, GenerationConfig, WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration
from transformers.generation.logits_process import WhisperTimeStampLogitsProcessor
from transformers.models.whisper.tokenization_whisper import _combine_tokens_into_words

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIXTURES = os.path.join(ROOT, "test", "fixtures")
STEP = 0.02
LEAST_REST = 0.2
# OpenAI's `add_word_timestamps`: a word that lies further outside its segment than this begins or ends with it.
SLACK = 0.5


class Outputs(dict):
    """What `_extract_token_timestamps` reads of generate()'s result."""

    def __init__(self, cross_attentions, sequences):
        super().__init__()
        self.cross_attentions = [cross_attentions]
        self.sequences = sequences


def token_times(model, encoded, prompt, tokens, frames, heads):
    """Seconds at which each token ends."""
    ids = torch.tensor([prompt + tokens])
    with torch.no_grad():
        attentions = model(encoder_outputs=(encoded,), decoder_input_ids=ids, output_attentions=True).cross_attentions
    ends = torch.cat([ids, ids[:, -1:]], 1)
    times = model._extract_token_timestamps(
        Outputs(attentions, ends), heads, num_frames=torch.tensor([frames]), num_input_ids=len(prompt)
    )
    return [round(float(t), 4) for t in times[0, len(prompt) : len(prompt) + len(tokens)]]


def fallback_heads(config):
    """OpenAI's, where a checkpoint names none."""
    return [[layer, head] for layer in range(config.decoder_layers // 2, config.decoder_layers) for head in range(config.decoder_attention_heads)]


def greedy(model, encoded, prompt):
    """Tokens of a window, by transformers' rules for times."""
    generation = model.generation_config
    end, begin = generation.eos_token_id, generation.no_timestamps_token_id + 1
    suppress = list(generation.suppress_tokens or [])
    first = list(generation.begin_suppress_tokens or [])
    rules = WhisperTimeStampLogitsProcessor(
        GenerationConfig(no_timestamps_token_id=begin - 1, eos_token_id=end, bos_token_id=end, max_initial_timestamp_index=50), begin_index=len(prompt)
    )
    ids, cache = list(prompt), None
    while len(ids) - len(prompt) < model.config.max_target_positions // 2:
        new = ids if cache is None else ids[-1:]
        with torch.no_grad():
            out = model(encoder_outputs=(encoded,), decoder_input_ids=torch.tensor([new]), past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        logits = out.logits[:, -1].clone()
        logits[:, suppress + (first if len(ids) == len(prompt) else [])] = -torch.inf
        token = int(rules(torch.tensor([ids]), logits)[0].argmax())
        if token == end:
            break
        ids.append(token)
    return ids[len(prompt) :]


def hear(model, tokenizer, extractor, samples, start, length, prompt, found):
    """One window: its segments and words, and what it left unheard."""
    mel = extractor(samples[start : start + length], sampling_rate=16000, return_tensors="pt").input_features
    with torch.no_grad():
        encoded = model.model.encoder(mel).last_hidden_state
    tokens = greedy(model, encoded, prompt)
    begin = model.generation_config.no_timestamps_token_id + 1
    heads = getattr(model.generation_config, "alignment_heads", None) or fallback_heads(model.config)
    frames = -(-length // 160)
    times = token_times(model, encoded, prompt, tokens, frames, heads)
    at = start / 16000
    is_time = [token >= begin for token in tokens] + [False]
    single = len(tokens) > 1 and is_time[len(tokens) - 1] and not is_time[len(tokens) - 2]
    pairs = [] if single else [i for i in range(len(tokens) - 1) if is_time[i] and is_time[i + 1]]
    rest = (tokens[pairs[-1]] - begin) * STEP if pairs else 0
    if not 0 < rest <= length / 16000 - LEAST_REST:
        rest = None
    kept = tokens if rest is None else tokens[: pairs[-1] + 1]
    opened, pending = 0.0, []
    for i, token in enumerate([*kept, None]):
        if token is not None and token < begin:
            pending.append(i)
            continue
        time = length / 16000 if token is None else min((token - begin) * STEP, length / 16000)
        if pending:
            text = [tokens[j] for j in pending]
            found["segments"].append({"start": round(at + opened, 3), "end": round(at + time, 3), "text": tokenizer.decode(text)})
            words, _, places = _combine_tokens_into_words(tokenizer, text, "english")
            timed = []
            for word, indices in zip(words, places):
                first, last = pending[indices[0]], pending[indices[-1]]
                timed.append([word, times[first - 1] if first else 0.0, times[last]])
            if timed and opened < timed[0][2] and timed[0][1] < opened - SLACK:
                timed[0][1] = opened
            if timed and time > timed[-1][1] and timed[-1][2] > time + SLACK:
                timed[-1][2] = time
            found["words"] += [[word, round(at + start, 3), round(at + end, 3)] for word, start, end in timed]
        opened, pending = time, []
    if rest is not None:
        used = round(rest * 16000)
        hear(model, tokenizer, extractor, samples, start + used, length - used, prompt, found)


def open_model(folder):
    model = WhisperForConditionalGeneration.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    return model, AutoTokenizer.from_pretrained(folder), WhisperFeatureExtractor.from_pretrained(folder)


def prompt_of(model):
    generation = model.generation_config
    if not generation.is_multilingual:
        return [generation.decoder_start_token_id]
    return [generation.decoder_start_token_id, generation.lang_to_id["<|en|>"], generation.task_to_id["transcribe"]]


def write(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False)
        file.write("\n")
    print(path, os.path.getsize(path))


def dump_random():
    folder = os.path.join(FIXTURES, "whisper-tiny-random")
    config = WhisperConfig.from_pretrained(folder, pad_token_id=0, bos_token_id=0)
    model = WhisperForConditionalGeneration.from_pretrained(folder, config=config, dtype=torch.float32, attn_implementation="eager").eval()
    golden = load_file(os.path.join(folder, "golden.safetensors"))
    written = json.load(open(os.path.join(folder, "golden.json")))
    # As many as a transcript has, after a prompt so long that all of them do not fit a step.
    tokens = written["greedy_timestamps"][: model.config.max_target_positions // 2]
    prompt = written["forced"][4:] + prompt_of(model)
    encoded = torch.from_numpy(golden["encoder"])[None]
    frames = -(-len(golden["audio"]) // 160)
    named = [[0, 1], [1, 0], [1, 2]]
    write(os.path.join(folder, "words.json"), {
        "prompt": prompt, "tokens": tokens, "positions": frames // 2, "heads": named,
        "ends": token_times(model, encoded, prompt, tokens, frames, named),
        "ends_without_heads": token_times(model, encoded, prompt, tokens, frames, fallback_heads(model.config)),
    })  # fmt: skip


def dump_recordings(folder, recordings, out):
    model, tokenizer, extractor = open_model(folder)
    golden = {}
    for path in sorted(glob.glob(os.path.join(recordings, "*.wav"))):
        samples, rate = soundfile.read(path, dtype="float32")
        assert rate == 16000, f"{path}: {rate} Hz"
        beside = path[:-4] + ".windows.json"
        windows = json.load(open(beside)) if os.path.exists(beside) else [[0, len(samples)]]
        found = {"segments": [], "words": []}
        for start, length in windows:
            hear(model, tokenizer, extractor, samples, start, length, prompt_of(model), found)
        golden[os.path.basename(path)] = found
        print(os.path.basename(path), len(found["segments"]), "segments", len(found["words"]), "words", flush=True)
    write(out, golden)


if len(sys.argv) > 2:
    name = os.path.basename(os.path.normpath(sys.argv[1]))
    dump_recordings(sys.argv[1], sys.argv[2], os.path.join(sys.argv[2], f"{name}.words.json"))
else:
    dump_random()
    bundled = os.path.join(FIXTURES, "parley-transcribe")
    dump_recordings(os.path.join(ROOT, "models", "parley-transcribe"), bundled, os.path.join(bundled, "words.json"))
