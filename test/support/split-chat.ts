/** Chat engines split over devices, and what they answer. */
import type { ChatEvent, ChatRequest } from '../../engine/api.ts';
import { resolveConfig, splitOf } from '../../engine/config.ts';
import type { EngineConfig } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { ChatEngine } from '../../engine/tasks/chat-engine.ts';

/** A small engine: what tests ask for takes little memory and few plans. */
const SMALL: Partial<EngineConfig> = { maxRunningRequests: 4, contextLength: 256, chunkedPrefillSize: 48, dtype: 'f32' };

export interface Answer {
  readonly text: string;
  readonly logprobs: readonly {
    readonly token: string;
    readonly logprob: number;
    readonly top: readonly { readonly token: string; readonly logprob: number }[];
  }[];
  readonly cachedTokens: number;
  readonly finish: string | undefined;
}

/** Loads a checkpoint folder, split as `config` says, for the time of `use`. */
export async function withChat<T>(
  device: Device,
  folder: string,
  config: Partial<EngineConfig>,
  use: (engine: ChatEngine) => Promise<T>,
): Promise<T> {
  const resolved = resolveConfig({ ...SMALL, ...config });
  const engine = await ChatEngine.load(device, device.platform, { path: folder }, resolved);
  try {
    const { tpSize, ppSize } = splitOf(resolved);
    const ranks = tpSize * ppSize;
    const busy = engine.deviceStats.filter(({ bufferBytes }) => bufferBytes > 0).length;
    if (busy !== (ranks > 1 ? ranks : 0)) throw new Error(`${busy} devices hold something, expected ${ranks}`);
    return await use(engine);
  } finally {
    await engine.close();
  }
}

export async function answer(engine: ChatEngine, request: ChatRequest): Promise<Answer> {
  const events: ChatEvent[] = [];
  for await (const event of engine.chat(request, new AbortController().signal)) events.push(event);
  const deltas = events.filter((event) => event.type === 'delta');
  const finish = events.find((event) => event.type === 'finish');
  return {
    text: deltas.map(({ text }) => text).join(''),
    logprobs: deltas.flatMap(({ logprobs }) => logprobs ?? []),
    cachedTokens: finish?.cachedTokens ?? 0,
    finish: finish?.reason,
  };
}

/** `maxTokens` greedy tokens after a message. */
export function greedy(content: string, maxTokens = 24): ChatRequest {
  return { messages: [{ role: 'user', content }], sampling: { temperature: 0 }, maxTokens, ignoreEos: true };
}

/** The same after a prompt of tokens, for checkpoints without a template. */
export function greedyAfter(prompt: readonly number[], maxTokens = 24): ChatRequest {
  return { messages: [], prompt, sampling: { temperature: 0 }, maxTokens, ignoreEos: true };
}
