/** Authorization for a hub, for the page and its workers. Without state, so that workers need not bundle the signals library. */
import type { TokenWords } from '../../../sources/index.ts';

/** A token, and the only origin that it may be sent to. */
export interface HubAccess {
  readonly origin: string;
  readonly token: string;
}

/** Words for the token in error messages. */
export const TOKEN_WORDS: TokenWords = { give: "give the hub's token, under Hub and token", place: 'Hub and token' };

/** Returns the Authorization header for an address; no header for any origin but the token's. */
export function authorization(access: HubAccess | undefined, url: string): Readonly<Record<string, string>> {
  return access && originOf(url) === access.origin ? { authorization: `Bearer ${access.token}` } : {};
}

/** Returns the origin of an address; undefined if it is not a URL. */
export const originOf = (address: string): string | undefined => (URL.canParse(address) ? new URL(address).origin : undefined);
