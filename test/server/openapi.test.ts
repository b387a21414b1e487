/** GET /openapi.json says what the listeners do: its paths are the apps' routes, its schemas take what the README sends. */
import { readFileSync } from 'node:fs';
import type { Express } from 'express';
import Ajv from 'ajv/dist/2020.js';
import type { AnySchema } from 'ajv';
import { describe, expect, test } from 'vitest';
import { createChatApp } from '../../server/chat/routes.ts';
import { CodecPool } from '../../server/audio/pool.ts';
import { createSpeechApp } from '../../server/speech/routes.ts';
import { createTranscriptionApp } from '../../server/transcription/routes.ts';
import { FakeEngine } from '../support/fake-engine.ts';
import { send, startListeners } from '../support/listeners.ts';

interface Document {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly security?: unknown;
}

interface Operation {
  readonly parameters?: readonly object[];
  readonly summary: string;
  readonly tags: readonly string[];
  readonly security?: unknown;
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: AnySchema }>> };
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

/** The paths that the table of docs/api.md gives a listener, those of `all` among them. An empty cell stands for the one above it. */
function tabledPaths(task: string): string[] {
  const page = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8');
  const rows = page.slice(page.indexOf('\n## Routes\n'), page.indexOf('\n## Requests\n')).match(/^\|.*\|$/gm)!;
  let listener = '';
  return rows.slice(2).flatMap((row) => {
    const [, name = '', routes = ''] = row.split('|').map((cell) => cell.trim());
    listener = name || listener;
    return [task, 'all'].includes(listener) ? [...routes.matchAll(/`(?:[A-Z]+ )?(\/[^`]+)`/g)].map(([, path]) => path!) : [];
  });
}

/** Whether the document takes a value as the body of a path. */
const takerOf = ({ paths }: Document, path: string, type = 'application/json'): ((value: unknown) => boolean) =>
  new Ajv({ strict: false }).compile(paths[path]!['post']!.requestBody!.content[type]!.schema);

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
      expect(tabledPaths(task).sort(), `the table of docs/api.md, ${task}`).toEqual(Object.keys(paths).sort());
      const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
      for (const { summary, tags } of operations) expect([summary, ...tags].filter(Boolean).length).toBeGreaterThan(1);
    }
  });

  test('takes the requests of the README, and not broken ones', async () => {
    const { chat, speech } = await startListeners();
    const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
    const examples = [...readme.matchAll(/curl http:\/\/localhost:\d+(\/v1\/\S+)[^']*'Content-Type: application\/json'[^{]*-d '([^']+)'/g)];
    expect(examples.map(([, path]) => path)).toEqual(['/v1/chat/completions', '/v1/audio/speech']);
    for (const [, path, body] of examples) {
      const takes = takerOf(await documentOf(path!.startsWith('/v1/audio') ? speech : chat), path!);
      const example = JSON.parse(body!) as Record<string, unknown>;
      expect(takes(example)).toBe(true);
      for (const field of ['messages', 'input'].filter((name) => name in example)) {
        const { [field]: _, ...without } = example;
        expect(takes(without), `${path} without ${field}`).toBe(false);
        expect(takes({ ...example, [field]: 5 }), `${path} with a number as ${field}`).toBe(false);
      }
    }
  });

  test('says of each field what the server checks', async () => {
    const { chat, transcription } = await startListeners();
    const document = await documentOf(chat);
    const completion = takerOf(document, '/v1/completions');
    const model = 'parley-chat';
    for (const prompt of ['a', ['a'], [1, 2], [[1]]]) expect(completion({ model, prompt })).toBe(true);
    for (const bad of [{ model }, { prompt: 'a' }, { model, prompt: 'a', logprobs: 6 }, { model, prompt: 'a', temperature: 3 }])
      expect(completion(bad)).toBe(false);
    expect(takerOf(document, '/v1/tokenize')({ prompt: 5 })).toBe(false);
    const form = takerOf(await documentOf(transcription), '/v1/audio/transcriptions', 'multipart/form-data');
    expect(form({ file: 'RIFF', model: 'whisper-1', response_format: 'json' })).toBe(true);
    for (const bad of [{ model: 'whisper-1' }, { file: 'RIFF' }, { file: 'RIFF', model: 'whisper-1', response_format: 'opus' }])
      expect(form(bad)).toBe(false);
  });

  test('needs no key, and says where one is needed', async () => {
    const { chat } = await startListeners({}, { apiKey: 'k' });
    const { security, paths } = await documentOf(chat);
    expect(security).toEqual([{ key: [] }]);
    for (const path of ['/health', '/metrics', '/openapi.json']) expect(paths[path]!['get']!.security).toEqual([]);
    for (const path of ['/v1/models', '/get_server_info']) expect(paths[path]!['get']!.security).toBeUndefined();
    const both = await documentOf((await startListeners({}, { apiKey: 'k', adminKey: 'a' })).chat);
    expect(both.paths['/get_server_info']!['get']!.security).toEqual([{ key: [] }, { admin: [] }]);
    expect(both.paths['/v1/flush_cache']!['post']!.security).toEqual([{ admin: [] }]);
    for (const method of ['get', 'post']) {
      const [timeout, ...others] = both.paths['/v1/flush_cache']![method]!.parameters!;
      expect([timeout, others]).toMatchObject([{ name: 'timeout', in: 'query', schema: { type: 'number', minimum: 0, maximum: 600 } }, []]);
    }
    expect(both.paths['/v1/tokenize']!['post']!.security).toBeUndefined();
  });
});
