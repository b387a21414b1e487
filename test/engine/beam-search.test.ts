/** Beam search against a search through everything, on small made-up languages. */
import { describe, expect, test } from 'vitest';
import { BeamSearch } from '../../engine/tasks/beam-search.ts';
import type { BeamRow, Choice, Transcript } from '../../engine/tasks/beam-search.ts';
import { createRng } from '../../engine/util/rng.ts';

const EOS = 0;
const PROMPT = [90, 91];
type Language = (history: readonly number[]) => readonly Choice[];

/** All tokens with their log-probabilities, best first; the same history gives the same. */
function language(seed: number, tokens: number, endBias: number): Language {
  return (history) => {
    const rng = createRng(seed + history.reduce((sum, token) => (sum * 31 + token + 1) % 1_000_003, 7));
    const logits = Array.from({ length: tokens }, (_, token) => 1.5 * rng.normal() + (token === EOS ? endBias : 0));
    const norm = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit), 0));
    return logits.map((logit, token) => ({ token, logprob: logit - norm })).sort((a, b) => b.logprob - a.logprob);
  };
}

/** Runs a search as the decoder would: lanes keep what they were fed. */
function run(
  say: Language,
  { width, limit, room = 64 }: { width: number; limit: number; room?: number },
): Transcript & { rows: BeamRow[] } {
  const search = new BeamSearch({ width, prompt: PROMPT, eos: EOS, limit });
  const lanes = Array.from({ length: width }, (): number[] => []);
  const all: BeamRow[] = [];
  while (!search.done) {
    const { rows, copies } = search.plan({ rows: room, copies: room });
    expect(rows.length).toBeGreaterThan(0);
    expect(Math.max(rows.length, copies.length)).toBeLessThanOrEqual(room);
    // All at once: none reads what another writes.
    const moved = copies.map(({ from, position }) => lanes[from]![position]!);
    for (const [i, { to, position }] of copies.entries()) {
      expect(position).toBeLessThanOrEqual(lanes[to]!.length);
      lanes[to]!.length = Math.max(lanes[to]!.length, position + 1);
      lanes[to]![position] = moved[i]!;
    }
    for (const { from, position } of copies) expect(copies.some(({ to, position: at }) => to === from && at === position)).toBe(false);
    for (const { lane, position, token, history } of rows) {
      const fed = lanes[lane]!;
      expect(position).toBeLessThanOrEqual(fed.length);
      fed.length = position;
      fed.push(token);
      if (history) expect(fed).toEqual([...PROMPT, ...history]);
    }
    if (rows.every(({ history }) => !history)) continue;
    if (rows.length < room) expect(search.plan({ rows: room, copies: room })).toEqual({ rows: [], copies: [] });
    for (const { lane, history } of rows) if (history) search.take(lane, say(history).slice(0, width + 1));
    all.push(...rows);
  }
  return { ...search.best(), rows: all };
}

function greedy(say: Language, limit: number): number[] {
  const tokens: number[] = [];
  while (tokens.length < limit) {
    const [{ token }] = say(tokens) as [Choice];
    if (token === EOS) break;
    tokens.push(token);
  }
  return tokens;
}

/** Every transcript of at most `limit` tokens with its log-probability. */
function everything(say: Language, limit: number, history: readonly number[] = [], logprob = 0): Pick<Transcript, 'tokens' | 'logprob'>[] {
  return say(history).flatMap(({ token, logprob: more }) => {
    if (token === EOS) return [{ tokens: history, logprob: logprob + more }];
    return history.length < limit ? everything(say, limit, [...history, token], logprob + more) : [];
  });
}

const mean = ({ tokens, logprob }: Pick<Transcript, 'tokens' | 'logprob'>): number => logprob / (tokens.length + 1);

describe('beam search', () => {
  test('of width 1 is greedy', () => {
    for (let seed = 0; seed < 20; seed++) {
      const say = language(seed, 6, 0.5);
      expect(run(say, { width: 1, limit: 12 }).tokens).toEqual(greedy(say, 12));
    }
  });

  test('finds a transcript whose first token is not the likeliest', () => {
    // 1 is likelier than 2, but nothing likely follows it.
    const say: Language = (history) => {
      const p: Readonly<Record<string, readonly number[]>> = { '': [0.01, 0.5, 0.49], 1: [0.34, 0.33, 0.33], 2: [0.98, 0.01, 0.01] };
      const found = p[history.join(' ')] ?? [0.4, 0.3, 0.3];
      return found.map((value, token) => ({ token, logprob: Math.log(value) })).sort((a, b) => b.logprob - a.logprob);
    };
    expect(greedy(say, 5)).toEqual([1]);
    const { tokens, logprob } = run(say, { width: 2, limit: 5 });
    expect(tokens).toEqual([2]);
    expect(logprob).toBeCloseTo(Math.log(0.49 * 0.98));
  });

  test('adds up the log-probabilities of what it says, and mostly beats greedy decoding', () => {
    let [better, worse] = [0, 0];
    for (let seed = 0; seed < 60; seed++) {
      const say = language(seed, 5, 0.5);
      const all = everything(say, 5);
      const found = run(say, { width: 4, limit: 5 });
      const same = all.find(({ tokens }) => tokens.join() === found.tokens.join());
      if (!same) continue; // Cut off at the limit.
      expect(found.logprob).toBeCloseTo(same.logprob, 9);
      const plain = all.find(({ tokens }) => tokens.join() === greedy(say, 5).join());
      if (plain && mean(found) > mean(plain) + 1e-9) better++;
      if (plain && mean(found) < mean(plain) - 1e-9) worse++;
    }
    expect(better).toBeGreaterThan(10);
    expect(worse).toBeLessThan(better / 2);
  });

  test('feeds a hypothesis its last token and no other', () => {
    const { rows, tokens } = run(language(3, 40, -2), { width: 3, limit: 30 });
    expect(tokens.length).toBeGreaterThan(10);
    expect(rows.length).toBeLessThanOrEqual(PROMPT.length + 30 * 3);
    expect(rows.filter(({ history }) => !history)).toHaveLength(PROMPT.length - 1);
  });

  test('says the same when a step has little room', () => {
    for (let seed = 0; seed < 10; seed++) {
      const say = language(seed, 8, -1);
      expect(run(say, { width: 3, limit: 9, room: 2 }).tokens).toEqual(run(say, { width: 3, limit: 9 }).tokens);
    }
  });

  test('is silent when the likeliest first token is the end', () => {
    const say: Language = (history) =>
      history.length === 0
        ? [{ token: EOS, logprob: Math.log(0.5) }, { token: 1, logprob: Math.log(0.4) }, { token: 2, logprob: Math.log(0.1) }] // prettier-ignore
        : [{ token: EOS, logprob: -0.001 }, { token: 1, logprob: -7 }, { token: 2, logprob: -8 }]; // prettier-ignore
    expect(run(say, { width: 2, limit: 9 })).toMatchObject({ tokens: [], logprob: Math.log(0.5) });
  });

  test('gives the best beginning when nothing ends within the limit', () => {
    const say: Language = () => [1, 2, 3].map((token) => ({ token, logprob: Math.log(0.5 / token) }));
    expect(run(say, { width: 2, limit: 4 }).tokens).toEqual([1, 1, 1, 1]);
  });
});
