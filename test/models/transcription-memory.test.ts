/** Transcription on a device that gives no more memory while requests run. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseWav, wavToMono } from '../../engine/audio/wav.ts';
import { resolveConfig } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { Transcriber } from '../../engine/tasks/transcriber.ts';
import { collect } from '../support/collect.ts';
import { testDevice } from '../support/device.ts';
import { refuseMemory } from '../support/refused-memory.ts';

const path = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const clip = wavToMono(parseWav(readFileSync(path('test/fixtures/parley-transcribe/clip.wav'))));

let device: Device;
let transcriber: Transcriber;
beforeAll(async () => {
  device = await testDevice();
  transcriber = await Transcriber.load(device, device.platform, { path: path('models/parley-transcribe') }, resolveConfig({}));
});
afterAll(async () => {
  await transcriber.close();
  device.close();
});

async function hear(samples: Float32Array, signal = new AbortController().signal): Promise<string> {
  const last = (await collect(transcriber.transcribe({ samples }, signal))).at(-1)!;
  return last.type === 'finish' ? last.text : `no finish but ${last.type}`;
}

test('without memory for windows side by side they are heard one after the other, until there is some', async () => {
  const alone = await hear(clip);
  expect(alone).not.toBe('');
  const { buffers, bufferBytes } = device.stats;
  const leaving = new AbortController();
  const refusal = refuseMemory(device, (label) => {
    const isRefused = label.startsWith('self cache');
    // The window that holds the only slot goes while the next one waits for the device's answer.
    if (isRefused) queueMicrotask(() => leaving.abort());
    return isRefused;
  });
  try {
    const aborted = hear(clip, leaving.signal);
    const others = [clip, clip, clip].map((samples) => hear(samples));
    await expect(aborted).rejects.toMatchObject({ code: 'aborted' });
    expect(await Promise.all(others)).toEqual([alone, alone, alone]);
  } finally {
    refusal.restore();
  }
  expect(refusal.refused).not.toEqual([]);
  // What was refused is given back.
  expect(device.stats).toMatchObject({ buffers, bufferBytes });
  expect(await Promise.all([clip, clip].map((samples) => hear(samples)))).toEqual([alone, alone]);
  expect(device.stats.bufferBytes).toBeGreaterThan(bufferBytes);
  expect(device.errors).toEqual([]);
});
