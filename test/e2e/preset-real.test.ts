/**
 * `--preset small` with the models that the caches hold, as `npm run test:real` fetches them: all three listeners answer, and what is spoken by a voice
 * of the speech interface is heard by the preset's Whisper.
 */
import { expect, onTestFinished, test } from 'vitest';
import { PRESETS, presetModels } from '../../sources/index.ts';
import { findModel } from '../../sources/node/index.ts';
import { postJson, send } from '../support/listeners.ts';
import { spawnAt, whenReady } from '../support/server-process.ts';
import { publishedWeights } from '../support/weights.ts';
import { wordErrorRate } from '../support/word-error-rate.ts';

const MAIN = new URL('../../server/main.ts', import.meta.url);
const ADAPTER = process.env['PARLEY_ADAPTER'];
const TEXT = 'The quick brown fox jumps over the lazy dog.';

const models = presetModels(PRESETS['small']!);
const here = await Promise.all(models.map(({ id }) => findModel(id)));
const lacking = models.filter((_, index) => !here[index]).map(({ id }) => id);
// Someone who has the models in the cache has not asked for minutes of tests.
const absent = publishedWeights('').absent ?? (lacking.length > 0 ? `${lacking.join(', ')} is not in the cache` : undefined);

test.skipIf(absent !== undefined)(
  `the small preset answers on all three ports${absent === undefined ? '' : ` (skipped: ${absent})`}`,
  async () => {
    const argv = ['--preset', 'small', ...(ADAPTER === undefined ? [] : ['--adapter', ADAPTER])];
    const server = spawnAt(MAIN, argv, { HF_HUB_OFFLINE: '1' });
    onTestFinished(() => void server.child.kill('SIGKILL'));
    const { urls, lines } = await whenReady(server);
    expect(lines.find((line) => line.startsWith('chat '))).toMatch(
      /SmolLM2-135M-Instruct \(llama, GGUF Q4_\w+, .*, temperature 0\.2, top_p 0\.9/,
    );
    const question = { role: 'user', content: 'What is the capital of France?' };
    const answer = await postJson(`${urls['chat']}/chat/completions`, {
      model: models[0]!.id,
      messages: [question],
      max_tokens: 32,
      temperature: 0,
    });
    expect((answer.json as unknown as { choices: { message: { content: string } }[] }).choices[0]!.message.content).toContain('Paris');
    const speech = await fetch(`${urls['speech']}/audio/speech`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'tts-1', input: TEXT, voice: 'aus-male-3', response_format: 'wav' }),
    });
    expect(speech.status).toBe(200);
    const form = new FormData();
    form.set('file', await speech.blob(), 'speech.wav');
    form.set('model', 'whisper-1');
    const heard = await fetch(`${urls['transcription']}/audio/transcriptions`, { method: 'POST', body: form });
    expect(wordErrorRate(TEXT, ((await heard.json()) as { text: string }).text)).toBe(0);
    const voices = (await send(`${urls['speech']}/audio/voices`)).json as unknown as { voices: { id: string }[] };
    expect(voices.voices.map(({ id }) => id)).toEqual(expect.arrayContaining(['aus-female-1', 'vulcan', 'alloy', 'af_heart']));
  },
  3_000_000,
);
