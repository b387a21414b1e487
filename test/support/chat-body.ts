/** What the tests of the chat listener send, and how they read its streams. */
export const CHAT_PATH = '/v1/chat/completions';
export const GOOD_CHAT = { model: 'parley-chat', messages: [{ role: 'user', content: 'Hi' }] };

export interface Chunk {
  readonly id: string;
  readonly created: number;
  readonly system_fingerprint: string;
  readonly choices: readonly { readonly index: number; readonly delta: unknown; readonly logprobs: unknown }[];
  readonly usage: { readonly completion_tokens: number } | null;
}

/** The chunks of a streamed answer. */
export const framesOf = (text: string): Chunk[] =>
  text
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: {'))
    .map((frame) => JSON.parse(frame.slice(6)) as Chunk);
