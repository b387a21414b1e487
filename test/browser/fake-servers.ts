/** The three listeners of a server whose engine computes nothing, with the page on the first, and a browser for it. */
import type { Browser, BrowserContext, BrowserContextOptions } from 'playwright-core';
import type { ModelTask } from '../../engine/model-types.ts';
import { CodecPool } from '../../server/audio/pool.ts';
import { createChatApp } from '../../server/chat/routes.ts';
import { listen } from '../../server/listener/listen.ts';
import { createSpeechApp } from '../../server/speech/routes.ts';
import { createTranscriptionApp } from '../../server/transcription/routes.ts';
import type { FakeEngine } from '../support/fake-engine.ts';
import { buildPlayground, launchChromium } from './chromium.ts';

export interface FakeServers {
  /** Of the page. */
  readonly url: string;
  /** Base URLs of the three, ending in /v1. */
  readonly addresses: Readonly<Record<ModelTask, string>>;
  /** The folder of the built page. */
  readonly staticFolder: string;
  readonly codec: CodecPool;
  readonly browser: Browser;
  /** A context whose page has all tasks computed there. */
  context(options?: BrowserContextOptions): Promise<BrowserContext>;
  close(): Promise<void>;
}

/** Starts them; `name` is that of the test, for what it builds, and the options are the browser's, whose pages find no adapter unless they ask for one. */
export async function startFakeServers(
  name: string,
  engine: FakeEngine,
  { webgpu = false, args = [] }: Parameters<typeof launchChromium>[0] = {},
): Promise<FakeServers> {
  const host = { host: '127.0.0.1', port: 0 };
  const codec = new CodecPool();
  const staticFolder = buildPlayground(name);
  const listeners = [
    await listen(createChatApp({ engine, modelId: 'parley-chat', staticFolder }), host),
    await listen(createSpeechApp({ engine, modelId: 'tts-1', codec }), host),
    await listen(createTranscriptionApp({ engine, modelId: 'parley-transcribe', codec }), host),
  ];
  const [chat, speech, transcription] = listeners.map(({ port }) => `http://127.0.0.1:${port}/v1`) as [string, string, string];
  const addresses = { chat, speech, transcription };
  const where = { chat: 'server', speech: 'server', transcription: 'server' };
  const settings = JSON.stringify({ where, servers: addresses });
  const browser = await launchChromium({ webgpu, args });
  return {
    url: new URL('/', chat).href,
    ...{ addresses, staticFolder, codec, browser },
    async context(options) {
      const context = await browser.newContext(options);
      await context.addInitScript((text) => localStorage.setItem('parley.settings.1', text), settings);
      return context;
    },
    async close() {
      await browser.close();
      for (const listener of listeners) listener.destroy();
      await codec.close();
    },
  };
}
