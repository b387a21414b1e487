/** The packages of npm, from what would be published: what is in them, the command, every example of the library, and the types. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import express from 'express';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { ROOT, findChromium, launchChromium } from '../browser/chromium.ts';
import { installPackage, run } from '../support/installed-package.ts';
import type { InstalledPackage } from '../support/installed-package.ts';

const MAX_PACKED_BYTES = 5e6;
/** What the library's examples and its types are tried with. */
const BESIDE = ['ai', '@ai-sdk/provider', 'express', 'openai', 'typescript', 'vite', '@types/node', '@types/express'];

let installed: InstalledPackage;
let modules: string;

beforeAll(async () => {
  installed = await installPackage(BESIDE);
  modules = join(installed.folder, 'node_modules');
  cpSync(join(ROOT, 'examples'), installed.folder, { recursive: true });
});
afterAll(() => installed?.remove());

describe('what is published', () => {
  test('is small, and has no sources, no tsx and none of the packages under GPL and LGPL', () => {
    expect(statSync(installed.tarball).size).toBeLessThan(MAX_PACKED_BYTES);
    const files = readdirSync(join(modules, 'parley'), { recursive: true }).map(String);
    expect(files.filter((name) => /(?<!\.d)\.ts$|node_modules/.test(name))).toEqual([]);
    const notices = readFileSync(join(modules, 'parley/THIRD-PARTY.md'), 'utf8');
    for (const name of ['zod', '@huggingface/jinja', '@mlc-ai/web-xgrammar', 'preact', '@fontsource-variable/newsreader'])
      expect(notices).toContain(`## ${name} `);
    const scripts = files
      .filter((name) => name.endsWith('.js'))
      .map((name) => [name, readFileSync(join(modules, 'parley', name), 'utf8')] as const);
    expect(scripts.length).toBeGreaterThan(20);
    // What can be told from anything else: names of espeak-ng's functions, and the beginnings of LAME and its neighbour in WebAssembly.
    const marks = [
      ...readFileSync(join(ROOT, 'node_modules/@echogarden/espeak-ng-emscripten/espeak-ng.js'), 'utf8').matchAll(/_espeak_VOICE\w+/g),
      ...readFileSync(join(ROOT, 'node_modules/wasm-media-encoders/dist/es/index.mjs'), 'utf8').matchAll(/AGFzbQ[\w+/]{60}/g),
    ].map(([mark]) => mark);
    expect(marks.length).toBeGreaterThan(2);
    expect(scripts.filter(([, code]) => marks.some((mark) => code.includes(mark))).map(([name]) => name)).toEqual([]);
    const node = scripts.filter(([name]) => name.startsWith(join('dist', 'node')));
    expect(node.filter(([, code]) => /new URL\(\s*["'`][^"'`]+\.ts["'`]/.test(code)).map(([name]) => name)).toEqual([]);
  });

  test('is minified for pages, and has by name what people read, and what tells bundlers which addresses are not theirs', () => {
    const browser = join(modules, 'parley/dist/browser');
    const code = readdirSync(browser).map((name) => readFileSync(join(browser, name), 'utf8'));
    const beside = code.flatMap((text) => text.match(/import\(\/\*.*?parley-espeak@.*?\.href/g) ?? []);
    expect(beside).toHaveLength(1);
    expect(beside[0]!.match(/webpackIgnore: true/g)).toHaveLength(1);
    // Rspack leaves `import.meta` as it is in what it is told to ignore, and then cannot read it in a script that is no module.
    expect(beside[0]).not.toContain('import.meta');
    const names =
      'const { NotFoundError, APIUserAbortError } = await import("./index.js"); console.log(new NotFoundError(404).name, new APIUserAbortError().name)';
    expect(run(process.execPath, ['--input-type=module', '-e', names], browser)).toBe('NotFoundError APIUserAbortError\n');
  });

  test('publint and arethetypeswrong find nothing', async () => {
    const { messages, pkg } = await publint({ pkgDir: installed.built, strict: true, pack: false });
    expect(messages.map((message) => formatMessage(message, pkg))).toEqual([]);
    const attw = join(ROOT, 'node_modules/@arethetypeswrong/cli/dist/index.js');
    // Ends with 1 where it finds something; `require` of a module, and TypeScript before 4.7, are not served.
    const report = run(process.execPath, [attw, installed.tarball, '--profile', 'esm-only', '--no-color', '--no-emoji'], installed.folder);
    for (const door of ['parley', 'parley/server', 'parley/worker', 'parley/ai-sdk'])
      expect(report).toMatch(new RegExp(`"${door}" +│ OK \\(ESM\\) +│ OK `));
  });

  test.each(['nodenext', 'bundler'])('its types stand by themselves and fit those of the OpenAI client: %s', (resolution) => {
    const file = `types-${resolution}.mts`;
    copyFileSync(join(ROOT, 'test/fixtures/library/types.ts'), join(installed.folder, file));
    const module = resolution === 'nodenext' ? 'nodenext' : 'esnext';
    const options = [
      '--strict',
      '--noEmit',
      '--exactOptionalPropertyTypes',
      '--target',
      'es2022',
      '--lib',
      'es2022,dom,dom.iterable',
      '--types',
      'node',
    ];
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    expect(
      run(
        process.execPath,
        [tsc, ...options, '--skipLibCheck', '--module', module, '--moduleResolution', resolution, file],
        installed.folder,
      ),
    ).toBe('');
    // Its own declarations are checked too, where no library of others is.
    writeFileSync(
      join(installed.folder, 'own.mts'),
      "import { Parley } from 'parley';\nexport const parley: Promise<Parley> = Parley.load({ chat: 'a' });\n",
    );
    expect(
      run(process.execPath, [tsc, ...options, '--module', module, '--moduleResolution', resolution, 'own.mts'], installed.folder),
    ).toBe('');
  });
});

/** A line of a process's output that matches; rejects when it ends before. */
async function lineOf(child: ChildProcess, pattern: RegExp): Promise<RegExpExecArray> {
  const seen: string[] = [];
  const found = new Promise<RegExpExecArray>((resolve, reject) => {
    for (const stream of [child.stdout!, child.stderr!])
      createInterface(stream).on('line', (line) => {
        seen.push(line);
        const match = pattern.exec(line);
        if (match) resolve(match);
      });
    child.on('exit', (code) => reject(new Error(`ended with ${code} before ${pattern}:\n${seen.join('\n')}`)));
  });
  return found;
}

/** Starts a program of the folder, ended with the test. */
function start(args: readonly string[], env: Readonly<Record<string, string>> = {}): ChildProcess {
  const child = spawn(process.execPath, args, {
    cwd: installed.folder,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGTERM');
    await once(child, 'exit');
  });
  return child;
}

const QUESTION = { messages: [{ role: 'user', content: 'What is the capital of France?' }] };
const ANSWER = 'The capital of France is Paris.';

/** The answer of a server's chat. */
async function ask(base: string): Promise<string> {
  const body = JSON.stringify({ model: 'parley-chat', ...QUESTION });
  const answer = await fetch(`${base}/chat/completions`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  return ((await answer.json()) as { choices: { message: { content: string } }[] }).choices[0]!.message.content;
}

test('the command serves, with the playground and its models', async () => {
  const bin = join('node_modules/parley', 'dist/node/parley.js');
  const only = ['--speech-model', 'none', '--transcription-model', 'none', '--host', '127.0.0.1', '--port', '0', '--drain-delay', '0'];
  const [, base] = await lineOf(start([bin, ...only]), /^playground +(\S+)/);
  expect(await ask(`${base}v1`)).toBe(ANSWER);
  const page = await (await fetch(base!)).text();
  const [script] = /assets\/index-[\w-]+\.js/.exec(page)!;
  const paths = [script, 'models/index.json', 'models/parley-chat/config.json', 'models/silero-vad/model.safetensors', 'espeak/index.js'];
  const answers = await Promise.all(paths.map(async (path) => (await fetch(base! + path)).status));
  expect(answers).toEqual(paths.map(() => 200));
});

test('without the bundled models the command and the library say what to do', () => {
  const bin = join(installed.folder, 'node_modules/parley/dist/node/parley.js');
  // Outside of the other folder, whose packages Node would find.
  const bare = mkdtempSync(join(tmpdir(), 'parley-bare-'));
  onTestFinished(() => rmSync(bare, { recursive: true, force: true }));
  mkdirSync(join(bare, 'node_modules'), { recursive: true });
  cpSync(join(modules, 'parley'), join(bare, 'node_modules/parley'), { recursive: true });
  for (const name of readdirSync(modules).filter((other) => !['parley', 'parley-models'].includes(other)))
    symlinkSync(join(modules, name), join(bare, 'node_modules', name), 'junction');
  const own = bin.replace(installed.folder, bare);
  expect(() => run(process.execPath, [own], bare)).toThrow(/the bundled models are not installed: install the package parley-models/);
  const program = `import { Parley } from 'parley'; await Parley.load({ chat: 'models/parley-chat' }).catch(({ status, message }) => console.log(status, message));`;
  expect(run(process.execPath, ['--input-type=module', '-e', program], bare)).toBe(
    '404 404 the bundled models are not installed: install the package parley-models beside this one\n',
  );
});

describe('examples of the library', () => {
  test('node.mjs answers, speaks and hears', () => {
    expect(run(process.execPath, ['node.mjs'], installed.folder)).toMatch(
      /^The capital of France is Paris\.\nheard: The capital of France is \w+\.\n$/,
    );
  });

  test('express.mjs has the chat listener below its own path', async () => {
    const [, base] = await lineOf(start(['express.mjs'], { PORT: '0' }), /^listening on (\S+)/);
    expect(await ask(`${base}/ai/v1`)).toBe(ANSWER);
    expect(await (await fetch(base!)).text()).toMatch(/Chat is at/);
  });

  test('ai-sdk.mjs answers through the AI SDK, whole and streamed', () => {
    expect(run(process.execPath, ['ai-sdk.mjs'], installed.folder)).toBe(`${ANSWER} (26 tokens)\n${ANSWER}\n`);
  });

  describe.skipIf(!findChromium())('in a page', () => {
    /** Serves folders on a port of its own; `cors` = to pages of other origins too, as a CDN does. */
    async function serve(folder: string, cors = false): Promise<string> {
      const app = express();
      app.use((_request, response, next) => {
        if (cors) response.set('access-control-allow-origin', '*');
        next();
      });
      app.use(express.static(folder));
      const server = app.listen(0, '127.0.0.1');
      await once(server, 'listening');
      onTestFinished(() => {
        server.closeAllConnections();
        server.close();
      });
      return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
    }

    let browser: Browser;
    beforeAll(async () => {
      writeFileSync(join(installed.folder, 'blank.html'), '<!doctype html>');
      browser = await launchChromium();
    });
    afterAll(() => browser?.close());

    async function answerOf(url: string): Promise<string> {
      const page = await browser.newPage();
      const said: string[] = [];
      page.on('console', (message) => said.push(message.text()));
      const failed = new Promise<never>((_, reject) =>
        page.on('pageerror', (error) => reject(new Error(`${error.message}\n${said.join('\n')}`))),
      );
      await page.goto(url);
      await Promise.race([page.waitForFunction("document.title === 'answered'", undefined, { timeout: 0 }), failed]);
      const answer = (await page.textContent('#answer'))!;
      await page.close();
      return answer;
    }

    test('tab.html answers with packages of its own site, and of another', async () => {
      const site = await serve(installed.folder);
      expect(await answerOf(`${site}/tab.html`)).toBe(ANSWER);
      const cdn = await serve(modules, true);
      expect(await answerOf(`${site}/tab.html?packages=${cdn}`)).toBe(ANSWER);
    });

    test('what stops loading has the status and the code that it has in Node, and words for who has no playground', async () => {
      const page = await browser.newPage();
      const cors = { 'access-control-allow-origin': '*', 'access-control-expose-headers': '*' };
      await page.route('https://huggingface.co/**', (route) =>
        route.fulfill({ status: 401, headers: { ...cors, 'x-error-code': 'GatedRepo' }, body: '{}' }),
      );
      // Its size is told, and the file is not given.
      await page.route('https://files.test/**', (route) =>
        route.request().method() === 'HEAD'
          ? route.fulfill({ headers: { ...cors, 'content-length': '9' } })
          : route.fulfill({ status: 500, headers: cors }),
      );
      await page.goto(`${await serve(installed.folder)}/blank.html`);
      const refusal = (chat: string): Promise<string> =>
        page.evaluate(`import('./node_modules/parley/dist/browser/index.js')
          .then(({ Parley }) => Parley.load({ chat: ${JSON.stringify(chat)} }))
          .then(() => 'loaded', ({ name, code, param, message }) => [name, code, param, message].join(' '))`);
      expect(await refusal('some/model')).toMatch(
        /^PermissionDeniedError model_denied chat .*, then fetch it with `npx parley pull`, and name the address of its folder$/,
      );
      expect(await refusal('./a.gguf')).toMatch(/^BadRequestError model_syntax chat (?!.*button).*no address of a folder/);
      expect(await refusal('https://files.test/a.gguf')).toBe(
        'InternalServerError model_network chat 503 a.gguf could not be fetched: HTTP 500',
      );
      // Folders of this site, and of others; the last does not let pages of other sites read what it has.
      for (const [name, status] of [
        ['gone', 404],
        ['closed', 403],
        ['broken', 500],
      ] as const)
        await page.route(`https://folders.test/${name}/**`, (route) => route.fulfill({ status, headers: cors }));
      expect(await refusal('./none')).toMatch(/^NotFoundError model_missing chat 404 there is no model at http:.*\/none: /);
      expect(await refusal('https://folders.test/gone/')).toMatch(/^NotFoundError model_missing chat 404 there is no model at /);
      expect(await refusal('https://folders.test/closed')).toMatch(/^PermissionDeniedError model_denied chat 403 .*HTTP 403$/);
      expect(await refusal('https://folders.test/broken')).toMatch(/^InternalServerError model_network chat 503 .*HTTP 500$/);
      expect(await refusal(`${await serve(modules)}/parley-models/models/parley-chat`)).toMatch(
        /^InternalServerError model_unreachable chat 503 .*\(CORS\)$/,
      );
      await page.close();
    });

    test('speaks, with espeak-ng from its own package', async () => {
      const page = await browser.newPage();
      const asked: string[] = [];
      page.on('response', (response) => void asked.push(response.url()));
      await page.goto(`${await serve(installed.folder)}/blank.html`);
      const seconds = await page.evaluate(`import('./node_modules/parley/dist/browser/index.js').then(async ({ Parley }) => {
        const parley = await Parley.load({ speech: './node_modules/parley-models/models/parley-speech' });
        const body = { model: 'tts-1', input: 'Hello there, my friend.', voice: 'nona', response_format: 'pcm', seed: 7 };
        const sound = await (await parley.audio.speech.create(body)).arrayBuffer();
        await parley.close();
        return sound.byteLength / 2 / 24000;
      })`);
      expect(seconds).toBeGreaterThan(1);
      const files = asked.flatMap((url) => /parley-espeak\/(\S+)/.exec(url)?.[1] ?? []);
      expect(files.sort()).toEqual(['en_dict.js', 'espeak-ng.js', 'first.js', 'index.js']);
      await page.close();
    });

    test('two GGUF files of one name at two addresses are two models', async () => {
      const page = await browser.newPage();
      for (const name of ['qwen3', 'llama'])
        await page.route(`https://files.test/${name}/m.gguf`, (route) => {
          const body = readFileSync(join(ROOT, `test/fixtures/gguf/tiny/${name}-Q8_0.gguf`));
          const headers = {
            'access-control-allow-origin': '*',
            'access-control-expose-headers': '*',
            'content-length': String(body.length),
          };
          return route.fulfill({ headers, body: route.request().method() === 'HEAD' ? '' : body });
        });
      await page.goto(`${await serve(installed.folder)}/blank.html`);
      const answers = (names: string): Promise<string[]> =>
        page.evaluate(`import('./node_modules/parley/dist/browser/index.js').then(({ Parley }) => Promise.all(${names}.map(async (name) => {
          const parley = await Parley.load({ chat: 'https://files.test/' + name + '/m.gguf' });
          const body = { messages: [{ role: 'user', content: 'hi' }], max_tokens: 12, temperature: 0 };
          const { choices } = await parley.chat.completions.create(body);
          await parley.close();
          return choices[0].message.content;
        })))`);
      const [[qwen], [llama]] = [await answers("['qwen3']"), await answers("['llama']")];
      expect(qwen).not.toBe(llama);
      expect(await answers("['qwen3', 'llama']")).toEqual([qwen, llama]);
      await page.close();
    });

    test('what is stored loads without a network, and what is pinned asks nobody', async () => {
      const page = await browser.newPage();
      const body = readFileSync(join(ROOT, 'test/fixtures/gguf/tiny/qwen3-Q8_0.gguf'));
      const headers = { 'access-control-allow-origin': '*', 'access-control-expose-headers': '*', 'content-length': String(body.length) };
      const asked: string[] = [];
      let isOffline = false;
      await page.route('https://files.test/**', (route) => {
        asked.push(route.request().method());
        return isOffline ? route.abort('internetdisconnected') : route.fulfill({ headers, body: asked.at(-1) === 'HEAD' ? '' : body });
      });
      await page.goto(`${await serve(installed.folder)}/blank.html`);
      const load = (source: string): Promise<string> =>
        page.evaluate(`import('./node_modules/parley/dist/browser/index.js').then(async ({ Parley }) => {
          const lines = [];
          const parley = await Parley.load({ chat: ${JSON.stringify(source)}, log: (line) => lines.push(line) });
          await parley.close();
          return parley.models[0].id + ' ' + lines.filter((line) => line.endsWith('what is stored is used')).length;
        }).catch(({ code }) => code)`);
      const pinned = `https://files.test/pinned.gguf#sha256=${createHash('sha256').update(body).digest('hex')}`;
      expect(await load('https://files.test/m.gguf')).toBe('m 0');
      expect(await load(pinned)).toBe('pinned 0');
      isOffline = true;
      asked.length = 0;
      expect(await load('https://files.test/m.gguf')).toBe('m 1');
      expect(asked).toEqual(['HEAD']);
      expect(await load(pinned)).toBe('pinned 0');
      expect(asked).toEqual(['HEAD']);
      expect(await load('https://files.test/other.gguf')).toBe('model_unreachable');
      await page.close();
    });

    test('worker/ is built by Vite and answers', async () => {
      const folder = join(installed.folder, 'worker');
      cpSync(join(modules, 'parley-models/models/parley-chat'), join(folder, 'public/parley-chat'), { recursive: true });
      run(process.execPath, [join(ROOT, 'node_modules/vite/bin/vite.js'), 'build', '--logLevel', 'error'], folder);
      expect(await answerOf(`${await serve(join(folder, 'dist'))}/index.html`)).toBe(ANSWER);
    });
  });
});
