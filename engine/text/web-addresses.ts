/** Writes out web and mail addresses, whose marks are read and must not end sentences. */

/** The names of the marks of addresses, and the top-level domains by which a bare address is recognised. */
export interface AddressWords {
  readonly marks: Readonly<Record<string, string>>;
  readonly domains: string;
}

const ENGLISH: AddressWords = {
  marks: {
    '.': 'dot', '/': 'slash', '@': 'at', '?': 'question mark', '=': 'equals', '&': 'and', ':': 'colon', '_': 'underscore', '-': 'dash',
  },
  domains: '',
}; // prettier-ignore

/** Names the marks in addresses: example.com/a becomes "example dot com slash a". */
export function withoutAddresses(text: string, { marks, domains }: AddressWords = ENGLISH): string {
  const spoken = (address: string): string =>
    address
      .replace(/^https?:\/\//i, '')
      .replace(/\/$/, '')
      .replace(/[./@?=&:_-]/g, (mark) => ` ${marks[mark]!} `)
      .replace(/[#%+~]/g, ' ');
  const address = new RegExp(
    `(?:https?:\\/\\/|www\\.)[^\\s,;()"]*[\\w/]|(?<![\\w.-])[\\w.-]+@[\\w-]+(?:\\.[\\w-]+)+|\\b[\\w-]{1,63}(?:\\.[\\w-]{1,63}){0,9}\\.(?:com|org|net|io|dev|gov|edu|app${domains && `|${domains}`})\\b(?:\\/[^\\s,;()"]*[\\w/])?`,
    'gi',
  );
  return text.replace(address, spoken);
}
