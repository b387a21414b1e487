/** Writes out LaTeX formulas and powers as they are read aloud. */

const TEXT = 'text|textbf|textit|mathrm|mathbf|mathit|mathsf|mathcal|mathbb|operatorname|boxed|hat|bar|vec|tilde|overline|underline';
const WORDS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    times: 'times', cdot: 'times', ast: 'times', div: 'divided by', pm: 'plus or minus', mp: 'minus or plus',
    le: 'is less than or equal to', leq: 'is less than or equal to', lt: 'is less than',
    ge: 'is greater than or equal to', geq: 'is greater than or equal to', gt: 'is greater than',
    ne: 'is not equal to', neq: 'is not equal to', approx: 'is approximately', sim: 'is about', equiv: 'is equivalent to', propto: 'is proportional to',
    infty: 'infinity', to: 'to', rightarrow: 'to', implies: 'implies', Rightarrow: 'implies', iff: 'if and only if', Leftrightarrow: 'if and only if',
    in: 'in', notin: 'not in', forall: 'for all', exists: 'there is', emptyset: 'the empty set', cup: 'union', cap: 'intersection', subset: 'subset of',
    nabla: 'nabla', ldots: '…', cdots: '…', dots: '…', sum: 'the sum of', prod: 'the product of', int: 'the integral of', lim: 'the limit of',
    left: '', right: '', big: '', Big: '', displaystyle: '', quad: '', qquad: '', begin: '', end: '', limits: '',
  }),
); // prettier-ignore

/**
 * Writes out formulas between $ and $, $$ and $$, \( and \), \[ and \]. Text between single dollar signs must look like a formula, since the signs may be amounts
 * of money.
 */
export function withoutFormulas(text: string, read: (formula: string) => string = spoken): string {
  if (!/[$\\]/.test(text)) return text;
  return text
    .replace(/\$\$([^$]{1,2000})\$\$/g, (_, formula: string) => read(formula))
    .replace(/\\\[((?:[^\\]|\\(?![[\]])){1,2000})\\\]|\\\(((?:[^\\]|\\(?![()])){1,2000})\\\)/g, (_, a?: string, b?: string) =>
      read((a ?? b)!),
    )
    .replace(/(?<![\w$\\])\$(?=[^\s$])([^$\n]{1,500})(?<=[^\s\\])\$(?![\w$])/g, (all, formula: string) =>
      /[\\^_=]/.test(formula) || (/[A-Za-z]/.test(formula) && !/[A-Za-z]{3}/.test(formula)) ? read(formula) : all,
    );
}

function spoken(formula: string): string {
  // Outside of commands, two or three letters in a row are a product, and more are a word.
  let t = formula.replace(new RegExp(`\\\\(?:${TEXT})\\s?\\{[^{}]*\\}|\\\\[A-Za-z]+|(?<![A-Za-z])[A-Za-z]{2,3}(?![A-Za-z])`, 'g'), (part) =>
    part.startsWith('\\') ? part : [...part].join(' '),
  );
  // Innermost braces first; those nested deeper than this are read without their braces.
  for (let depth = 0, before = ''; depth < 8 && t !== before; depth++) {
    before = t;
    t = t
      .replace(new RegExp(`\\\\(?:${TEXT})\\s?\\{([^{}]*)\\}`, 'g'), '$1')
      .replace(/\\sqrt\s?(?:\[(\w{1,3})\])?\s?\{([^{}]*)\}/g, (_, n: string | undefined, of: string) => ` ${root(n)} ${of} `)
      .replace(/\\[dt]?frac\s?\{([^{}]*)\}\s?\{([^{}]*)\}/g, (_, a: string, b: string) =>
        /^\d+$/.test(a) && /^(?:[2-9]|10)$/.test(b) ? ` ${a}/${b} ` : ` ${a} over ${b} `,
      )
      .replace(
        /\\(sum|prod|int)\s?_(?:\{([^{}]*)\}|(\w))\s?\^(?:\{([^{}]*)\}|(\\?\w+))/g,
        (_, sign: string, a, b, c, d) => ` ${WORDS.get(sign)!.replace(/ of$/, '')} from ${a ?? b} to ${c ?? d} of `,
      )
      .replace(/\\lim\s?_\s?\{([^{}]*)\}/g, ' the limit as $1 of ')
      .replace(/\^\s?\{([^{}]*)\}/g, (_, power: string) => `${powerOf(power.trim())} `)
      .replace(/_\s?\{([^{}]*)\}/g, ' sub $1 ');
  }
  return t
    .replace(/\^\s?(\\?\w|\\[A-Za-z]+)/g, (_, power: string) => `${powerOf(power)} `)
    .replace(/_\s?(\d)/g, ' $1 ')
    .replace(/_\s?(?=\w|\\)/g, ' sub ')
    .replace(/\\\\|&/g, ' ')
    .replace(/\\(?:var)?([A-Za-z]+)/g, (_, name: string) => ` ${WORDS.get(name) ?? name} `)
    .replace(/\\/g, ' ')
    .replace(/'\s?/g, ' prime ')
    .replace(/\|/g, ' ')
    .replace(/!/g, ' factorial ')
    .replace(/(?<=[A-Za-z\d)])\s?\/\s?(?=[A-Za-z(])/g, ' over ')
    .replace(/[=+*<>]|(?<=\S)\s?[-−](?=\s?\S)|[-−]/g, (sign) => ` ${SIGNS[sign.trim()]!} `)
    .replace(/\s+/g, ' ')
    .replace(/ (?=[,.;:])/g, '')
    .trim();
}

const SIGNS: Readonly<Record<string, string>> = {
  '=': 'equals', '+': 'plus', '*': 'times', '<': 'is less than', '>': 'is greater than', '-': 'minus', '−': 'minus',
}; // prettier-ignore

function root(n: string | undefined): string {
  if (n === undefined || n === '2') return 'the square root of';
  return n === '3' ? 'the cube root of' : `the root ${n} of`;
}

/** How powers and the signs of ions and exponents are read. */
export interface PowerWords {
  readonly squared: string;
  readonly cubed: string;
  readonly power: string;
  readonly plus: string;
  readonly minus: string;
}

const ENGLISH: PowerWords = { squared: 'squared', cubed: 'cubed', power: 'to the power of', plus: 'plus', minus: 'minus' };

function powerOf(power: string, { squared, cubed, power: raised, minus }: PowerWords = ENGLISH): string {
  if (power === '2') return ` ${squared}`;
  if (power === '3') return ` ${cubed}`;
  return ` ${raised} ${power.replace(/^[-−]\s?/, `${minus} `).replace(/^\+\s?/, '')}`;
}

const SUPERSCRIPTS = '⁰¹²³⁴⁵⁶⁷⁸⁹';
/** Words after which a superscript is a power; after other words it is the mark of a note. */
const RAISED = /(?:sec|feet|foot|meters?|metres?|miles?|inch(?:es)?|sin|cos|tan|log)$/;

/** Writes out superscripts, subscripts, and powers of letters and numbers: 10⁻³, SO₄²⁻, x^2, 10^-3. Drops the marks of notes. */
export function withoutPowers(text: string, words: PowerWords = ENGLISH): string {
  return text
    .replace(/[₀-₉]/g, (digit) => String(digit.charCodeAt(0) - 0x2080))
    .replace(/(?<=([a-z]{0,6})[.,;:!?"”')]{0,3})(?<=[a-z]{3}|[.,;:!?"”'][)]?)[⁰¹²³⁴-⁹]{1,3}(?![⁺⁻\w])/g, (mark, word: string) =>
      RAISED.test(word) ? mark : '',
    )
    .replace(
      /([⁰¹²³⁴-⁹]{0,9})([⁺⁻])(?![⁰¹²³⁴-⁹])/g,
      (_, digits: string, sign: string) => ` ${plain(digits)} ${sign === '⁺' ? words.plus : words.minus}`,
    )
    .replace(/([⁺⁻]?)([⁰¹²³⁴-⁹]{1,40})/g, (all, sign: string, digits: string) =>
      all === '²' || all === '³' ? all : `^${sign === '⁻' ? '-' : ''}${plain(digits)}`,
    )
    .replace(
      /(?<=[\p{L}\d)])\s?\^\s?(?:[({]([-−+]?\s?\w{1,40})[)}]|([-−+]?(?:\d{1,40}(?:\.\d{1,40})?|[A-Za-z]\b)))/gu,
      (_, a?: string, b?: string) => powerOf((a ?? b)!, words),
    )
    .replace(/(?<=\d[eE])[-−](?=\d)/g, ` ${words.minus} `);
}

const plain = (digits: string): string => [...digits].map((digit) => SUPERSCRIPTS.indexOf(digit)).join('');
