/** The rules by which an answer to a written test prompt counts as sensible. No model, no files: `evaluate.ts` runs them. */

/** A line of `test_prompts.jsonl`: what a newcomer writes and what a sensible answer must show. Patterns ignore case. */
export interface TestPrompt {
  readonly group: string;
  readonly system?: string;
  /** User and assistant in turn; the last is the user's. */
  readonly turns: readonly string[];
  /** Patterns that must all occur. */
  readonly all?: readonly string[];
  /** Patterns that must not occur. */
  readonly none?: readonly string[];
  /** Patterns that must occur in this case. */
  readonly cased?: readonly string[];
  /** The last number of the answer, in digits or as a word up to twenty. */
  readonly number?: number;
  /** Pattern of a key (or index) -> pattern of its value, in the JSON that the answer holds. */
  readonly json?: Readonly<Record<string, string>>;
  readonly minWords?: number;
  readonly maxWords?: number;
  readonly minSentences?: number;
}

/** An answer, and whether the model ended it itself. */
export interface TestAnswer {
  readonly text: string;
  readonly ended: boolean;
}

/** Words after which an answer to any of these short questions is rambling. */
const MOST_WORDS = 120;
const RUN = 4;
const NUMBERS = 'zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty'; // prettier-ignore

const wordsOf = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}'+-]+/gu) ?? [];

/** Whether a text goes round in circles: a run of four words three times, or four in ten of its runs twice. */
export function isRepetitive(text: string): boolean {
  const words = wordsOf(text);
  const counts = new Map<string, number>();
  for (let i = 0; i + RUN <= words.length; i++) {
    const run = words.slice(i, i + RUN).join(' ');
    counts.set(run, (counts.get(run) ?? 0) + 1);
  }
  const runs = words.length - RUN + 1;
  if ([...counts.values()].some((count) => count >= 3) || (runs >= 10 && counts.size < 0.6 * runs)) return true;
  return /(\S)\1{9}/u.test(text) || /\b([\p{L}']+)( \1){3}\b/iu.test(text);
}

/** The last number of a text, digits or words up to twenty; undefined where there is none. */
export function lastNumber(text: string): number | undefined {
  const names = NUMBERS.split(' ');
  const found = text
    .toLowerCase()
    .match(new RegExp(`-?\\d+(?:\\.\\d+)?|\\b(?:${names.join('|')})\\b`, 'g'))
    ?.at(-1);
  if (found === undefined) return undefined;
  return names.includes(found) ? names.indexOf(found) : Number(found);
}

/** The first JSON object or array that a text holds; undefined where there is none that parses. */
export function findJson(text: string): unknown {
  const from = text.search(/[[{]/);
  const to = Math.max(text.lastIndexOf(']'), text.lastIndexOf('}'));
  if (from < 0 || to < from) return undefined;
  try {
    return JSON.parse(text.slice(from, to + 1));
  } catch {
    return undefined;
  }
}

function jsonProblem(wanted: Readonly<Record<string, string>>, text: string): string | undefined {
  const value = findJson(text);
  if (typeof value !== 'object' || value === null) return 'no JSON';
  const entries = Object.entries(value);
  for (const [key, pattern] of Object.entries(wanted)) {
    const entry = entries.find(([name]) => new RegExp(`^(${key})$`, 'i').test(name));
    if (!entry) return `JSON without ${key}`;
    const content = typeof entry[1] === 'object' ? JSON.stringify(entry[1]) : String(entry[1]);
    if (!new RegExp(pattern, 'i').test(content)) return `JSON with ${key} = ${content}`;
  }
  return undefined;
}

function formProblem(prompt: TestPrompt, { text, ended }: TestAnswer): string | undefined {
  const words = wordsOf(text).length;
  if (!ended) return 'did not end';
  if (!/[\p{L}\p{N}]/u.test(text)) return 'empty';
  if (/<\|.*?\|>|\uFFFD/u.test(text)) return 'special tokens or broken characters';
  if (isRepetitive(text)) return 'repeats itself';
  if (words < (prompt.minWords ?? 0)) return `${words} words only`;
  if (words > (prompt.maxWords ?? MOST_WORDS)) return `${words} words`;
  const sentences = text.match(/[^.!?]*\p{L}[^.!?]*[.!?]/gu)?.length ?? 0;
  return sentences < (prompt.minSentences ?? 0) ? `${sentences} sentences only` : undefined;
}

/** Why an answer is not sensible; undefined where it is. */
export function problemOf(prompt: TestPrompt, answer: TestAnswer): string | undefined {
  const { text } = answer;
  const form = formProblem(prompt, answer);
  if (form) return form;
  for (const pattern of prompt.all ?? []) if (!new RegExp(pattern, 'is').test(text)) return `lacks /${pattern}/`;
  for (const pattern of prompt.cased ?? []) if (!new RegExp(pattern, 's').test(text)) return `lacks /${pattern}/ in this case`;
  for (const pattern of prompt.none ?? []) if (new RegExp(pattern, 'is').test(text)) return `has /${pattern}/`;
  if (prompt.number !== undefined && lastNumber(text) !== prompt.number) return `${lastNumber(text)} for ${prompt.number}`;
  return prompt.json && jsonProblem(prompt.json, text);
}
