/** The programs of examples/ that ask a server do what they say. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { parseWav } from '../../engine/audio/wav.ts';
import { startListeners } from '../support/listeners.ts';
import type { Started } from '../support/listeners.ts';

const EXAMPLES = fileURLToPath(new URL('../../examples', import.meta.url));

/** Runs an example against these listeners; returns what it prints, rejects when it fails. */
async function runExample(
  { chat, speech, transcription }: Pick<Started, 'chat' | 'speech' | 'transcription'>,
  name: string,
  ...args: string[]
): Promise<string> {
  const urls = { CHAT_URL: `${chat}/v1`, SPEECH_URL: `${speech}/v1`, TRANSCRIPTION_URL: `${transcription}/v1` };
  const env = { ...process.env, ...urls, PARLEY_API_KEY: 'k' };
  return (await promisify(execFile)(process.execPath, [join(EXAMPLES, name), ...args], { env })).stdout;
}

test('chat-stream prints the answer, and fails with the message of an error', async () => {
  const started = await startListeners({ words: ['Hello', ' there'] }, { apiKey: 'k' });
  expect(await runExample(started, 'chat-stream.mjs', 'Hi?')).toBe('Hello there\n');
  expect(started.engine.chats[0]?.messages[0]?.content).toBe('Hi?');
  const other = await startListeners({}, { apiKey: 'another' });
  await expect(runExample(other, 'chat-stream.mjs')).rejects.toThrow(/valid API key/);
  const broken = await startListeners({ words: ['a', 'b', 'c'], failAfter: 2, failWith: new Error('x') }, { apiKey: 'k' });
  await expect(runExample(broken, 'chat-stream.mjs')).rejects.toThrow(/internal error/);
});

test.each(['chat-stream.mjs', 'json-answer.mjs', 'speak-and-hear.mjs'])('%s says in a line that there is no server', async (name) => {
  const gone = createServer();
  await new Promise<void>((resolve) => gone.listen(0, '127.0.0.1', resolve));
  const address = `http://127.0.0.1:${(gone.address() as AddressInfo).port}`;
  await new Promise((resolve) => gone.close(resolve));
  const failed = runExample({ chat: address, speech: address, transcription: address }, name);
  await expect(failed).rejects.toMatchObject({ code: 1, stderr: `no server answers at ${address}/v1: npm start\n` });
});

test('json-answer sends its schema and reads the answer', async () => {
  const started = await startListeners({ words: ['{"name": "Ann"', ', "age": 5}'] }, { apiKey: 'k' });
  expect(await runExample(started, 'json-answer.mjs')).toBe('Ann is 5 years old\n');
  expect(started.engine.chats[0]?.responseFormat).toMatchObject({ type: 'json_schema', schema: { required: ['name', 'age'] } });
});

test('speak-and-hear writes a WAV file and sends it back', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'parley-example-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const started = await startListeners({}, { apiKey: 'k' });
  const file = join(folder, 'said.wav');
  const printed = await runExample(started, 'speak-and-hear.mjs', 'Good morning.', file);
  const wav = readFileSync(file);
  expect(parseWav(wav).frames).toBeGreaterThan(0);
  expect(printed).toMatch(new RegExp(`: ${wav.length} bytes\nheard: \\S`));
  expect(started.engine.speeches[0]).toMatchObject({ text: 'Good morning.', voice: 'aus-male-3', seed: 7 });
});
