/** One model over two really different adapters: the tokens of the first alone, and layers dealt by speed. */
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { EngineConfig } from '../../engine/config.ts';
import { Device } from '../../engine/gpu/device.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { LAVAPIPE, SWIFTSHADER } from '../support/drivers.ts';
import { answer, greedy, withChat } from '../support/split-chat.ts';
import type { Answer } from '../support/split-chat.ts';

const BUNDLED = fileURLToPath(new URL('../../models/parley-chat', import.meta.url));
const ADAPTERS = ['llvmpipe', 'swiftshader'];

describe.skipIf(!LAVAPIPE || !SWIFTSHADER)('lavapipe and SwiftShader (skipped where one is missing)', () => {
  const before = process.env['VK_DRIVER_FILES'];
  const lines: string[] = [];
  let device: Device;
  let expected: Answer[];
  const requests = [
    greedy('What is the capital of France?'),
    { ...greedy(`${'The sea was calm and the sky was blue that day. '.repeat(6)} What colour was the sky?`, 12), logprobs: 2 },
    { ...greedy('Write a poem.', 12), sampling: { temperature: 0.9, seed: 8, topP: 0.8, topK: 40 } },
    { ...greedy('Where is the Eiffel tower?', 32), ignoreEos: false, responseFormat: { type: 'json_object' as const } },
  ];
  const answers = (config: Partial<EngineConfig>): Promise<Answer[]> =>
    withChat(device, BUNDLED, config, (engine) => Promise.all(requests.map((request) => answer(engine, request))));

  beforeAll(async () => {
    process.env['VK_DRIVER_FILES'] = `${LAVAPIPE}:${SWIFTSHADER}`;
    device = await Device.create(createNodePlatform({ log: (line) => lines.push(line) }), { name: 'llvmpipe' });
    expected = await answers({});
  });
  afterAll(() => {
    device.close();
    if (before === undefined) delete process.env['VK_DRIVER_FILES'];
    else process.env['VK_DRIVER_FILES'] = before;
  });

  test.each([
    { tpSize: 2, ppSize: 1, layers: undefined },
    { tpSize: 1, ppSize: 2, layers: [4, 2] },
    { tpSize: 1, ppSize: 2, layers: undefined },
  ])('split $tpSize x $ppSize, layers $layers', async ({ tpSize, ppSize, layers }) => {
    lines.length = 0;
    const actual = await answers({ tpSize, ppSize, ppSplit: layers ?? 'auto', adapters: ADAPTERS });
    expect(actual.map(({ text }) => text)).toEqual(expected.map(({ text }) => text));
    expect(lines.some((line) => /rank 0 on llvmpipe/.test(line)) && lines.some((line) => /rank 1 on SwiftShader/.test(line))).toBe(true);
    actual[1]!.logprobs.forEach(({ token, logprob }, i) => {
      expect(token).toBe(expected[1]!.logprobs[i]!.token);
      expect(logprob).toBeCloseTo(expected[1]!.logprobs[i]!.logprob, 3);
    });
  });
});
