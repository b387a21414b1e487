/** What both the page and its workers say to a hub: here is no state, so a worker carries no library of the page. */
import type { TokenWords } from '../../../sources/index.ts';

/** A token, and to whom alone it may be said. */
export interface HubAccess {
  readonly origin: string;
  readonly token: string;
}

/** How messages speak of it. */
export const TOKEN_WORDS: TokenWords = { give: "give the hub's token, under Hub and token", place: 'Hub and token' };

/** The header that opens an address; none for anybody but whom the token is for. */
export function authorization(access: HubAccess | undefined, url: string): Readonly<Record<string, string>> {
  return access && originOf(url) === access.origin ? { authorization: `Bearer ${access.token}` } : {};
}

/** Of an address; undefined where it is none. */
export const originOf = (address: string): string | undefined => (URL.canParse(address) ? new URL(address).origin : undefined);
