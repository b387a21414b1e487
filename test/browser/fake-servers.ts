/** The three listeners of a server whose engine computes nothing, with the page on the first, and a browser for it. */
import type { BrowserContext } from 'playwright-core';
import { CodecPool } from '../../server/audio/pool.ts';
import { createChatApp } from '../../server/chat/routes.ts';
import { listen } from '../../server/http/listen.ts';
import { createSpeechApp } from '../../server/speech/routes.ts';
import { createTranscriptionApp } from '../../server/transcription/routes.ts';
import type { FakeEngine } from '../support/fake-engine.ts';
import { buildPlayground, launchChromium } from './chromium.ts';

export interface FakeServers {
  /** Of the page. */
  readonly url: string;
  /** A context whose page has all tasks computed there. */
  context(): Promise<BrowserContext>;
  close(): Promise<void>;
}

/** Starts them; `name` is that of the test, for what it builds, and `args` are the browser's. */
export async function startFakeServers(name: string, engine: FakeEngine, args: string[] = []): Promise<FakeServers> {
  const host = { host: '127.0.0.1', port: 0 };
  const codec = new CodecPool();
  const staticFolder = buildPlayground(name);
  const listeners = [
    await listen(createChatApp({ engine, modelId: 'parley-chat', staticFolder }), host),
    await listen(createSpeechApp({ engine, modelId: 'tts-1', codec }), host),
    await listen(createTranscriptionApp({ engine, modelId: 'parley-transcribe', codec }), host),
  ];
  const [chat, speech, transcription] = listeners.map(({ port }) => `http://127.0.0.1:${port}/v1`);
  const where = { chat: 'server', speech: 'server', transcription: 'server' };
  const settings = JSON.stringify({ where, servers: { chat, speech, transcription } });
  const browser = await launchChromium({ webgpu: false, args });
  return {
    url: `http://127.0.0.1:${listeners[0]!.port}/`,
    async context() {
      const context = await browser.newContext();
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
