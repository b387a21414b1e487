/** The bundled chat model, started to see what the self-test and the autotune made of its kernels. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ChatRequest, EngineInfo } from '../../engine/api.ts';
import { resolveConfig } from '../../engine/config.ts';
import type { EngineConfig } from '../../engine/config.ts';
import type { Platform } from '../../engine/platform/platform.ts';
import { createEngine } from '../../engine/tasks/engine.ts';

const FOLDER = join(fileURLToPath(new URL('../..', import.meta.url)), 'models', 'parley-chat');
const REQUEST: ChatRequest = {
  messages: [{ role: 'user', content: 'Tell me a short story about a fox.' }],
  sampling: { temperature: 0 },
  maxTokens: 12,
};

/** Starts it, asks once, and ends it. */
export async function startedChat(
  platform: Platform,
  settings: Partial<EngineConfig> = {},
): Promise<{ readonly info: EngineInfo; readonly answer: string }> {
  const adapter = process.env['PARLEY_ADAPTER'];
  const config = { chat: { path: FOLDER }, maxRunningRequests: 2, contextLength: 128, ...(adapter && { adapter }), ...settings };
  const engine = await createEngine(platform, resolveConfig(config));
  try {
    let answer = '';
    for await (const event of engine.chat(REQUEST, new AbortController().signal)) if (event.type === 'delta') answer += event.text;
    return { info: engine.info(), answer };
  } finally {
    await engine.close();
  }
}
