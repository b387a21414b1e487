/** The claims about serving the bundled model, one line each with the numbers. */
import type { ChatRequest } from '../../../engine/api.ts';
import type { ChatEngine } from '../../../engine/tasks/chat-engine.ts';
import { fixed, loadText } from '../harness.ts';
import { closedLoop, percentile, runRequest } from './load.ts';
import { SCENARIOS } from './scenarios.ts';

const GREEDY = { sampling: { temperature: 0 }, ignoreEos: true } as const;
const PAGE = 16;
const REPEATS = 3;
const { script } = SCENARIOS[0]!;

const median = (values: readonly number[]): number => percentile(values, 0.5);

/** Prints a claim, whether it holds, and what was measured. */
export function report(claim: string, holds: boolean, measured: string): void {
  console.log(`${holds ? 'holds' : 'FAILS'}  ${claim}: ${measured} (load ${loadText()})`);
  if (!holds) process.exitCode = 1;
}

/** Total tokens/s of 32 clients at once beside that of one, taken in turn. */
export async function throughputRatio(engine: ChatEngine): Promise<void> {
  const rates = new Map<number, number[]>([[1, []], [32, []]]); // prettier-ignore
  for (let repeat = 0; repeat <= REPEATS; repeat++) {
    for (const [clients, list] of rates) {
      engine.flushCache();
      const { samples, seconds } = await closedLoop(engine, script, { clients, turns: 1, maxTokens: 48, limitMs: 60_000 });
      if (repeat > 0) list.push(samples.reduce((sum, { tokens }) => sum + tokens, 0) / seconds);
    }
  }
  const [one, many] = [median(rates.get(1)!), median(rates.get(32)!)];
  report(
    '32 clients get 6 times the tokens/s of 1',
    many >= 6 * one,
    `${fixed(one, 0)} and ${fixed(many, 0)} tokens/s, ${fixed(many / one, 1)} times`,
  );
}

/** 128 streams that begin at the same moment. */
export async function manyStreams(engine: ChatEngine): Promise<void> {
  engine.flushCache();
  const { samples, seconds } = await closedLoop(engine, script, { clients: 128, turns: 1, maxTokens: 16, limitMs: 120_000 });
  const firsts = samples.map(({ firstToken }) => firstToken);
  const [middle, last] = [median(firsts), Math.max(...firsts)];
  const measured = `first token after ${fixed(middle, 0)} ms (median) and ${fixed(last, 0)} ms (last), ${fixed(last / middle, 1)} times; all in ${fixed(seconds, 1)} s`;
  report('128 streams all finish', samples.length === 128 && samples.every(({ finished, tokens }) => finished && tokens === 16), measured);
}

/** A second request with the 1,500 tokens of the first before its own. */
export async function prefixReuse(engine: ChatEngine): Promise<void> {
  const ratios: number[] = [];
  let measured = '';
  let toThePage = true;
  for (let repeat = 0; repeat <= REPEATS; repeat++) {
    engine.flushCache();
    const prefix = Array.from({ length: 1500 }, (_, i) => 300 + ((i * 7919 + repeat * 104729) % 3000));
    const ask = (last: number): ChatRequest => ({ messages: [], prompt: [...prefix, 400 + last, 500 + last], maxTokens: 4, ...GREEDY });
    const cold = await runRequest(engine, ask(0));
    const warm = await runRequest(engine, ask(1));
    if (repeat === 0) continue;
    toThePage &&= warm.cachedTokens === Math.floor(prefix.length / PAGE) * PAGE;
    ratios.push(warm.firstToken / cold.firstToken);
    measured = `${warm.cachedTokens} cached, first token after ${fixed(cold.firstToken, 0)} and ${fixed(warm.firstToken, 0)} ms`;
  }
  const ratio = median(ratios);
  report('a prefix of 1,500 tokens is computed once', toThePage && ratio <= 0.25, `${measured}; warm/cold ${fixed(ratio, 3)}`);
}
