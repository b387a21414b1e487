/** Prints an answer as it is written: node examples/chat-stream.mjs "Tell me a short story about a fox." */
const base = process.env.CHAT_URL ?? 'http://localhost:3000/v1';
const headers = { 'content-type': 'application/json', authorization: `Bearer ${process.env.PARLEY_API_KEY ?? 'none'}` };
const model = process.env.CHAT_MODEL ?? 'parley-chat';
const question = process.argv[2] ?? 'Tell me a short story about a fox.';

const body = JSON.stringify({ model, messages: [{ role: 'user', content: question }], stream: true });
const response = await fetch(`${base}/chat/completions`, { method: 'POST', headers, body }).catch(() =>
  fail(`no server answers at ${base}: npm start`),
);
if (!response.ok) fail((await response.json()).error.message);

let rest = '';
for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
  // Events are separated by an empty line; the last one may not be whole yet.
  const events = (rest + text).split('\n\n');
  rest = events.pop();
  for (const event of events) {
    if (!event.startsWith('data: ') || event === 'data: [DONE]') continue;
    const { choices, error } = JSON.parse(event.slice('data: '.length));
    if (error) fail(error.message);
    process.stdout.write(choices[0]?.delta.content ?? '');
  }
}
process.stdout.write('\n');

function fail(message) {
  console.error(message);
  process.exit(1);
}
