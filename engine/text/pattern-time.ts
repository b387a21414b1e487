/**
 * Bounds the running time of regular expressions from a tokenizer.json. JavaScript's engine backtracks, and an untrusted pattern may take exponential time: `(a+)+$`
 * doubles it with each letter, and nothing could interrupt it on the engine's thread.
 */

/** Syntax tree of a pattern. `set` matches one character; `all` is a sequence, `one` a choice, `look` an assertion. */
type Node =
  | { readonly kind: 'set'; readonly source: string }
  | { readonly kind: 'all' | 'one'; readonly parts: readonly Node[] }
  | { readonly kind: 'look'; readonly part: Node }
  | { readonly kind: 'repeat'; readonly part: Node; readonly least: number; readonly most: number };

const TERM =
  /\[(?:\\[^]|[^\]\\])*\]|\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|c[A-Za-z]|[^])|\(\?(?:[:=!]|<[=!]|<[^>]*>)|\(|\{\d+(?:,\d*)?\}|[^]/gu;
const MAX_TERMS = 1024;
/** Largest count of a repeat that is taken as single choices, rather than as a run of any length. */
const FEW = 8;
/** Most two-way choices that a match attempt at one position may have to backtrack through. */
const MAX_CHOICES = 6;

/** Whether the time of a match attempt at one position is at most linear in the length of the text. */
export function isBounded({ source }: RegExp): boolean {
  const terms = source.match(TERM) ?? [];
  if (terms.length > MAX_TERMS || terms.some((term) => /^\\[1-9k]/.test(term))) return false;
  const node = parse(terms);
  const alternatives = node.kind === 'one' ? node.parts : [node];
  return alternatives.every((part) => {
    const { runs, choices } = waysOf(part, false);
    return choices <= MAX_CHOICES && mostTogether(runs) <= 1;
  });
}

function parse(terms: readonly string[]): Node {
  let at = 0;
  const alternatives = (): Node => {
    const parts = [sequence()];
    while (terms[at] === '|') {
      at++;
      parts.push(sequence());
    }
    return parts.length === 1 ? parts[0]! : { kind: 'one', parts };
  };
  const sequence = (): Node => {
    const parts: Node[] = [];
    while (at < terms.length && terms[at] !== '|' && terms[at] !== ')') parts.push(repeated(atom()));
    return { kind: 'all', parts };
  };
  const atom = (): Node => {
    const term = terms[at++]!;
    if (term === '^' || term === '$') return { kind: 'look', part: { kind: 'all', parts: [] } };
    if (!term.startsWith('(')) return { kind: 'set', source: term };
    const part = alternatives();
    at++;
    return /^\(\?<?[=!]/.test(term) ? { kind: 'look', part } : part;
  };
  const repeated = (part: Node): Node => {
    const [, from, comma, to] = /^\{(\d+)(,?)(\d*)\}$/.exec(terms[at] ?? '') ?? [];
    const signs: Readonly<Record<string, readonly [number, number]>> = { '*': [0, Infinity], '+': [1, Infinity], '?': [0, 1] };
    const counted = from === undefined ? undefined : ([Number(from), to ? Number(to) : comma ? Infinity : Number(from)] as const);
    const range = counted ?? signs[terms[at] ?? ''];
    if (!range) return part;
    at++;
    // A lazy repeat has the same ways, in another order.
    if (terms[at] === '?') at++;
    return { kind: 'repeat', part, least: range[0], most: range[1] };
  };
  return alternatives();
}

/** What a match may backtrack into when something later does not match. */
interface Ways {
  /** Sets of each run that may give characters back. */
  readonly runs: readonly (readonly string[])[];
  /** Other choices: the logarithm to base 2 of their number. */
  readonly choices: number;
}

const NONE: Ways = { runs: [], choices: 0 };
const NEVER: Ways = { runs: [], choices: Infinity };

/** Computes the ways of a node. `mayFail`: whether something that may not match follows it. */
function waysOf(node: Node, mayFail: boolean): Ways {
  if (node.kind === 'set') return NONE;
  if (node.kind === 'look') return waysOf(node.part, true);
  if (node.kind === 'repeat') return waysOfRepeat(node, mayFail);
  if (node.kind === 'all') {
    let fails = mayFail;
    let sum = NONE;
    for (const part of [...node.parts].reverse()) {
      const { runs, choices } = waysOf(part, fails);
      sum = { runs: [...sum.runs, ...runs], choices: sum.choices + choices };
      fails ||= !takesNothing(part) || part.kind === 'look';
    }
    return sum;
  }
  const ways = node.parts.map((part) => waysOf(part, mayFail));
  const [runs, choices] = [ways.flatMap((way) => way.runs), Math.max(...ways.map((way) => way.choices))];
  return { runs, choices: choices + (mayFail ? Math.log2(node.parts.length) : 0) };
}

function waysOfRepeat(node: Node & { readonly kind: 'repeat' }, mayFail: boolean): Ways {
  const { part, least, most } = node;
  if (most > FEW) {
    // A run that can match any text in one way only is backtracked into like one of a single set.
    if (part.kind !== 'set' && ((least > 1 && takesNothing(part)) || !hasOneWay(node))) return NEVER;
    return { runs: mayFail ? [setsOf(part)] : [], choices: 0 };
  }
  const inside = waysOf(part, mayFail || most > 1);
  const times = Array.from({ length: most }, () => inside.runs).flat();
  return { runs: times, choices: inside.choices * most + (mayFail ? Math.log2(most - least + 1) : 0) };
}

function takesNothing(node: Node): boolean {
  if (node.kind === 'all') return node.parts.every(takesNothing);
  if (node.kind === 'one') return node.parts.some(takesNothing);
  return node.kind === 'look' || (node.kind === 'repeat' && (node.least === 0 || takesNothing(node.part)));
}

function setsOf(node: Node): readonly string[] {
  if (node.kind === 'set') return [node.source];
  if (node.kind === 'look') return [];
  return node.kind === 'repeat' ? setsOf(node.part) : node.parts.flatMap(setsOf);
}

/** Positions of sets in a pattern at which a match can begin and end. */
interface Ends {
  readonly first: readonly number[];
  readonly last: readonly number[];
}

/** Whether a pattern can match any text in one way only: no two positions that can come next match the same character. */
function hasOneWay(node: Node): boolean {
  const sets: string[] = [];
  const next: number[][] = [];
  const join = (from: readonly number[], to: readonly number[]): void => from.forEach((place) => next[place]!.push(...to));
  const endsOf = (part: Node): Ends => {
    if (part.kind === 'look') return { first: [], last: [] };
    if (part.kind === 'set') {
      next.push([]);
      const place = sets.push(part.source) - 1;
      return { first: [place], last: [place] };
    }
    if (part.kind === 'repeat') {
      if (part.most > 1 && part.most <= FEW) return endsOf(spelledOut(part));
      const ends = endsOf(part.part);
      if (part.most > 1) join(ends.last, ends.first);
      return ends;
    }
    const parts = part.parts.map((one) => [endsOf(one), takesNothing(one)] as const);
    if (part.kind === 'one') return { first: parts.flatMap(([{ first }]) => first), last: parts.flatMap(([{ last }]) => last) };
    return parts.reduce<Ends & { readonly empty: boolean }>(
      (before, [ends, empty]) => {
        join(before.last, ends.first);
        const first = before.empty ? [...before.first, ...ends.first] : before.first;
        return { first, last: empty ? [...before.last, ...ends.last] : ends.last, empty: before.empty && empty };
      },
      { first: [], last: [], empty: true },
    );
  };
  const { first } = endsOf(node);
  return [first, ...next].every((places) => mostTogether(places.map((place) => [sets[place]!])) <= 1);
}

/** Writes out a repeat of a few times as a sequence of its part. */
function spelledOut({ part, least, most }: Node & { readonly kind: 'repeat' }): Node {
  let more: Node = { kind: 'all', parts: [] };
  for (let i = most; i > least; i--) more = { kind: 'repeat', part: { kind: 'all', parts: [part, more] }, least: 0, most: 1 };
  return { kind: 'all', parts: [...Array.from({ length: least }, () => part), more] };
}

/** Sample characters of every kind that published patterns tell apart: all below U+3100, and a few beyond. */
const SAMPLES: readonly string[] = [
  ...Array.from({ length: 0x3100 }, (_, code) => String.fromCharCode(code)),
  ...['一', '龥', '가', '힣', '\ufeff', 'ﬀ', '！', 'Ａ', '０', '\ud800\udc00', '𐐀', '𞤀', '😀', '𠀀', '\ue000', '\u{1d7ce}'],
];
const MEMBERS = new Map<string, Uint8Array>();

/** The largest number of groups whose sets match the same sample. */
function mostTogether(groups: readonly (readonly string[])[]): number {
  if (groups.length <= 1) return groups.length;
  const counts = new Uint16Array(SAMPLES.length);
  for (const sets of groups) {
    const members = sets.map(membersOf);
    for (let i = 0; i < counts.length; i++) if (members.some((taken) => taken[i] === 1)) counts[i]!++;
  }
  return counts.reduce((most, count) => Math.max(most, count), 0);
}

function membersOf(set: string): Uint8Array {
  const known = MEMBERS.get(set);
  if (known) return known;
  const member = new RegExp(`^${set}$`, 'u');
  const members = Uint8Array.from(SAMPLES, (sample) => (member.test(sample) ? 1 : 0));
  if (MEMBERS.size > 64) MEMBERS.clear();
  MEMBERS.set(set, members);
  return members;
}
