// The library in Node: an answer as it is written, spoken and heard. `node node.mjs "What is the capital of France?"`
import { Parley } from 'parley';

const parley = await Parley.load({
  chat: 'models/parley-chat',
  speech: 'models/parley-speech',
  transcription: 'models/parley-transcribe',
});
const question = process.argv[2] ?? 'What is the capital of France?';
const chunks = await parley.chat.completions.create({ messages: [{ role: 'user', content: question }], stream: true });
let answer = '';
for await (const { choices } of chunks) {
  const text = choices[0]?.delta.content ?? '';
  process.stdout.write(text);
  answer += text;
}
const speech = await parley.audio.speech.create({ input: answer, voice: 'nona' });
const heard = await parley.audio.transcriptions.create({ file: await speech.blob() });
console.log(`\nheard: ${heard.text}`);
await parley.close();
