/** The engine in a program of your own, without a server or HTTP: npx tsx examples/engine-as-library.ts "What is the capital of France?" */
import { fileURLToPath } from 'node:url';
import { createEngine, resolveConfig } from '../engine/index.ts';
import { createNodePlatform } from '../engine/platform/node.ts';

const content = process.argv[2] ?? 'What is the capital of France?';
const folder = fileURLToPath(new URL('../models/parley-chat', import.meta.url));

const engine = await createEngine(
  createNodePlatform(),
  resolveConfig({ chat: { id: 'parley-chat', path: folder }, maxRunningRequests: 4, contextLength: 1024 }),
);
const request = { messages: [{ role: 'user' as const, content }], sampling: { temperature: 0 }, maxTokens: 100 };
for await (const event of engine.chat(request, AbortSignal.timeout(60_000))) {
  if (event.type === 'delta') process.stdout.write(event.text);
  if (event.type === 'finish') process.stdout.write(`\n(${event.completionTokens} tokens, ended by ${event.reason})\n`);
}
await engine.close();
