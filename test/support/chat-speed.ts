/** What a token of the bundled chat model takes on a device, in Node, in Deno and in a page. */
import { resolveConfig } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { ChatEngine } from '../../engine/tasks/chat-engine.ts';

/** The middle one. */
export const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!;

/** `models` is the folder or URL of the bundled models. */
export async function loadChat(device: Device, models: string): Promise<ChatEngine> {
  const source = { path: `${models}/parley-chat`, id: 'chat' };
  const config = resolveConfig({ chat: source, maxRunningRequests: 2, contextLength: 1024, deviceMemory: 2 ** 30 });
  return ChatEngine.load(device, device.platform, source, config);
}

/** ms per token of one answer, from its first token on. */
export async function tokenTime(engine: ChatEngine): Promise<number> {
  const messages = [{ role: 'user', content: 'Tell me a short story about a fox.' }] as const;
  let [first, tokens] = [0, 0];
  for await (const event of engine.chat({ messages, sampling: { temperature: 0 }, maxTokens: 48 }, new AbortController().signal)) {
    if (event.type === 'delta') first ||= performance.now();
    if (event.type === 'finish') tokens = event.completionTokens;
  }
  return (performance.now() - first) / (tokens - 1);
}

/** The middle one of as many answers. */
export async function tokenTimes(engine: ChatEngine, rounds: number): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) times.push(await tokenTime(engine));
  return median(times);
}
