/** The speech gate's model on the bundled weights against the package's own model on PyTorch (test/tools/dump_silero_vad.py), and its blocks. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { arraySource } from '../../engine/audio/sample-source.ts';
import { parseWav, wavToMono } from '../../engine/audio/wav.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { VAD_CHUNK, loadSileroVad, sileroVadBytes } from '../../engine/models/silero-vad/silero-vad.ts';
import { VadRunner } from '../../engine/runner/vad-runner.ts';
import { openSafetensors } from '../../engine/weights/safetensors.ts';
import { testDevice } from '../support/device.ts';

const path = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const golden = JSON.parse(readFileSync(path('test/fixtures/silero-vad/golden.json'), 'utf8')) as { readonly probabilities: number[] };
const clip = wavToMono(parseWav(readFileSync(path('test/fixtures/parley-transcribe/clip.wav'))));
/** As the script puts it together. */
const sound = Float32Array.from([
  ...clip, ...new Float32Array(24000), ...clip.map((value) => value * Math.fround(0.1)), ...clip.toReversed(), ...clip, ...clip.subarray(0, 777),
]); // prettier-ignore

let device: Device;
let runner: VadRunner;
beforeAll(async () => {
  device = await testDevice();
  runner = await VadRunner.load(device, path('models/silero-vad'));
});
afterAll(() => device.close());

async function heard(samples: Float32Array): Promise<number[]> {
  const all: number[] = [];
  for await (const block of runner.probabilities(arraySource(samples))) all.push(...block);
  return all;
}

describe('Silero VAD', () => {
  test('hears what the package hears, over several blocks', async () => {
    const found = await heard(sound);
    expect(found).toHaveLength(golden.probabilities.length);
    expect(found.length).toBeGreaterThan(256);
    // The order of sums in f32 differs.
    const worst = Math.max(...found.map((value, i) => Math.abs(value - golden.probabilities[i]!)));
    expect(worst).toBeLessThan(1e-4);
  });

  test('hears the same beside another request, and makes nothing on the device for it', async () => {
    const alone = await heard(sound);
    const { buffers, pipelines } = device.stats;
    const [one, other] = await Promise.all([heard(sound), heard(sound.subarray(12345))]);
    expect(one).toEqual(alone);
    expect(other).not.toEqual(alone);
    expect({ buffers: device.stats.buffers, pipelines: device.stats.pipelines }).toEqual({ buffers, pipelines });
  });

  test('takes as many bytes on the device as the plan of memory says', async () => {
    const checkpoint = await openSafetensors(device.platform, path('models/silero-vad'));
    const before = device.stats.bufferBytes;
    await loadSileroVad(device, checkpoint);
    expect(device.stats.bufferBytes - before).toBe(sileroVadBytes());
    await checkpoint.close();
  });

  test('takes sound of any length', async () => {
    for (const length of [1, VAD_CHUNK, VAD_CHUNK + 1])
      expect(await heard(sound.subarray(0, length))).toHaveLength(Math.ceil(length / VAD_CHUNK));
  });
});
