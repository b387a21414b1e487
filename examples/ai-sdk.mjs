// Parley's models for the Vercel AI SDK 7: `npm install ai@7`, then `node ai-sdk.mjs "What is the capital of France?"`
import { generateText, streamText } from 'ai';
import { Parley } from 'parley';
import { createParley } from 'parley/ai-sdk';

const parley = await Parley.load({ chat: 'models/parley-chat' });
const provider = createParley(parley);
const prompt = process.argv[2] ?? 'What is the capital of France?';
const { text, usage } = await generateText({ model: provider(), prompt });
console.log(`${text} (${usage.totalTokens} tokens)`);
for await (const piece of streamText({ model: provider(), prompt }).textStream) process.stdout.write(piece);
console.log();
await parley.close();
