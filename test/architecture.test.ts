/** The rules of CONTRIBUTING.md that a machine can check: ranks, doors to the outside, sizes, kernels against their WGSL. No GPU. */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { SAMPLING_ROW } from '../engine/ops/sampling-row.ts';
import { CUT_NAMES, SAMPLING } from '../engine/sampling.ts';
import { expectation } from './support/browser/expectation.ts';
import { checkKernel } from './support/kernel-declaration.ts';
import { DOCUMENTS, collectKernels, withTable } from './tools/tables.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const MAX_LINES = { '.ts': 400, '.wgsl': 250 };
const MAX_FUNCTION_LINES = 60;

/** Rank of a folder or file of engine/: it imports only from lower ranks and from its own group. */
const RANKS: readonly (readonly string[])[] = [
  ['api.ts', 'config.ts', 'errors.ts', 'info.ts', 'model-types.ts', 'protocol.ts', 'sampling.ts', 'status.ts', 'util'],
  ['platform', 'audio', 'cache'],
  ['weights'],
  ['text', 'gpu'],
  ['ops'],
  ['models'],
  ['scheduler'],
  ['runner'],
  ['parallel'],
  ['tasks'],
  ['client.ts', 'host.ts'],
  ['index.ts'],
];
/** Their files see each other: rank 0, and the two sides of the protocol. */
const OPEN_RANKS = [0, RANKS.findIndex((groups) => groups.includes('client.ts'))];
/** The scheduler is tested without a GPU, so of the lower ranks it may see only these. */
const SCHEDULER_SEES = ['api.ts', 'config.ts', 'errors.ts', 'sampling.ts', 'util', 'cache', 'scheduler'];
/** What the server and the playground may import of engine/, besides rank 0. */
const PUBLIC = ['index.ts', 'client.ts', 'host.ts', 'audio', 'platform'];

function filesBelow(folder: string, ...extensions: string[]): string[] {
  const top = join(ROOT, folder);
  if (!existsSync(top)) return [];
  return readdirSync(top, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && extensions.some((extension) => entry.name.endsWith(extension)))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .filter((path) => !path.includes('node_modules/'))
    .sort();
}

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const withoutComments = (text: string): string => text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1');

/** Module names in import and export declarations and dynamic imports. */
function importedBy(path: string): string[] {
  return [...withoutComments(read(path)).matchAll(/(?:\bfrom\s*|\bimport\s*\(?\s*)'([^']+)'/g)].map(([, name]) => name!);
}

/** The same, and the modules that it starts or reads: `new URL(..., import.meta.url)`. */
function importsOf(path: string): string[] {
  const urls = withoutComments(read(path)).matchAll(/new URL\('([^']+)', import\.meta\.url\)/g);
  return [...importedBy(path), ...[...urls].map(([, url]) => url!)];
}

/** First folder or file below engine/ of a path such as engine/gpu/device.ts; undefined outside engine/. */
function groupOf(path: string): string | undefined {
  const [top, group] = path.split('/');
  return top === 'engine' ? group : undefined;
}

const rankOf = (group: string): number => RANKS.findIndex((groups) => groups.includes(group));
const resolve = (from: string, name: string): string => join(dirname(from), name).split(sep).join('/');
const engineFiles = filesBelow('engine', '.ts');

/** Why `from` (in engine/) may not import `name`, or undefined. */
function importProblem(from: string, name: string): string | undefined {
  const group = groupOf(from)!;
  if (name.startsWith('node:'))
    return /^engine\/platform\/node(-\w+)?\.ts$/.test(from) ? undefined : 'only engine/platform/node*.ts may import node:';
  if (!name.startsWith('.')) return undefined;
  if (!/\.(ts|json)$/.test(name)) return 'imports carry their extension';
  const to = resolve(from, name);
  const target = groupOf(to);
  if (target === undefined) return 'engine/ imports nothing outside itself';
  if (/^engine\/platform\/(node|deno|browser)\.ts$/.test(to)) return 'the platform is handed in; the engine never picks it';
  if (group === 'scheduler' && !SCHEDULER_SEES.includes(target)) return 'the scheduler sees rank 0 and cache/ only';
  if (target === group || (rankOf(group) === rankOf(target) && OPEN_RANKS.includes(rankOf(group)))) return undefined;
  return rankOf(target) < rankOf(group) ? undefined : `rank ${rankOf(group)} imports rank ${rankOf(target)}`;
}

describe('engine/', () => {
  test('every file has a rank', () => {
    expect(engineFiles.length).toBeGreaterThan(10);
    expect(engineFiles.filter((path) => rankOf(groupOf(path)!) < 0)).toEqual([]);
  });

  test('files import only from lower ranks and their own folder, and node: only in platform/node*.ts', () => {
    const problems = engineFiles.flatMap((path) =>
      importsOf(path).flatMap((name) => {
        const problem = importProblem(path, name);
        return problem ? [`${path} -> ${name}: ${problem}`] : [];
      }),
    );
    expect(problems).toEqual([]);
  });

  test('the import rule itself notices what it is for', () => {
    expect(importProblem('engine/gpu/device.ts', '../ops/linear.ts')).toBe('rank 3 imports rank 4');
    expect(importProblem('engine/weights/safetensors.ts', '../text/tokenizer.ts')).toBe('rank 2 imports rank 3');
    expect(importProblem('engine/gpu/device.ts', '../text/tokenizer.ts')).toBe('rank 3 imports rank 3');
    expect(importProblem('engine/scheduler/scheduler.ts', '../gpu/device.ts')).toMatch(/scheduler sees/);
    expect(importProblem('engine/audio/wav.ts', 'node:fs')).toMatch(/only engine\/platform\/node\*.ts/);
    expect(importProblem('engine/tasks/engine.ts', '../platform/node.ts')).toMatch(/handed in/);
    expect(importProblem('engine/models/llama/llama.ts', '../ops/rope.ts')).toBeUndefined();
  });

  test('packages that it and sources/ import are dependencies, and webgpu is imported by the platform only', () => {
    const { dependencies } = JSON.parse(read('package.json')) as { dependencies: Record<string, string> };
    const problems = [...engineFiles, ...filesBelow('sources', '.ts')].flatMap((path) =>
      importsOf(path)
        .filter((name) => /^[@a-z]/.test(name) && !name.startsWith('node:'))
        .filter((name) => {
          const parts = name.split('/');
          const known = (name.startsWith('@') ? parts.slice(0, 2).join('/') : parts[0]!) in dependencies;
          return !known || (name === 'webgpu' && path !== 'engine/platform/node.ts');
        })
        .map((name) => `${path} -> ${name}`),
    );
    expect(problems).toEqual([]);
  });

  test('a model is read through its ModelFolder: only weights/ asks the platform for files', () => {
    const asksForFiles = /\bplatform\.(open|exists|list|join|importModule)\b|\bjson-file\.ts'/;
    const problems = engineFiles
      .filter((path) => !/^engine\/(platform|weights)\//.test(path))
      .filter((path) => asksForFiles.test(withoutComments(read(path))));
    expect(problems).toEqual([]);
  });

  test('speaks neither the command line nor HTTP: no flag in what it says, no field of the API in its errors', () => {
    const OTHERS = ['--query-gpu', '--format', '--local-dir'];
    const said = engineFiles.flatMap((path) => {
      const text = withoutComments(read(path));
      const flags = [...text.matchAll(/(?<=['"`\s(])--[a-z][\w-]*(?![\w.[-])/g)]
        .map(([flag]) => flag)
        .filter((flag) => !OTHERS.includes(flag));
      const fields = [...text.matchAll(/\bparam: ['"`][^'"`]*_[^'"`]*['"`]|\bdetails: \{[^}]*\w_\w[^}]*\}|\bnpx parley\b/g)].map(
        ([field]) => field,
      );
      return [...flags, ...fields].map((word) => `${path}: ${word}`);
    });
    expect(said).toEqual([]);
  });

  test('no globals of one runtime, no console', () => {
    const runtimeGlobal = /(?<![\w.#'"/-])(process\.|Buffer\.|document\.|console\.|require\()/;
    const problems = engineFiles
      .filter((path) => !path.startsWith('engine/platform/'))
      .filter((path) => runtimeGlobal.test(withoutComments(read(path))));
    expect(problems).toEqual([]);
  });

  test('every folder it names in README.md as a rank exists in the rule and the other way round', () => {
    const rows = read('engine/README.md').match(/^\| \d+ \|.*$/gm)!;
    const named = rows.map((row) => [...row.split('|')[2]!.matchAll(/[\w.-]+/g)].map(([word]) => word).sort());
    expect(named).toEqual(RANKS.map((groups) => [...groups].sort()));
  });
});

test('server/, web/ and library/ import only the public surface of engine/', () => {
  const problems = [...filesBelow('server', '.ts'), ...filesBelow('web', '.ts', '.tsx'), ...filesBelow('library', '.ts')].flatMap((path) =>
    importsOf(path)
      .filter((name) => name.startsWith('.'))
      .map((name) => resolve(path, name))
      .filter((to) => groupOf(to) !== undefined && !RANKS[0]!.includes(groupOf(to)!) && !PUBLIC.includes(groupOf(to)!))
      .map((to) => `${path} -> ${to}`),
  );
  expect(problems).toEqual([]);
});

describe('sources/', () => {
  const files = filesBelow('sources', '.ts');

  /** Why a file of sources/ may not import `name`, or undefined. */
  const sourceProblem = (from: string, name: string): string | undefined => {
    const isNode = from.startsWith('sources/node/');
    if (name.startsWith('node:')) return isNode ? undefined : 'only sources/node/ may import node:';
    if (!name.startsWith('.')) return undefined;
    const to = resolve(from, name);
    if (to.startsWith('sources/')) return to.startsWith('sources/node/') && !isNode ? 'the pure half does not know the other' : undefined;
    // Data.
    if (to.startsWith('models/')) return undefined;
    return RANKS[0]!.includes(groupOf(to) ?? '') ? undefined : 'sources/ sees rank 0 of engine/ only';
  };

  test('its pure half runs in a page, and all of it sees rank 0 of engine/ only', () => {
    expect(files.length).toBeGreaterThan(10);
    const problems = files.flatMap((path) =>
      importsOf(path).flatMap((name) => {
        const problem = sourceProblem(path, name);
        return problem ? [`${path} -> ${name}: ${problem}`] : [];
      }),
    );
    expect(problems).toEqual([]);
    expect(sourceProblem('sources/hub.ts', 'node:fs')).toMatch(/only sources\/node/);
    expect(sourceProblem('sources/hub.ts', './node/http.ts')).toMatch(/pure half/);
    expect(sourceProblem('sources/hub.ts', '../engine/gpu/device.ts')).toMatch(/rank 0/);
  });

  test('engine/ and the page import none of its Node half, and others its two doors only', () => {
    const doors = ['sources/index.ts', 'sources/node/index.ts'];
    const problems = [...engineFiles, ...filesBelow('server', '.ts'), ...filesBelow('web', '.ts', '.tsx')].flatMap((path) =>
      importsOf(path)
        .map((name) => (name.startsWith('.') ? resolve(path, name) : name))
        .filter((to) => to.startsWith('sources/') && !(path.startsWith('server/') ? doors : doors.slice(0, 1)).includes(to))
        .map((to) => `${path} -> ${to}`),
    );
    expect(problems).toEqual([]);
  });
});

describe('imports', () => {
  const files = ['engine', 'sources', 'server', 'web', 'library'].flatMap((folder) => filesBelow(folder, '.ts', '.tsx', '.mjs'));

  test('go in no circle, those of types included', () => {
    expect(circles(files, (path) => importsOf(path).flatMap((name) => (name.startsWith('.') ? [resolve(path, name)] : [])))).toEqual([]);
  });

  test('of the rooms of server/ go in no circle either', () => {
    // A room is a folder with all below it; a file beside them is one of its own.
    const roomOf = (path: string): string => path.split('/').slice(0, 2).join('/');
    const inServer = filesBelow('server', '.ts', '.mjs');
    const rooms = [...new Set(inServer.map(roomOf))];
    // What a room starts as a process or thread of its own is no import.
    const importsOfRoom = (room: string): string[] =>
      inServer
        .filter((path) => roomOf(path) === room)
        .flatMap((path) => importedBy(path).flatMap((name) => (name.startsWith('.') ? [roomOf(resolve(path, name))] : [])))
        .filter((to) => to !== room);
    expect(rooms.length).toBeGreaterThan(10);
    expect(circles(rooms, importsOfRoom)).toEqual([]);
  });

  test('the search for circles itself finds them', () => {
    const arrows: Readonly<Record<string, readonly string[]>> = { a: ['b'], b: ['c', 'd'], c: ['a'], d: ['e'], e: ['d', 'f'], f: [] };
    expect(circles(Object.keys(arrows), (name) => arrows[name]!)).toEqual([
      ['a', 'b', 'c'],
      ['d', 'e'],
    ]);
  });
});

/** Groups of files that reach each other, sorted. */
function circles(files: readonly string[], importsFrom: (path: string) => readonly string[]): string[][] {
  const known = new Set(files);
  const arrows = new Map(files.map((path) => [path, importsFrom(path).filter((to) => known.has(to))]));
  const reach = (start: string): Set<string> => {
    const seen = new Set<string>();
    const open = [...arrows.get(start)!];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (seen.has(next)) continue;
      seen.add(next);
      open.push(...arrows.get(next)!);
    }
    return seen;
  };
  const reached = new Map(files.map((path) => [path, reach(path)]));
  const inCircle = files.filter((path) => reached.get(path)!.has(path));
  const groups = inCircle.map((path) =>
    inCircle.filter((other) => other === path || (reached.get(path)!.has(other) && reached.get(other)!.has(path))),
  );
  return [...new Map(groups.map((group) => [group.join(), group.sort()])).values()];
}

test('no folder of server/ has more than 15 files', () => {
  const counts = new Map<string, number>();
  for (const path of filesBelow('server', '.ts', '.mjs')) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
  expect([...counts].filter(([, count]) => count > 15)).toEqual([]);
});

describe('sizes', () => {
  const sources = ['engine', 'sources', 'server', 'web', 'library', 'test', 'shaders'].flatMap((folder) =>
    filesBelow(folder, '.ts', '.tsx', '.wgsl'),
  );

  test('files stay below their ceilings', () => {
    const long = sources.flatMap((path) => {
      const lines = read(path).trimEnd().split('\n').length;
      const ceiling = path.endsWith('.wgsl') ? MAX_LINES['.wgsl'] : MAX_LINES['.ts'];
      return lines > ceiling ? [`${path}: ${lines} lines, ceiling ${ceiling}`] : [];
    });
    expect(long).toEqual([]);
  });

  test(`functions of the product have at most ${MAX_FUNCTION_LINES} lines`, () => {
    const product = sources.filter((path) => !path.endsWith('.wgsl') && !path.startsWith('test/'));
    const long = product.flatMap((path) => {
      const lines = read(path).split('\n');
      return lines.flatMap((line, start) => {
        // Prettier closes a block at the indentation of the line that opens it.
        const opening =
          /^(\s*)(?:export )?(?:(?:static |override |async |get |set )*(?:function\*? ?)?[*#]?[\w$]+(?:<.*>)?\(.*\{|(?:const \w+.*=> \{))$/.exec(
            line,
          );
        if (!opening || /^\s*(if|for|while|switch|catch|return|describe|test)\b/.test(line)) return [];
        const length = lines.slice(start).findIndex((end) => end.startsWith(`${opening[1]}}`)) + 1;
        return length > MAX_FUNCTION_LINES ? [`${path}:${start + 1}: ${length} lines`] : [];
      });
    });
    expect(long).toEqual([]);
  });

  test('names are kebab-case .ts(x) and snake_case .wgsl', () => {
    const odd = sources.filter((path) => {
      const name = path.slice(path.lastIndexOf('/') + 1);
      return path.endsWith('.wgsl') ? !/^[a-z0-9_]+\.wgsl$/.test(name) : !/^[a-z0-9-]+(\.(test|bench|config|d))?\.tsx?$/.test(name);
    });
    expect(odd).toEqual([]);
  });
});

describe('kernels', async () => {
  const declaring = engineFiles.filter((path) => path !== 'engine/gpu/kernel.ts' && /\bdefineKernel\(/.test(withoutComments(read(path))));
  const kernels = (await collectKernels()).map(({ kernel }) => kernel);
  const shaders = filesBelow('shaders', '.wgsl').filter((path) => !path.startsWith('shaders/lib/'));

  test('are declared in ops/ only, and exported', () => {
    expect(declaring.filter((path) => groupOf(path) !== 'ops')).toEqual([]);
    const declared = declaring.flatMap((path) =>
      [...withoutComments(read(path)).matchAll(/^(.*)\bdefineKernel\(/gm)].map(([, before]) => `${path}: ${before}`),
    );
    expect(declared.filter((line) => !/: export const [A-Z][A-Z0-9_]* = $/.test(line))).toEqual([]);
    expect(kernels).toHaveLength(declared.length);
  });

  test('their cases expect nothing that the self-test of a page cannot compare', () => {
    const known = Object.keys(expectation(undefined));
    const odd = filesBelow('test/kernels', '.ts').flatMap((path) => {
      const code = withoutComments(read(path));
      const matchers = [...code.matchAll(/\.(to(?:Be|Contain|Equal|Have|Match|Strict|Throw)\w*)\(/g)].filter(
        ([, name]) => !known.includes(name!),
      );
      const others = code.matchAll(/\.toThrow\((?!\/)|\)\.(?:not|rejects|resolves)\.to/g);
      return [...matchers, ...others].map(([what]) => `${path}: ${what}`);
    });
    expect(odd).toEqual([]);
  });

  test('every shader outside lib/ is declared, every declared file exists', () => {
    const files = new Set(kernels.map((kernel) => `shaders/${kernel.spec.file}`));
    expect([...files].sort()).toEqual(shaders);
  });

  test.each(kernels.map((kernel) => [kernel.spec.file, kernel] as const))('%s agrees with its declaration', (file, kernel) => {
    expect(checkKernel(kernel, read(`shaders/${file}`))).toEqual([]);
  });

  test('the row of sampling settings has the words of the WGSL struct, and every cut is one that its shaders look for', () => {
    const source = withoutComments(read('shaders/lib/sampling_row.wgsl'));
    const [, struct] = /struct SamplingRow \{(.*?)\}/s.exec(source)!;
    expect([...struct!.matchAll(/(\w+): (\w+),/g)].map(([, name, type]) => ({ name, type }))).toEqual(SAMPLING_ROW);
    const [, looks] = /fn has_cuts\(.*?\{(.*?)\}/s.exec(source)!;
    const cuts = withoutComments(read('shaders/sample/sample_threshold.wgsl'));
    for (const name of CUT_NAMES) {
      expect(looks).toContain(`row.${SAMPLING[name].wire} `);
      expect(cuts).toMatch(new RegExp(`row\\.${SAMPLING[name].wire}\\b`));
    }
  });

  test('begin with a comment that says what they compute', () => {
    expect(filesBelow('shaders', '.wgsl').filter((path) => !read(path).startsWith('//'))).toEqual([]);
  });
});

test.each(DOCUMENTS)('%s has the table of what the code has now (npx tsx test/tools/tables.ts writes it)', async (document) => {
  expect(read(document)).toBe(await withTable(document));
});

/** Lines of a document's tables that have more or fewer cells than their head: what stands behind a `|` that nothing escapes is cut off. */
function brokenRows(document: string): string[] {
  let [head, isCode] = [0, false];
  return read(document)
    .split('\n')
    .filter((line) => {
      if (line.startsWith('```')) isCode = !isCode;
      const cells = isCode || !line.startsWith('|') ? 0 : line.replaceAll('\\|', '').split('|').length;
      const isBroken = head > 0 && cells > 0 && cells !== head;
      head = cells === 0 ? 0 : head || cells;
      return isBroken;
    });
}

test('every row of a table in a document has the cells of its head', () => {
  const documents = ['README.md', ...['docs', 'deploy', 'engine', 'examples', 'library', 'models', 'server', 'shaders', 'sources', 'test', 'training'].flatMap((folder) => filesBelow(folder, '.md'))]; // prettier-ignore
  expect(documents.length).toBeGreaterThan(30);
  expect(documents.flatMap((document) => brokenRows(document).map((row) => `${document}: ${row}`))).toEqual([]);
});
