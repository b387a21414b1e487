/** Speaks a text into a WAV file and writes down what the file says: node examples/speak-and-hear.mjs "The quick brown fox." fox.wav */
import { writeFile } from 'node:fs/promises';

const speech = process.env.SPEECH_URL ?? 'http://localhost:3001/v1';
const transcription = process.env.TRANSCRIPTION_URL ?? 'http://localhost:3002/v1';
const authorization = `Bearer ${process.env.PARLEY_API_KEY ?? 'none'}`;
const [input = 'The quick brown fox jumps over the lazy dog.', file = 'speech.wav'] = process.argv.slice(2);

const spoken = await fetch(`${speech}/audio/speech`, {
  method: 'POST',
  headers: { 'content-type': 'application/json', authorization },
  body: JSON.stringify({ model: 'tts-1', input, voice: 'aus-male-3', response_format: 'wav', seed: 7 }),
}).catch(() => fail(`no server answers at ${speech}: npm start`));
if (!spoken.ok) fail((await spoken.json()).error.message);
const wav = await spoken.blob();
await writeFile(file, Buffer.from(await wav.arrayBuffer()));
console.log(`${file}: ${wav.size} bytes`);

const form = new FormData();
form.set('file', wav, 'speech.wav');
form.set('model', 'whisper-1');
const heard = await fetch(`${transcription}/audio/transcriptions`, { method: 'POST', headers: { authorization }, body: form }).catch(() =>
  fail(`no server answers at ${transcription}: npm start`),
);
const answer = await heard.json();
if (!heard.ok) fail(answer.error.message);
console.log(`heard: ${answer.text}`);

function fail(message) {
  console.error(message);
  process.exit(1);
}
