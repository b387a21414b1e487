/** What tests of all three listeners at once share. */
import { expect } from 'vitest';
import { CHAT_PATH } from './chat-body.ts';
import type { Started } from './listeners.ts';

/** The route each listener is there for. */
export const ROUTES = { chat: CHAT_PATH, speech: '/v1/audio/speech', transcription: '/v1/audio/transcriptions' } as const;
export const NAMES = Object.keys(ROUTES) as (keyof typeof ROUTES)[];

/** Checks the three one after the other. */
export const eachOf = async (
  started: Started,
  check: (base: string, route: string, name: keyof typeof ROUTES) => Promise<void>,
): Promise<void> => {
  for (const name of NAMES) await check(started[name], ROUTES[name], name);
};

/** The shape every error has: all four keys, code a slug. */
export const errorBody = (code: string, type = 'invalid_request_error') => ({
  error: { message: expect.stringMatching(/./), type, param: null, code },
});
