/** Normalises text in the other languages than English for speech. Plain text in, plain text out. */

import { withFewMarks } from '../../util/marks.ts';
import { withoutFormulas, withoutPowers } from '../formulas.ts';
import { withoutEntities, withoutTags } from '../html-text.ts';
import { withoutMarkdown } from '../markdown-text.ts';
import { plainPunctuation } from '../plain-punctuation.ts';
import { chemistry } from '../speech-symbols.ts';
import { withoutAddresses } from '../web-addresses.ts';
import { agreement, money, units } from './amounts.ts';
import { ES } from './es.ts';
import { dates, decimals, fractions, numbers, ranges, telephones, times, wholeNumbers } from './figures.ts';
import { FR } from './fr.ts';
import { HI } from './hi.ts';
import { IT } from './it.ts';
import { BEGINS, ENDS, anyOf, pairs, readerOf } from './notation.ts';
import type { Notation, Reader } from './notation.ts';
import { PT_BR } from './pt-br.ts';

/** Languages whose notations are known here; English has code of its own. */
export type NotationLanguage = 'es' | 'fr' | 'it' | 'pt-br' | 'hi';

const NOTATIONS: Readonly<Record<NotationLanguage, Notation>> = { es: ES, fr: FR, it: IT, 'pt-br': PT_BR, hi: HI };

/**
 * Spells out what espeak-ng would stumble over: abbreviations, money, times, dates, ranges, decimals, units, symbols. Whole numbers stay digits where espeak-ng
 * reads them. Punctuation that shapes the voice stays.
 */
export function normalizeIn(text: string, language: NotationLanguage): string {
  const n = readerOf(NOTATIONS[language]);
  const words = { squared: n.signs['²']!, cubed: n.signs['³']!, power: n.signs['^']!, plus: n.signs['+']!, minus: n.signs['−']! };
  let t = withFewMarks(text).normalize('NFC').replace(/\r\n?/g, '\n');
  // The signs of these currencies do not begin formulas.
  t = t.replace(/(?<![\p{L}\d$])(R|US)\$\s?(?=\d)/gu, (_, country: string) => (country === 'R' ? 'BRL ' : 'USD '));
  t = withoutTags(withoutFormulas(t, (latex) => formula(latex, n)));
  t = plain(withoutPowers(withoutEntities(withoutMarkdown(t, n)), words));
  t = withoutAddresses(abbreviations(t, n), { marks: { ...n.signs, '.': n.point }, domains: n.domains });
  t = n.own(initials(t));
  for (const step of [dates, telephones, numbers, ranges, times, fractions, money, units, agreement, decimals, wholeNumbers, symbols])
    t = step(t, n);
  return t.replace(/[^\S\n]+/g, ' ').replace(/ ?\n ?/g, '\n').replace(/(?<=\S) (?=[,.;:!?](?:\s|$))/g, '').trim(); // prettier-ignore
}

/** Also of Devanagari: its digits, its danda, which ends a sentence, and its sign of abbreviation. In French, spaces are around marks. */
function plain(text: string): string {
  const t = text
    .replace(/[०-९]/g, (digit) => String(digit.charCodeAt(0) - 0x966))
    .replace(/॰/g, '.')
    .replace(/«[^\S\n]?/g, '"')
    .replace(/[^\S\n]?»/g, '"');
  return (
    plainPunctuation(t)
      .replace(/(?<=(?<!\p{L})(?:etc|ecc))…/gu, '.…')
      .replace(/^[^\S\n]?[।॥]/gm, '')
      .replace(/[^\S\n]?[।॥](?=([\p{L}\p{N}])?)/gu, (_, next?: string) => (next === undefined ? '.' : '. '))
      // A dash that begins a line of dialogue, or is before a mark, is no pause of its own.
      .replace(/^ — |[^\S\n]?—[^\S\n]?(?=[.,;:!?…])/gm, '')
      .replace(/(?<=[\p{L}\p{M}\d%)"'])[^\S\n](?=[?!;:](?:\s|$))/gu, '')
  );
}

/** Writes out a LaTeX formula by its signs. */
function formula(latex: string, n: Reader): string {
  let t = latex;
  // Innermost braces first; those nested deeper than this are read without their braces.
  for (let depth = 0, before = ''; depth < 8 && t !== before; depth++) {
    before = t;
    t = t
      .replace(/\\(?:text|math|operatorname|mathrm|mathbf|overline|vec|hat|bar|boxed)[a-z]{0,3}\s?\{([^{}]*)\}/g, ' $1 ')
      .replace(/\\[dt]?frac\s?\{([^{}]*)\}\s?\{([^{}]*)\}/g, (_, a: string, b: string) =>
        /^\d+$/.test(a) && /^\d+$/.test(b) ? ` ${a}/${b} ` : ` ${a} ${n.signs['⁄']} ${b} `,
      )
      .replace(/\\sqrt\s?(?:\[\w{1,3}\])?\s?\{([^{}]*)\}/g, ` ${n.signs['√']} $1 `)
      .replace(/\^\s?\{([^{}]*)\}/g, (_, power: string) => `^(${power.trim()}) `)
      .replace(/_\s?\{([^{}]*)\}/g, ' $1 ');
  }
  return t
    .replace(/\\(times|cdot|ast)(?![a-zA-Z])/g, '×')
    .replace(
      /\\(\w+)/g,
      (_, name: string) =>
        ` ${{ div: '÷', pm: '±', le: '≤', leq: '≤', ge: '≥', geq: '≥', ne: '≠', neq: '≠', approx: '≈', left: '', right: '', quad: '' }[name] ?? name} `,
    ) // prettier-ignore
    .replace(/_(?=\w)/g, ' ')
    .replace(/[\\{}&|]/g, ' ')
    .replace(/(?<=\d)\s?\/\s?(?=\d)/g, '/')
    .replace(/(?<=[\w)])\s?\/\s?(?=[a-zA-Z(])/g, ` ${n.signs['⁄']} `)
    .replace(/[=+×÷<>*]|(?<![\^(]\s?)[-−]/g, (sign) => ` ${n.signs[{ '-': '−', '*': '×' }[sign] ?? sign]} `)
    .replace(/\s+/g, ' ')
    .trim();
}

/** Writes out abbreviations. At the end of a sentence the point is kept, but not before a name or a number. */
function abbreviations(text: string, n: Reader): string {
  let t = text;
  for (const [table, before] of [
    // Scripts without capitals begin names with any letter.
    [
      n.titles,
      `(?:(?<=[./-])\\s*|\\s+)(?=${n.pointIsDecimal ? '\\p{L}' : "\\p{Lu}[\\p{L}']|(?<=(?:\\p{L}{2}\\.?|M\\.)\\s)\\p{Lu}\\.(?!-)"})`,
    ],
    [n.numbered, '\\s*(?=\\d|[IVXLC]+(?!\\p{L}))'],
    [n.short, ENDS],
  ] as const) {
    const long = new Map<string, string>();
    for (const [key, word] of pairs(table)) {
      long.set(key, word);
      // Short ones, and those without a point, may be other words in small letters.
      if (key.length < 3 || !key.endsWith('.')) continue;
      for (const alike of [key.toLowerCase(), key[0]!.toUpperCase() + key.slice(1)]) if (!long.has(alike)) long.set(alike, word);
    }
    if (long.size === 0) continue;
    t = t.replace(
      new RegExp(`${BEGINS}(?<!\\p{Lu}\\. ?)(${anyOf([...long.keys()])})${before}`, 'gu'),
      (_, key: string, at: number, whole: string) => {
        if (table !== n.short) return `${long.get(key)} `;
        const ends = key.endsWith('.') && /^(?:["”)]*\s*(?:\n|$)|\s+["“(]?\p{Lu})/u.test(whole.slice(at + key.length, at + key.length + 9));
        return long.get(key)! + (ends ? '.' : '');
      },
    );
  }
  return t;
}

/** Drops the points of initials and of abbreviations made of initials: J. R. R. Tolkien, O.N.U. The last one also ends the sentence if the text does. */
function initials(text: string): string {
  return text
    .replace(
      /(?<![\p{L}\p{M}\p{N}.])(?:\p{Lu}\. ?){2,5}(?=\p{Lu}\p{Ll})|(?<=\p{Lu}\p{Ll}{1,20} )(?![VX]\.)\p{Lu}\. (?=\p{Lu}\p{Ll})/gu,
      (all) => all.replace(/\. ?/g, ' '),
    )
    .replace(
      /(?<![\p{L}\p{M}\p{N}.])(?:(?:\p{Lu}\.){2,9}|(?:\p{Lo}\p{M}{0,3}\.){2,9}|(?:\p{Lo}\p{M}{0,3}\p{Lo}?\p{M}{0,3}\.){2,9})(?![\p{L}\p{M}])/gu,
      (all, at: number, whole: string) => {
        const letters = all.split('.').filter((letter) => letter !== '');
        return (
          letters.join(/\p{Lo}/u.test(all) || letters.length < 3 ? ' ' : '') +
          (/^\s*(?:\n|$)/.test(whole.slice(at + all.length)) ? '.' : '')
        );
      },
    );
}

/** Writes out the signs that a listener needs to hear, and drops those that only serve the layout. */
function symbols(text: string, { signs }: Reader): string {
  const named = (sign: string): string => ` ${signs[sign]} `;
  return chemistry(text)
    .replace(/[:;]-?[)(](?=\s|$)/g, '')
    .replace(/(?<=\s)[-=]{1,2}>(?=\s)|[©®™→←↑↓•]/g, ' ')
    .replace(/#(?=\d)|[nN]º (?=\d)/g, named('№'))
    .replace(/#(?=[\p{L}_])/gu, named('#'))
    .replace(/(?<=[\p{L}\p{M}])_(?=[\p{L}\p{N}])/gu, ' ')
    .replace(/(?<=\d)\s?[x*·](?=\s?\d)/g, named('×'))
    .replace(/>=|≥/g, named('≥'))
    .replace(/<=|≤/g, named('≤'))
    .replace(/!==?|<>|≠/g, named('≠'))
    .replace(/~(?=\s?\d)|≈/g, named('≈'))
    .replace(/[<>](?=\s?[\p{L}\d])/gu, named)
    .replace(/(?<=\s|^)\+(?=\s?\d)|(?<=[\p{L}\d)²³])\s?\+(?=\s?[\p{L}\d(])/gu, named('+'))
    .replace(/={1,3}/g, named('='))
    .replace(/(?<=[\p{L}\p{N}])[²³]/gu, named)
    .replace(/&+/g, named('&'))
    .replace(/[×÷±√−@]/g, named)
    .replace(/(?<=[\p{L}\p{M}])\/(?=[\p{L}\p{M}])/gu, ' ')
    .replace(/(?<=\d)\s?\/\s?(?=\d)/g, named('/'))
    .replace(/[|~^\\]/g, ' ')
    .replace(/(?<=\p{Ll}[.!?])(?=\p{Lu})/gu, ' ');
}
