/** Tasks on different adapters, chosen by name: two software drivers, which really differ. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ChatEvent, TranscriptionEvent } from '../../engine/api.ts';
import type { Engine } from '../../engine/protocol.ts';
import { resample } from '../../engine/audio/resample.ts';
import { parseWav, wavToMono } from '../../engine/audio/wav.ts';
import { resolveConfig } from '../../engine/config.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { createEngine } from '../../engine/tasks/engine.ts';
import { collect } from '../support/collect.ts';
import { LAVAPIPE, SWIFTSHADER } from '../support/drivers.ts';
import { noting } from '../support/noted-devices.ts';

const path = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const never = new AbortController().signal;
const CHAT = { messages: [{ role: 'user' as const, content: 'Say hello.' }], sampling: { temperature: 0 }, maxTokens: 8 };

describe.skipIf(!LAVAPIPE || !SWIFTSHADER)('tasks on two adapters (skipped without lavapipe and SwiftShader)', () => {
  const before = process.env['VK_DRIVER_FILES'];
  const devices = new Map<string, GPUDevice>();
  let engine: Engine;
  beforeAll(async () => {
    process.env['VK_DRIVER_FILES'] = `${LAVAPIPE}:${SWIFTSHADER}`;
    const config = resolveConfig({
      chat: { path: path('models/parley-chat') },
      transcription: { path: path('models/parley-transcribe') },
      chatAdapter: 'llvmpipe',
      transcriptionAdapter: 'swiftshader',
      contextLength: 256,
      maxRunningRequests: 4,
    });
    const platform = createNodePlatform({ log: () => {} });
    engine = await createEngine(
      noting(platform, (device, name) => devices.set(name ?? '', device)),
      config,
    );
  });
  afterAll(async () => {
    await engine.close();
    if (before === undefined) delete process.env['VK_DRIVER_FILES'];
    else process.env['VK_DRIVER_FILES'] = before;
  });

  test('info names the adapter of each, and the counters are of both', () => {
    const { adapter, models } = engine.info();
    expect(adapter.name).toContain('llvmpipe');
    expect(models.map(({ task, adapter: own }) => [task, own?.name])).toEqual([
      ['chat', undefined],
      ['transcription', expect.stringContaining('SwiftShader')],
    ]);
    const bytes = models.reduce((sum, { weightBytes }) => sum + weightBytes, 0);
    expect(engine.status()).toMatchObject({ state: 'ready', pending: false });
    expect(engine.status().gpuBytes).toBeGreaterThan(bytes);
  });

  test('both work at the same time', async () => {
    const wav = parseWav(readFileSync(path('test/fixtures/parley-transcribe/clip.wav')));
    const samples = resample(wavToMono(wav), wav.sampleRate, 16000);
    const [chat, transcript] = await Promise.all([
      collect<ChatEvent>(engine.chat(CHAT, never)),
      collect<TranscriptionEvent>(engine.transcribe({ samples }, never)),
    ]);
    expect(chat.at(-1)).toMatchObject({ type: 'finish' });
    expect(transcript.at(-1)).toMatchObject({ type: 'finish', text: 'The watch was in the station.' });
  });

  test('losing one of them loses the engine: it is built anew as a whole', async () => {
    expect([...devices.keys()].sort()).toEqual(['llvmpipe', 'swiftshader']);
    const device = devices.get('swiftshader')!;
    device.destroy();
    await device.lost;
    await new Promise((resolve) => setTimeout(resolve));
    expect(engine.status().state).toBe('lost');
    expect(() => engine.chat(CHAT, never)).toThrow(expect.objectContaining({ code: 'device_lost' }));
  });
});

test('a name that nothing has is refused with what there is', async () => {
  const config = resolveConfig({ chat: { path: path('models/parley-chat') }, chatAdapter: 'no such card' });
  await expect(createEngine(createNodePlatform({ log: () => {} }), config)).rejects.toMatchObject({
    code: 'no_adapter',
    message: expect.stringMatching(/matches 'no such card'; there (is|are) '/),
  });
});
