/** Answers, speaks and writes down what it hears, under Deno: npx deno run --allow-read=. --allow-sys=systemMemoryInfo examples/deno.ts "Tell me a story." */
import { argv } from 'node:process';
import { resample } from '../engine/audio/resample.ts';
import { createEngine, resolveConfig } from '../engine/index.ts';
import { createDenoPlatform } from '../engine/platform/deno.ts';

const model = (id: string) => ({ id, path: `models/${id}` });
const config = { chat: model('parley-chat'), speech: model('parley-speech'), transcription: model('parley-transcribe') };
const engine = await createEngine(createDenoPlatform(), resolveConfig({ ...config, maxRunningRequests: 4, contextLength: 1024 }));
const signal = AbortSignal.timeout(120_000);

const messages = [{ role: 'user' as const, content: argv[2] ?? 'What is the capital of France?' }];
let answer = '';
for await (const event of engine.chat({ messages, sampling: { temperature: 0 }, maxTokens: 100 }, signal)) {
  if (event.type === 'delta') answer += event.text;
}
const samples: number[] = [];
for await (const event of engine.synthesize({ text: answer, voice: 'oni', seed: 7 }, signal)) {
  if (event.type === 'audio') samples.push(...event.samples);
}
for await (const event of engine.transcribe({ samples: resample(Float32Array.from(samples), 24_000, 16_000) }, signal)) {
  if (event.type === 'finish') console.log(`said: ${answer}\nheard: ${event.text.trim()}`);
}
await engine.close();
