/**
 * Entry of a Deno process: `hub.ts <source> <ranks>` finds a chat model as the server does (hub, cache, folder), loads it over that many ranks, each in a
 * thread, and asks it in free text and within a JSON schema. Prints one line of JSON.
 */
import { argv } from 'node:process';
import { createEngine, resolveConfig } from '../../../engine/index.ts';
import type { ChatRequest } from '../../../engine/index.ts';
import { createDenoPlatform } from '../../../engine/platform/deno.ts';
import { resolveSource } from '../../../sources/node/index.ts';

const { id, path, fetched } = await resolveSource(argv[2]!);
const chat = { id, path };
const engine = await createEngine(
  createDenoPlatform(),
  resolveConfig({ chat, tpSize: Number(argv[3]), contextLength: 1024, maxRunningRequests: 2 }),
);

async function ask(request: Partial<ChatRequest>): Promise<string> {
  const messages = [{ role: 'user', content: 'What is the capital of France?' }] as const;
  let text = '';
  for await (const event of engine.chat(
    { messages, sampling: { temperature: 0 }, maxTokens: 48, ...request },
    AbortSignal.timeout(120_000),
  )) {
    if (event.type === 'delta') text += event.text;
  }
  return text;
}

const answer = await ask({});
const schema = {
  type: 'object',
  properties: { capital: { type: 'string', maxLength: 20 } },
  required: ['capital'],
  additionalProperties: false,
};
const json = await ask({ responseFormat: { type: 'json_schema', schema } });
await engine.close();
console.log(JSON.stringify({ id, path, fetched, answer, json }));
