/** The documents hold together: every relative link leads to a file and, where it names one, to a heading; the README stays short and knows the rest. */
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** Not written here: packages, builds, what is fetched. */
const SKIPPED = ['node_modules', 'dist', '.git', '.parley', 'coverage', 'screenshots'];
const MAX_README_LINES = 100;
const MAX_IMAGE_BYTES = 300_000;

function documentsBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return SKIPPED.includes(entry.name) ? [] : documentsBelow(path);
      return entry.name.endsWith('.md') ? [relative(ROOT, path).split(sep).join('/')] : [];
    })
    .sort();
}

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const withoutCode = (text: string): string => text.replace(/^(```+)[^\n]*\n[\s\S]*?^\1$/gm, '').replace(/`[^`\n]*`/g, '');

/** Targets of Markdown links and images, of `[name]: target` lines and of HTML's src and href. */
function linksOf(markdown: string): string[] {
  const text = withoutCode(markdown);
  const inline = [...text.matchAll(/\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)/g)];
  const named = [...text.matchAll(/^\[[^\]]+\]:\s+(\S+)/gm)];
  const html = [...text.matchAll(/\b(?:src|href)="([^"]+)"/g)];
  return [...inline, ...named, ...html].map(([, target]) => target!);
}

/** Anchors of the headings, as GitHub makes them. */
function anchorsOf(markdown: string): ReadonlySet<string> {
  const headings = [...markdown.replace(/^(```+)[^\n]*\n[\s\S]*?^\1$/gm, '').matchAll(/^#{1,6}\s+(.*?)\s*#*$/gm)];
  const found = new Set<string>();
  for (const [, heading] of headings) {
    const text = heading!.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const base = text.replace(/[^\p{L}\p{N}\p{M}_ -]/gu, '').replaceAll(' ', '-');
    let anchor = base;
    for (let count = 1; found.has(anchor); count++) anchor = `${base}-${count}`;
    found.add(anchor);
  }
  return found;
}

/** Why a link of `document` leads nowhere, or undefined. Links to other sites are not followed. */
function linkProblem(document: string, target: string): string | undefined {
  if (/^[a-z][a-z0-9+.-]*:/i.test(target)) return undefined;
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? document : join(dirname(document), decodeURI(path)).split(sep).join('/');
  if (file.startsWith('..')) return 'leads out of the repository';
  if (!existsSync(join(ROOT, file))) return 'there is no such file';
  if (anchor === undefined || statSync(join(ROOT, file)).isDirectory() || !file.endsWith('.md')) return undefined;
  return anchorsOf(read(file)).has(anchor) ? undefined : `${file} has no heading #${anchor}`;
}

const documents = documentsBelow(ROOT);

describe('documents', () => {
  test.each(documents)('%s has no link that leads nowhere', (document) => {
    const problems = linksOf(read(document)).flatMap((target) => {
      const problem = linkProblem(document, target);
      return problem === undefined ? [] : [`${target}: ${problem}`];
    });
    expect(problems).toEqual([]);
  });

  test('the rule itself notices what it is for', () => {
    expect(linkProblem('README.md', 'docs/no-such-page.md')).toBe('there is no such file');
    expect(linkProblem('docs/api.md', '../README.md#no-such-heading')).toBe('README.md has no heading #no-such-heading');
    expect(linkProblem('README.md', '../elsewhere.md')).toBe('leads out of the repository');
    expect(linkProblem('docs/api.md', '#routes')).toBeUndefined();
    expect(linksOf('[a](b.md) `[c](d.md)` ![e](f.png "g")\n```\n[h](i.md)\n```\n<img src="j.svg">')).toEqual(['b.md', 'f.png', 'j.svg']);
    expect([...anchorsOf('# Keys, and `more`\n## A-B\n## A-B\n')]).toEqual(['keys-and-more', 'a-b', 'a-b-1']);
  });
});

describe('README.md', () => {
  const readme = read('README.md');

  test(`has at most ${MAX_README_LINES} lines`, () => {
    expect(readme.trimEnd().split('\n').length).toBeLessThanOrEqual(MAX_README_LINES);
  });

  test('leads to every page of docs/ from its last section', () => {
    const last = readme.slice(readme.lastIndexOf('\n## '));
    const pages = documents.filter((path) => /^docs\/[^/]+\.md$/.test(path));
    expect(pages.length).toBeGreaterThan(5);
    expect(pages.filter((page) => !linksOf(last).includes(page))).toEqual([]);
  });

  test('shows a picture of the playground and one of the structure, both small', () => {
    const pictures = linksOf(readme).filter((target) => /\.(png|svg)$/.test(target));
    expect(pictures).toHaveLength(2);
    for (const picture of pictures) expect(statSync(join(ROOT, picture)).size, picture).toBeLessThan(MAX_IMAGE_BYTES);
  });
});

test('docs/decisions/README.md lists every decision', () => {
  const decisions = documents
    .filter((path) => /^docs\/decisions\/(?!README)/.test(path))
    .map((path) => path.slice('docs/decisions/'.length));
  expect(decisions.length).toBeGreaterThan(3);
  expect(decisions.filter((name) => !linksOf(read('docs/decisions/README.md')).includes(name))).toEqual([]);
});

test('test/bench/README.md has a row for every benchmark', () => {
  const benchmarks = readdirSync(join(ROOT, 'test/bench')).filter((name) => name.endsWith('.bench.ts'));
  const rows = [...read('test/bench/README.md').matchAll(/^\| `([\w-]+)/gm)].map(([, name]) => `${name}.bench.ts`);
  expect(benchmarks.length).toBeGreaterThan(10);
  expect(rows.sort()).toEqual(benchmarks.sort());
});
