/** Speculative decoding by prompt lookup beside plain decoding: conversations that repeat themselves, and ones that do not. */
import type { ChatMessage } from '../../../engine/api.ts';
import type { ChatEngine } from '../../../engine/tasks/chat-engine.ts';
import { fixed, loadText, printTable } from '../harness.ts';
import { closedLoop, percentile } from './load.ts';
import type { Script } from './load.ts';

const REPEATS = 5;
const MAX_TOKENS = 60;
const QUESTIONS = [
  'Tell me a short story about a fox, and then another one about a bear and his friends.',
  'What is the capital of France?',
  'What is a lamp?',
  'Who are you?',
];

interface Rate {
  /** Tokens a second. */
  readonly rate: number;
  readonly texts: readonly string[];
}

/** Each client asks its question with `before` in front of it. */
async function measure(engine: ChatEngine, clients: number, before: (question: string) => readonly ChatMessage[]): Promise<Rate> {
  engine.flushCache();
  const script: Script = (client) => {
    const content = QUESTIONS[client % QUESTIONS.length]!;
    return [...before(content), { role: 'user', content }];
  };
  const { samples, seconds } = await closedLoop(engine, script, {
    clients,
    turns: 1,
    maxTokens: MAX_TOKENS,
    limitMs: 60_000,
    ignoreEos: false,
  });
  const texts = samples.map(({ text }) => text).sort();
  return { rate: samples.reduce((sum, { tokens }) => sum + tokens, 0) / seconds, texts };
}

/** Prints both engines' tokens/s, taken in turn, and how many guesses were right; throws when their answers differ. */
export async function promptLookup(plain: ChatEngine, guessing: ChatEngine): Promise<void> {
  const answers = new Map<string, string>();
  for (const content of QUESTIONS) {
    const script: Script = () => [{ role: 'user', content }];
    const { samples } = await closedLoop(plain, script, { clients: 1, turns: 1, maxTokens: MAX_TOKENS, limitMs: 60_000, ignoreEos: false });
    answers.set(content, samples[0]!.text);
  }
  const again = (content: string): ChatMessage[] => [
    { role: 'user', content },
    { role: 'assistant', content: answers.get(content)! },
  ];
  const rows: string[][] = [];
  for (const [name, before] of [['asked again', again], ['asked once', () => []]] as const) {
    for (const clients of [1, 4, 16]) {
      const [off, on]: [number[], number[]] = [[], []];
      const from = guessing.status();
      for (let repeat = 0; repeat <= REPEATS; repeat++) {
        const [one, other] = [await measure(plain, clients, before), await measure(guessing, clients, before)];
        if (one.texts.join() !== other.texts.join()) throw new Error(`${name}, ${clients} clients: answers differ with prompt lookup`);
        if (repeat > 0) [off, on].forEach((list, i) => list.push([one, other][i]!.rate));
      }
      const { draftedTokens, acceptedTokens } = guessing.status();
      const guesses = `${acceptedTokens - from.acceptedTokens} of ${draftedTokens - from.draftedTokens}`;
      const [before1, after1] = [percentile(off, 0.5), percentile(on, 0.5)];
      rows.push([name, String(clients), fixed(before1, 0), fixed(after1, 0), `${fixed(after1 / before1, 2)}x`, guesses, loadText()]);
    }
  } // prettier-ignore
  printTable(['prompt lookup', 'clients', 'off tokens/s', 'on', 'ratio', 'right guesses', 'load'], rows);
}
