/** What clients ask: nothing in common, one system prompt for all, or conversations that grow. */
import type { ChatMessage } from '../../../engine/api.ts';
import type { Script } from './load.ts';

export interface Scenario {
  readonly name: string;
  readonly script: Script;
}

const TOPICS = ['a fox', 'the sea', 'a red ball', 'rain', 'a king', 'bread', 'a loud noise', 'school'];
const SYSTEM = `You are a friendly teller of stories. ${'Use simple words that a small child knows, and be kind to everyone in the story. '.repeat(16)}`;

const question = (client: number, turn: number): string =>
  `Tell me a short story about ${TOPICS[(client + turn) % TOPICS.length]} and ${client} friends on day ${turn}.`;
const user = (content: string): ChatMessage => ({ role: 'user', content });

/** The number comes first, so that no prompt begins as another (beyond what the template writes). */
const noSharing: Script = (client, turn) => [
  user(`${1000 * turn + client}. ${'Please read this with care. '.repeat(12)}${question(client, turn)}`),
];
const sharedSystem: Script = (client, turn) => [{ role: 'system', content: SYSTEM }, user(question(client, turn))];
const multiTurn: Script = (client, turn, history) => [
  ...history,
  user(`${turn === 0 ? `I am number ${client}. ` : ''}${question(client, turn)}`),
];

export const SCENARIOS: readonly Scenario[] = [
  { name: 'no sharing', script: noSharing },
  { name: 'system prompt', script: sharedSystem },
  { name: 'multi-turn', script: multiTurn },
];
