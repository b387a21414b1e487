/** Prints an answer as it is written: node examples/chat-stream.mjs "Tell me a short story about a fox." */
const base = process.env.CHAT_URL ?? 'http://localhost:3000/v1';
const headers = { 'content-type': 'application/json', authorization: `Bearer ${process.env.PARLEY_API_KEY ?? 'none'}` };
const question = process.argv[2] ?? 'Tell me a short story about a fox.';

const body = JSON.stringify({ model: 'parley-chat', messages: [{ role: 'user', content: question }], stream: true });
const response = await fetch(`${base}/chat/completions`, { method: 'POST', headers, body });
if (!response.ok) throw new Error((await response.json()).error.message);

let rest = '';
for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
  // Events are separated by an empty line; the last one may not be whole yet.
  const events = (rest + text).split('\n\n');
  rest = events.pop();
  for (const event of events) {
    if (!event.startsWith('data: ') || event === 'data: [DONE]') continue;
    const { choices, error } = JSON.parse(event.slice('data: '.length));
    if (error) throw new Error(error.message);
    process.stdout.write(choices[0]?.delta.content ?? '');
  }
}
process.stdout.write('\n');
