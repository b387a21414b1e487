/** Removes HTML from text that was copied from a page or contains it as Markdown may: drops tags, and decodes character references. */

const INLINE = 'a|abbr|b|big|cite|code|del|em|font|i|img|ins|kbd|mark|q|s|samp|small|span|strike|strong|sub|sup|tt|u|var|wbr';
const BLOCK =
  'article|aside|blockquote|center|dd|details|div|dl|dt|figcaption|figure|footer|h[1-6]|header|hr|li|main|nav|ol|p|pre|section|summary|table|tbody|td|tfoot|th|thead|tr|ul';
const ATTRIBUTES = `(?:\\s{1,9}[\\w:-]{1,40}(?:\\s?=\\s?"[^"<>]{0,500}"|\\s?=\\s?'[^'<>]{0,500}'|=[^\\s"'<>]{1,300})|\\s(?:open|hidden)){0,20}\\s{0,9}`;
const INLINE_TAG = new RegExp(`</?(?:${INLINE})${ATTRIBUTES}/?>`, 'gi');
const BLOCK_TAG = new RegExp(`</?(?:${BLOCK})${ATTRIBUTES}/?>`, 'gi');

/** Drops comments and the tags of pages; other words in angle brackets, such as List<String>, stay. */
export function withoutTags(text: string): string {
  if (!text.includes('<')) return text;
  return text
    .replace(/<!--(?:[^<-]|-(?!->)|<(?!!--))*-->/g, ' ')
    .replace(/<sup>([-−]?\d{1,9})<\/sup>/gi, '^$1')
    .replace(/(?<=[\p{L}\d])\s?<br\s?\/?>\s?(?=[\p{L}\d])/giu, ', ')
    .replace(/<br\s?\/?>/gi, ' ')
    .replace(/<\/t[dh]>\s{0,9}(?=<t[dh])/gi, ', ')
    .replace(INLINE_TAG, '')
    .replace(BLOCK_TAG, '\n');
}

/** HTML's named character references, those that pages commonly use. */
const ENTITIES: ReadonlyMap<string, string> = new Map(
  (
    'amp & lt < gt > quot " apos \' ndash – mdash — hellip … lsquo ‘ rsquo ’ sbquo ‚ ldquo “ rdquo ” bdquo „ laquo « raquo » ' +
    'prime ′ Prime ″ bull • middot · copy © reg ® trade ™ deg ° plusmn ± times × divide ÷ minus − frac12 ½ frac14 ¼ frac34 ¾ sup1 ¹ sup2 ² ' +
    'sup3 ³ euro € pound £ yen ¥ cent ¢ sect § para ¶ micro µ le ≤ ge ≥ ne ≠ asymp ≈ infin ∞ radic √ sum ∑ larr ← rarr → permil ‰ ' +
    'iexcl ¡ iquest ¿ szlig ß aelig æ AElig Æ oelig œ OElig Œ oslash ø Oslash Ø aring å Aring Å alpha α beta β gamma γ delta δ Delta Δ ' +
    'epsilon ε theta θ lambda λ mu μ pi π sigma σ phi φ omega ω Omega Ω'
  )
    .split(' ')
    .map((name, i, all) => [name, all[i + 1]!] as const)
    .filter((_, i) => i % 2 === 0)
    .concat([['nbsp', '\u00a0'], ['ensp', ' '], ['emsp', ' '], ['thinsp', '\u2009'], ['shy', ''], ['zwj', ''], ['zwnj', '']]),
); // prettier-ignore
const ACCENTS: ReadonlyMap<string, string> = new Map(Object.entries({
  acute: '\u0301', grave: '\u0300', circ: '\u0302', tilde: '\u0303', uml: '\u0308', cedil: '\u0327', caron: '\u030c',
})); // prettier-ignore

/** Decodes character references (&amp;, &#38;) once: `&amp;lt;` becomes `&lt;`, the text that it was written for. */
export function withoutEntities(text: string): string {
  return text
    .replace(/&([a-zA-Z][a-zA-Z\d]{1,7});/g, (all, name: string) => {
      const accent = ACCENTS.get(name.slice(1));
      return ENTITIES.get(name) ?? (accent === undefined ? all : `${name[0]}${accent}`.normalize('NFC'));
    })
    .replace(/&#(?:(\d{1,7})|[xX]([\da-fA-F]{1,6}));/g, (all, decimal?: string, hex?: string) => {
      const code = decimal === undefined ? parseInt(hex!, 16) : Number(decimal);
      const isCharacter = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
      return isCharacter ? String.fromCodePoint(code) : all;
    });
}
