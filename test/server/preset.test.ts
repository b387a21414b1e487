/** Presets: which models they stand for beside flags that name some, and what is said of a machine that they do not fit. No adapter, nothing is fetched. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { PRESETS, presetBytes, presetModels } from '../../sources/index.ts';
import { parseServerConfig } from '../../server/settings/config.ts';
import type { ServerConfig } from '../../server/settings/config.ts';
import { presetProblem } from '../../server/settings/preset.ts';
import type { ReadMemory } from '../../server/settings/preset.ts';
import { resolveModels } from '../../server/settings/sources.ts';

const home = mkdtempSync(join(tmpdir(), 'parley-preset-'));
afterAll(() => rmSync(home, { recursive: true }));
const env = { HF_HOME: home, PARLEY_CACHE: join(home, 'own'), HF_HUB_OFFLINE: '1' };
const GIB = 2 ** 30;

const config = (...argv: string[]): ServerConfig => parseServerConfig(argv, {});
const ids = ({ listeners }: ServerConfig): readonly string[] => listeners.map(({ modelId }) => modelId);

/** What is said on a machine with so many bytes; with the adapters that were asked. */
async function problemOn(bytes: number, ...argv: string[]): Promise<{ message: string | undefined; asked: (string | undefined)[] }> {
  const asked: (string | undefined)[] = [];
  const read: ReadMemory = async (name, given) => {
    asked.push(name);
    return {
      type: 'memory',
      name: 'Some GPU',
      bytes: given ?? bytes,
      from: given === undefined ? 'nvidia-smi' : 'as set',
      software: false,
    };
  };
  return { message: (await presetProblem(config(...argv), { env }, read))?.message, asked };
}

describe('--preset', () => {
  test('names the models of all three tasks', () => {
    expect(ids(config('--preset', 'small'))).toEqual(['SmolLM2-135M-Instruct', 'Kokoro-82M-int8', 'whisper-base']);
    expect(config('--preset', 'small').shown).toMatchObject({ preset: 'small', 'speech-model': 'Kokoro-82M-int8' });
    expect(config().preset).toBeUndefined();
    // A small GPU computes less at once, unless somebody says otherwise.
    expect(config('--preset=medium').engine).toMatchObject({ maxRunningRequests: 8, chunkedPrefillSize: 1024 });
    expect(config('--preset=medium', '--max-running-requests=20').engine).toMatchObject({
      maxRunningRequests: 20,
      chunkedPrefillSize: 1024,
    });
    expect(() => config('--preset', 'huge')).toThrow('--preset huge: must be one of small, medium, large');
  });

  test('gives way to models that are named, wherever they are', () => {
    const argv = config('--preset=small', '--chat-model=test/fixtures/llama-tiny-random');
    expect(ids(argv)).toEqual(['llama-tiny-random', 'Kokoro-82M-int8', 'whisper-base']);
    expect(argv.preset!.models.map(({ id }) => id)).toEqual(['Kokoro-82M-int8', 'whisper-base']);
    const other = parseServerConfig(['--preset=small'], { PARLEY_SPEECH_MODEL: 'none' });
    expect(ids(other)).toEqual(['SmolLM2-135M-Instruct', 'whisper-base']);
  });
});

describe('before a byte is fetched', () => {
  test('what fits passes', async () => {
    const medium = PRESETS['medium']!;
    const models = presetModels(medium).reduce((sum, model) => sum + presetBytes(medium, model, 'gpu'), 0);
    // The engine asks for pages of 256 tokens at least: 36 layers, 8 heads of 128 channels, in two bytes, or in one and a scale.
    const [floats, bytes] = [256 * 2 * 36 * 8 * 128 * 2, 256 * 2 * 36 * 8 * (128 + 4)];
    for (const [room, ...flags] of [[floats], [bytes, '--kv-cache-dtype=int8']] as const) {
      expect((await problemOn((models + room) / 0.8 + 2, '--preset=medium', ...flags)).message).toBeUndefined();
      expect((await problemOn((models + room) / 0.8 - 2, '--preset=medium', ...flags)).message).toMatch(
        /^--preset medium does not fit Some GPU/,
      );
    }
    expect(await problemOn(0)).toEqual({ message: undefined, asked: [] });
  });

  test('what does not is refused with the numbers and what would fit', async () => {
    expect((await problemOn(4 * GIB, '--preset=medium')).message).toMatch(
      /^--preset medium does not fit Some GPU: it needs \d\.\d GiB \(Qwen3-4B-Instruct-2507 \d\.\d GiB, Kokoro-82M \d+\.\d MiB, whisper-base \d+\.\d MiB\) and room for a conversation, and 0\.8 x 4\.0 GiB \(nvidia-smi\) = 3\.2 GiB may be taken\. What fits: --preset small \(1\.9 GiB, which leaves room for [\d,]+ tokens\); --preset medium --chat-model Qwen2\.5-Coder-0\.5B-Instruct \(2\.3 GiB, which leaves room for [\d,]+ tokens\)\. Where there really is more memory, --device-memory says so\.$/,
    );
    expect((await problemOn(GIB, '--preset=small')).message).toMatch(/No preset fits; the bundled models need far less/);
  });

  test("the operator's numbers hold", async () => {
    expect((await problemOn(GIB, '--preset=medium', '--device-memory=8')).message).toBeUndefined();
    expect((await problemOn(8 * GIB, '--preset=medium', '--mem-fraction-static=0.3')).message).toMatch(/0\.3 x 8\.0 GiB/);
  });

  test('each adapter is asked for what it gets, a part of a split model too', async () => {
    expect((await problemOn(8 * GIB, '--preset=medium')).asked).toEqual([undefined]);
    const own = await problemOn(2 * GIB, '--preset=medium', '--speech-adapter=A', '--chat-adapter=B');
    expect(own).toEqual({ message: expect.stringMatching(/it needs 2\.6 GiB \(Qwen3-4B-Instruct-2507 2\.6 GiB\)/), asked: ['B'] });
    const split = await problemOn(3 * GIB, '--preset=medium', '--adapters=A,B', '--adapter=C');
    expect(split).toEqual({ message: undefined, asked: ['A', 'B', 'C'] });
  });

  test('without an adapter that is what is said', async () => {
    const problem = await presetProblem(config('--preset=small'), { env }, async () => ({ problem: 'no adapter' }));
    expect(problem).toEqual({ message: "no adapter; 'npx parley adapters' lists what there is.", isWithoutAdapter: true });
  });

  test('a name that no adapter has is said as such', async () => {
    const { message } = (await presetProblem(config('--preset=small', '--adapter=nope'), { env }))!;
    expect(message).toMatch(/^no WebGPU adapter.*; 'npx parley adapters' lists what there is\.$/);
  });
});

test('a model that the table knows by its name is sampled as it recommends, wherever it comes from', async () => {
  const known = join(home, 'SmolLM2-135M-Instruct');
  mkdirSync(known);
  const { engine } = await resolveModels(config(`--chat-model=${known}`), { env });
  expect(engine.chat).toEqual({ path: known, id: 'SmolLM2-135M-Instruct', sampling: { temperature: 0.2, top_p: 0.9 } });
  expect((await resolveModels(config(), { env })).engine.chat).not.toHaveProperty('sampling');
});
