/** Environment variables that look like settings and are none. */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { FLAGS } from '../../server/settings/flags.ts';
import { variablesOf } from '../../server/settings/read.ts';
import { OTHER_VARIABLES, unknownVariables } from '../../server/settings/variables.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const settings = new Set(FLAGS.flatMap(variablesOf));

/** Named so that the search below does not find them. */
const named = (name: string): string => `PARLEY_${name}`;

test('are named in one line, with the setting that is nearest, and their values are not', () => {
  const env = { [named('CHAT_MODLE')]: 'secret', [named('API_KEY_FILE')]: '/run/secret', PARLEY_PORT: '4000', PATH: '/bin', OTHER: 'x' };
  expect(unknownVariables(env)).toBe(
    `the environment has variables that are no settings and have no effect: ${named('CHAT_MODLE')} (is PARLEY_CHAT_MODEL meant?), ${named('API_KEY_FILE')}`,
  );
  const many = Object.fromEntries(Array.from({ length: 13 }, (_, i) => [named(`SOMETHING_ELSE_${i}`), '1']));
  expect(unknownVariables(many)).toMatch(/SOMETHING_ELSE_9, and 3 more$/);
});

test('every setting, by either of its names, and every other variable of the code is none of them', () => {
  const env = Object.fromEntries([...settings, ...OTHER_VARIABLES].map((name) => [name, '1']));
  expect(Object.keys(env).length).toBeGreaterThan(60);
  expect(unknownVariables(env)).toBeUndefined();
});

test('what Kubernetes says of a service called parley is none', () => {
  const links = {
    SERVICE_HOST: '10.0.0.1',
    SERVICE_PORT_CHAT: '3000',
    CHAT_PORT: 'tcp://10.0.0.1:3000',
    PORT_3000_TCP_ADDR: '10.0.0.1',
  };
  expect(unknownVariables(Object.fromEntries(Object.entries(links).map(([name, value]) => [named(name), value])))).toBeUndefined();
});

test('the others are those that are read in the code', () => {
  const found = ['deploy', 'engine', 'library', 'server', 'sources', 'test', 'training', 'web'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(ts|tsx|mjs|py|sh)$/.test(entry.name) && !entry.parentPath.includes('node_modules'))
      .flatMap((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8').match(/\bPARLEY_[A-Z][A-Z\d_]*/g) ?? []),
  );
  expect([...new Set(found)].filter((name) => !settings.has(name)).sort()).toEqual(OTHER_VARIABLES);
});
