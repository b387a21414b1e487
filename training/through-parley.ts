/** Speech and transcription through Parley itself, for the scripts that evaluate checkpoints or make training data. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Engine } from '../engine/protocol.ts';
import { resample } from '../engine/audio/resample.ts';
import { parseWav, wavToMono, writeWav } from '../engine/audio/wav.ts';
import { DEFAULT_ENGINE_CONFIG } from '../engine/config.ts';
import { createEngine } from '../engine/index.ts';
import { createNodePlatform } from '../engine/platform/node.ts';
import { wordErrorRate } from '../test/support/word-error-rate.ts';

const RECOGNISER_RATE = 16000;
const SEED = 1;

/** Of the bundled gate of speech. */
const VAD = fileURLToPath(new URL('../models/silero-vad', import.meta.url));

/** An engine with the models of these folders; the tasks not named are left out. A transcription model hears speech only, unless `vad` is false. */
export function openEngine(models: { chat?: string; speech?: string; transcription?: string; vad?: boolean }): Promise<Engine> {
  return createEngine(createNodePlatform(), {
    ...DEFAULT_ENGINE_CONFIG,
    ...(models.chat !== undefined && { chat: { path: models.chat } }),
    ...(models.speech !== undefined && { speech: { path: models.speech } }),
    ...(models.transcription !== undefined && { transcription: { path: models.transcription } }),
    ...(models.vad !== false && { vad: { path: VAD } }),
  });
}

/** Writes a text as a WAV file; returns seconds of audio, of computing, and until the first audio came. */
export async function speak(
  engine: Engine,
  text: string,
  voice: string,
  path: string,
): Promise<{ audio: number; spent: number; first: number }> {
  const chunks: Float32Array[] = [];
  const from = performance.now();
  let rate = 0;
  let first = 0;
  for await (const event of engine.synthesize({ text, voice, seed: SEED }, new AbortController().signal)) {
    if (event.type === 'start') rate = event.sampleRate;
    if (event.type === 'audio' && chunks.push(event.samples) === 1) first = (performance.now() - from) / 1000;
  }
  const samples = Float32Array.from(chunks.flatMap((chunk) => [...chunk]));
  writeFileSync(path, writeWav(samples, rate));
  return { audio: samples.length / rate, spent: (performance.now() - from) / 1000, first };
}

/** What the recogniser hears in a WAV file, and the file's length in seconds. */
export async function recognise(engine: Engine, path: string, language = 'en'): Promise<{ text: string; seconds: number }> {
  const wav = parseWav(readFileSync(path));
  const samples = resample(wavToMono(wav), wav.sampleRate, RECOGNISER_RATE);
  let text = '';
  for await (const event of engine.transcribe({ samples, language }, new AbortController().signal)) {
    if (event.type === 'finish') text = event.text;
  }
  return { text, seconds: samples.length / RECOGNISER_RATE };
}

/** How many words were heard wrongly, and how many there are to hear. */
export function wordErrors(text: string, heard: string): { errors: number; words: number } {
  const words = countWords(text);
  return { errors: words === 0 ? countWords(heard) : wordErrorRate(text, heard) * words, words };
}

const countWords = (text: string): number => text.match(/[\p{L}\p{N}']+/gu)?.length ?? 0;
