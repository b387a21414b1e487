/** The token that a page has for a hub: to whom it is said, and how long it is kept. Without a browser. */
import { expect, test } from 'vitest';
import { authorization } from '../../web/src/models/hub-authorization.ts';
import { HubToken } from '../../web/src/models/hub-token.ts';

const HUB = 'https://hub.example.org';

function storage(): Storage & { readonly items: Map<string, string> } {
  const items = new Map<string, string>();
  return {
    items,
    getItem: (key: string) => items.get(key) ?? null,
    setItem: (key: string, text: string) => items.set(key, text),
    removeItem: (key: string) => items.delete(key),
  } as unknown as Storage & { readonly items: Map<string, string> };
}

test.each([
  [`${HUB}/owner/name/resolve/main/a.gguf`, true],
  [`${HUB}:8443/owner/name`, false],
  ['http://hub.example.org/owner/name', false],
  ['https://hub.example.org.evil.net/a', false],
  ['https://cdn.example.org/a', false],
  ['https://hub.example.org@evil.net/a', false],
  ['models/a.safetensors', false],
])('%s is sent the token: %s', (url, isSent) => {
  expect(authorization({ origin: HUB, token: 't' }, url)).toEqual(isSent ? { authorization: 'Bearer t' } : {});
  expect(authorization(undefined, url)).toEqual({});
});

test('a token belongs to the hub it was given for', () => {
  const token = new HubToken(undefined);
  token.give(`${HUB}/mirror`, 'hf_a');
  expect(token.access(HUB)).toEqual({ origin: HUB, token: 'hf_a' });
  expect(token.access('https://other.example.org')).toBeUndefined();
  expect(token.access('no address')).toBeUndefined();
  token.give('https://other.example.org', 'hf_b');
  expect(token.access(HUB)).toBeUndefined();
  token.give(HUB, '');
  expect(token.access('https://other.example.org')).toBeUndefined();
});

test('a token that could be read on the way, or is none, is refused', () => {
  const token = new HubToken(undefined);
  expect(() => token.give('http://hub.example.org', 'hf_a')).toThrow(
    /^http:\/\/hub.example.org would be sent the token without encryption/,
  );
  expect(() => token.give('hub', 'hf_a')).toThrow('hub is no address of a hub');
  expect(() => token.give(HUB, 'hf a')).toThrow('this is no token: it has spaces');
  expect(token.access(HUB)).toBeUndefined();
  token.give('http://127.0.0.1:8080', 'hf_a');
  expect(token.access('http://127.0.0.1:8080')).toBeDefined();
});

test('a token outlives the page only when it is kept, and goes when it is no longer', () => {
  const kept = storage();
  const token = new HubToken(kept);
  token.give(HUB, 'hf_a');
  expect(kept.items.size).toBe(0);
  token.keep(true);
  const later = new HubToken(kept);
  expect([later.isKept, later.access(HUB)?.token]).toEqual([true, 'hf_a']);
  later.keep(false);
  expect([kept.items.size, later.access(HUB)?.token]).toEqual([0, 'hf_a']);
  later.keep(true);
  later.give(HUB, '');
  expect(kept.items.size).toBe(0);
  // What somebody else wrote there is no token.
  for (const text of ['{', 'null', '{"origin":"https://hub.example.org"}', '{"origin":"https://hub.example.org","token":"a b"}']) {
    kept.setItem('parley.hub-token.1', text);
    expect(new HubToken(kept).access(HUB)).toBeUndefined();
  }
});
