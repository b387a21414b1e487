/** GET /openapi.json says what the listeners do: its paths are the apps' routes, its schemas take what the README sends. */
import { readFileSync } from 'node:fs';
import type { Express } from 'express';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createChatApp } from '../../server/chat.ts';
import { CodecPool } from '../../server/codec-pool.ts';
import { createSpeechApp } from '../../server/speech.ts';
import { createTranscriptionApp } from '../../server/transcription.ts';
import { FakeEngine } from '../support/fake-engine.ts';
import { send, startListeners } from '../support/listeners.ts';

interface Document {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly security?: unknown;
}

interface Operation {
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: z.core.JSONSchema.BaseSchema }>> };
}

interface Layer {
  readonly route?: { readonly path: string; readonly methods: Readonly<Record<string, boolean>> };
  readonly handle: { readonly stack?: readonly Layer[] };
}

/** `get /health`, `post /v1/completions`, ...; routers inside the app are the one that is mounted under /v1 and at the root. */
function routesOf(app: Express): string[] {
  const walk = (stack: readonly Layer[], prefix: string): string[] =>
    stack.flatMap(({ route, handle }) => {
      if (!route) return walk(handle.stack ?? [], '/v1');
      // What answers every method is the 405 behind a route.
      if (route.methods['delete'] === true) return [];
      const path = (prefix + route.path).replace(/\*(\w+)/, '{$1}');
      return ['get', 'post'].filter((method) => route.methods[method] === true).map((method) => `${method} ${path}`);
    });
  return [...new Set(walk((app.router as unknown as { stack: Layer[] }).stack, ''))].sort();
}

async function documentOf(base: string): Promise<Document> {
  const { status, text } = await send(`${base}/openapi.json`);
  expect(status).toBe(200);
  return JSON.parse(text) as Document;
}

const schemaOf = ({ paths }: Document, path: string, type = 'application/json') =>
  z.fromJSONSchema(paths[path]!['post']!.requestBody!.content[type]!.schema as z.core.JSONSchema.JSONSchema);

describe('/openapi.json', () => {
  test('has the routes of each listener and no others', async () => {
    const started = await startListeners();
    const engine = new FakeEngine();
    const codec = new CodecPool(1);
    const apps = {
      chat: createChatApp({ engine, modelId: 'm' }),
      speech: createSpeechApp({ engine, modelId: 'm', codec }),
      transcription: createTranscriptionApp({ engine, modelId: 'm', codec }),
    };
    await codec.close();
    for (const task of ['chat', 'speech', 'transcription'] as const) {
      const { openapi, paths } = await documentOf(started[task]);
      expect(openapi).toBe('3.1.0');
      const described = Object.entries(paths).flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method} ${path}`));
      expect(described.sort(), task).toEqual(routesOf(apps[task]));
      expect(described.length, task).toBeGreaterThan(10);
    }
  });

  test('takes the requests of the README, and not broken ones', async () => {
    const { chat, speech } = await startListeners();
    const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
    const examples = [...readme.matchAll(/curl http:\/\/localhost:\d+(\/v1\/\S+)[^']*'Content-Type: application\/json'[^{]*-d '([^']+)'/g)];
    expect(examples.map(([, path]) => path)).toEqual(['/v1/chat/completions', '/v1/audio/speech']);
    for (const [, path, body] of examples) {
      const schema = schemaOf(await documentOf(path!.startsWith('/v1/audio') ? speech : chat), path!);
      const example = JSON.parse(body!) as Record<string, unknown>;
      expect(schema.safeParse(example).error).toBeUndefined();
      for (const field of ['messages', 'input'].filter((name) => name in example)) {
        expect(schema.safeParse({ ...example, [field]: undefined }).success, `${path} without ${field}`).toBe(false);
        expect(schema.safeParse({ ...example, [field]: 5 }).success, `${path} with a number as ${field}`).toBe(false);
      }
    }
  });

  test('says of each field what the server checks', async () => {
    const { chat, transcription } = await startListeners();
    const document = await documentOf(chat);
    const completion = schemaOf(document, '/v1/completions');
    for (const prompt of ['a', ['a'], [1, 2], [[1]]]) expect(completion.safeParse({ prompt }).success).toBe(true);
    for (const bad of [{}, { prompt: 'a', logprobs: 6 }, { prompt: 'a', temperature: 3 }])
      expect(completion.safeParse(bad).success).toBe(false);
    expect(schemaOf(document, '/v1/tokenize').safeParse({ prompt: 5 }).success).toBe(false);
    const form = schemaOf(await documentOf(transcription), '/v1/audio/transcriptions', 'multipart/form-data');
    expect(form.safeParse({ model: 'whisper-1' }).success).toBe(false);
  });

  test('needs no key, and says where one is needed', async () => {
    const { chat } = await startListeners({}, { apiKey: 'k' });
    expect((await documentOf(chat)).security).toEqual([{ key: [] }]);
  });
});
