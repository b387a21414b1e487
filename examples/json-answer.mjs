/** Asks for an answer in the shape of a JSON Schema, which the server enforces token by token: node examples/json-answer.mjs */
const base = process.env.CHAT_URL ?? 'http://localhost:3000/v1';
const headers = { 'content-type': 'application/json', authorization: `Bearer ${process.env.PARLEY_API_KEY ?? 'none'}` };

const schema = {
  type: 'object',
  properties: { name: { type: 'string', maxLength: 40 }, age: { type: 'integer', minimum: 0, maximum: 130 } },
  required: ['name', 'age'],
  additionalProperties: false,
};
const body = JSON.stringify({
  model: process.env.CHAT_MODEL ?? 'parley-chat',
  messages: [{ role: 'user', content: 'Give me a person as JSON with a name and an age.' }],
  response_format: { type: 'json_schema', json_schema: { name: 'person', schema } },
});
const response = await fetch(`${base}/chat/completions`, { method: 'POST', headers, body }).catch(() =>
  fail(`no server answers at ${base}: npm start`),
);
const answer = await response.json();
if (!response.ok) fail(answer.error.message);

const { name, age } = JSON.parse(answer.choices[0].message.content);
console.log(`${name} is ${age} years old`);

function fail(message) {
  console.error(message);
  process.exit(1);
}
