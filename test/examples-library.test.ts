/** examples/engine-as-library.ts answers, in a process of its own. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

test('the engine answers as a library', () => {
  const example = fileURLToPath(new URL('../examples/engine-as-library.ts', import.meta.url));
  const args = ['--import', 'tsx', example, 'What is the capital of France?'];
  const printed = execFileSync(process.execPath, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  expect(printed).toMatch(/^The capital of France is Paris\.$/m);
  expect(printed).toMatch(/ended by stop/);
});
