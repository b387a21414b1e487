/**
 * A rank of a split model dies under load, again and again: every request ends in its answer or in device_lost, the answers are the right
 * ones, and the engine comes back. PARLEY_KILLS sets how often (SPEED.md has a run of 20).
 */
import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ChatRequest } from '../../engine/api.ts';
import { resolveConfig } from '../../engine/config.ts';
import { EngineError } from '../../engine/errors.ts';
import { superviseEngine } from '../../server/engine/supervisor.ts';
import type { EngineSupervisor } from '../../server/engine/supervisor.ts';
import { createLog } from '../../server/log.ts';
import { until } from '../support/listeners.ts';
import { THOROUGH } from '../support/thorough.ts';

const KILLS = Number(process.env['PARLEY_KILLS'] ?? (THOROUGH ? 3 : 2));
const CLIENTS = 4;
const QUESTIONS = ['Who are you?', 'What is the capital of France?', 'Tell me a story.', 'What is two and two?'];
const FOLDER = fileURLToPath(new URL('../../models/parley-chat', import.meta.url));

let supervisor: EngineSupervisor;
const failures: EngineError[] = [];
beforeAll(async () => {
  const config = resolveConfig({ chat: { path: FOLDER }, tpSize: 2, contextLength: 256, maxRunningRequests: CLIENTS });
  supervisor = superviseEngine({
    start: { config, toggles: 'default' },
    log: createLog('silent'),
    onGiveUp: (error) => failures.push(error),
    // Dying soon after a start is what is tested here, and no reason to wait longer each time.
    livedMs: 0,
    entry: new URL('../support/rank-killer-process.ts', import.meta.url),
  });
  await supervisor.ready;
});
afterAll(() => supervisor.close());

async function answer(question: string): Promise<string> {
  const messages = [{ role: 'user' as const, content: question }];
  const request: ChatRequest = { messages, sampling: { temperature: 0 }, maxTokens: 32, ignoreEos: true };
  let text = '';
  for await (const event of supervisor.chat(request, AbortSignal.timeout(100_000))) if (event.type === 'delta') text += event.text;
  return text;
}

/** This process's children and open files. */
const holdings = (): { children: number; files: number } => ({
  children: readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8').trim().split(' ').length,
  files: readdirSync('/proc/self/fd').length,
});

test.skipIf(process.platform !== 'linux')(
  `${KILLS} times: every request is answered rightly or told device_lost, and the engine is ready again`,
  { timeout: 60_000 * (KILLS + 1) },
  async () => {
    const expected = await Promise.all(QUESTIONS.map(answer));
    const before = holdings();
    const counts = { right: 0, lost: 0 };
    const wrong: unknown[] = [];
    let isOver = false;
    const client = async (index: number): Promise<void> => {
      for (let turn = index; !isOver; turn++) {
        const question = turn % QUESTIONS.length;
        try {
          const text = await answer(QUESTIONS[question]!);
          if (text === expected[question]) counts.right++;
          else wrong.push([QUESTIONS[question], text]);
        } catch (error) {
          if (error instanceof EngineError && error.code === 'device_lost') counts.lost++;
          else wrong.push(error);
          await new Promise((resolve) => setTimeout(resolve, 250));
        }
      }
    };
    const clients = Array.from({ length: CLIENTS }, (_, index) => client(index));
    for (let kill = 1; kill <= KILLS; kill++) {
      const answered = counts.right;
      // Some work between two deaths, and work under way at each.
      await until(() => counts.right > answered && supervisor.status().running > 0);
      const { pid } = supervisor;
      process.kill(pid!, 'SIGUSR2');
      await until(() => supervisor.pid !== pid && supervisor.status().state === 'ready');
      expect(supervisor.restarts).toBe(kill);
    }
    isOver = true;
    await Promise.all(clients);
    expect(wrong).toEqual([]);
    expect(failures).toEqual([]);
    expect(counts.right).toBeGreaterThanOrEqual(KILLS);
    expect(await Promise.all(QUESTIONS.map(answer))).toEqual(expected);
    await until(() => supervisor.status().running === 0 && supervisor.status().kvPagesUsed <= supervisor.status().kvPagesTotal);
    const after = holdings();
    expect(after.children).toBe(before.children);
    expect(after.files).toBeLessThanOrEqual(before.files + 2);
    console.log(`${KILLS} deaths: ${counts.right} answered, ${counts.lost} told device_lost`);
  },
);
