import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { DEFAULT_ENGINE_CONFIG, ENGINE_SETTINGS, headDrafts, promptLookup, resolveConfig, splitOf } from '../../engine/config.ts';
import type { EngineConfig } from '../../engine/config.ts';
import { defineSettings } from '../../engine/util/setting.ts';
import { parseKeys } from '../../server/access/keys.ts';
import { parseServerConfig } from '../../server/settings/config.ts';
import { VOICE_TABLE } from '../../engine/util/voices.ts';
import { FLAGS, flagName } from '../../server/settings/flags.ts';
import type { Flag } from '../../server/settings/flags.ts';
import { SettingsError, helpText, readSettings } from '../../server/settings/read.ts';

const noFile = (path: string): string => {
  throw new Error(`${path} is not there`);
};

describe('parseServerConfig', () => {
  test("has the interface document's values as defaults", () => {
    const config = parseServerConfig([], {});
    expect(config.engine).toMatchObject({
      maxRunningRequests: 128,
      contextLength: 32768,
      chunkedPrefillSize: 'auto',
      memFractionStatic: 0.8,
    });
    expect(config.host).toBe('0.0.0.0');
    expect(config.listeners).toEqual([
      { task: 'chat', port: 3000, modelId: 'parley-chat', aliases: [] },
      { task: 'speech', port: 3001, modelId: 'parley-speech', aliases: ['tts-1', 'tts-1-hd', 'gpt-4o-mini-tts'] },
      { task: 'transcription', port: 3002, modelId: 'parley-transcribe', aliases: ['whisper-1'] },
    ]);
    expect(config.engine.chat?.path).toBe(resolve('models/parley-chat'));
  });

  test("agrees with the engine's own defaults", () => {
    const { chat, speech, transcription, vad, ...rest } = parseServerConfig([], {}).engine;
    expect([chat, speech, transcription, vad].every(Boolean)).toBe(true);
    expect(parseServerConfig(['--vad-model', 'none'], {}).engine.vad).toBeUndefined();
    // The engine's process fills in what has no flag.
    expect(resolveConfig(rest)).toEqual(DEFAULT_ENGINE_CONFIG);
  });

  test('leaves a listener out whose model is none, and refuses to serve nothing', () => {
    const config = parseServerConfig(['--speech-model', 'none', '--transcription-model=none', '--served-model-name', 'bot'], {});
    expect(config.listeners).toEqual([{ task: 'chat', port: 3000, modelId: 'bot', aliases: [] }]);
    expect(config.engine.speech).toBeUndefined();
    expect(() => parseServerConfig(['--chat-model=none', '--speech-model=none', '--transcription-model=none'], {})).toThrow(SettingsError);
  });

  test("gives voices OpenAI's names unless told other ones", () => {
    expect(parseServerConfig([], {}).voiceAliases).toEqual(VOICE_TABLE);
    expect(parseServerConfig(['--voice-alias='], {}).voiceAliases.size).toBe(0);
    expect([...parseServerConfig(['--voice-alias', 'anna = oni,ben=vulcan|a(0.5)+b(0.5)'], {}).voiceAliases]).toEqual([['anna', ['oni']], ['ben', ['vulcan', 'a(0.5)+b(0.5)']]]); // prettier-ignore
    for (const wrong of ['anna', '=oni', 'anna=', 'a=b=c', 'anna=oni,anna=nona']) {
      expect(() => parseServerConfig(['--voice-alias', wrong], {})).toThrow(/--voice-alias .*: must be name=voice/);
    }
  });

  test('the phonemes of a speech request are bounded', () => {
    expect(parseServerConfig([], {}).engine.maxSpeechPhonemes).toBe(8192);
    expect(parseServerConfig(['--max-speech-phonemes', '500'], {}).engine.maxSpeechPhonemes).toBe(500);
  });

  test('speculative decoding is off unless asked for, and takes its numbers from the flags', () => {
    const lookup = (...argv: string[]) => promptLookup(parseServerConfig(argv, {}).engine);
    expect(lookup()).toBeUndefined();
    expect(lookup('--speculative-ngram')).toEqual({ draftTokens: 7, minMatch: 3, maxMatch: 5 });
    const window = ['--speculative-ngram-min-match-window-size', '4', '--speculative-ngram-max-match-window-size', '3'];
    expect(() => lookup('--speculative-ngram', ...window)).toThrow(/at least 4 and at most 3/);
    expect(lookup('--speculative-ngram', '--speculative-num-draft-tokens=2')).toEqual({ draftTokens: 2, minMatch: 3, maxMatch: 5 });
    const ofHead = (...flags: string[]) => headDrafts(parseServerConfig(flags, {}).engine);
    expect([ofHead(), ofHead('--speculative-mtp'), ofHead('--speculative-mtp', '--speculative-num-draft-tokens=1')]).toEqual([0, 3, 1]);
    expect(lookup('--speculative-mtp')).toBeUndefined();
    expect(() => lookup('--speculative-ngram', '--speculative-mtp')).toThrow(/guesses are made in one of the two ways/);
  });

  test('each task may have its own adapter', () => {
    expect(parseServerConfig([], {}).engine).not.toHaveProperty('chatAdapter');
    const argv = ['--adapter', 'A', '--chat-adapter', 'B#1', '--transcription-adapter=C'];
    const { adapter, chatAdapter, speechAdapter, transcriptionAdapter } = parseServerConfig(argv, {}).engine;
    expect([adapter, chatAdapter, speechAdapter, transcriptionAdapter]).toEqual(['A', 'B#1', undefined, 'C']);
  });

  test('a chat model is split where that is asked for, or several adapters are named', () => {
    const split = (...argv: string[]) => {
      const { engine } = parseServerConfig(argv, {});
      const [{ tpSize, ppSize }, { ppSplit, adapters }] = [splitOf(engine), engine];
      return [tpSize, ppSize, ppSplit, adapters];
    };
    expect(split()).toEqual([1, 1, 'auto', []]);
    expect(split('--tp-size', '2')).toEqual([2, 1, 'auto', []]);
    expect(split('--adapters', 'A, B#1')).toEqual([2, 1, 'auto', ['A', 'B#1']]);
    expect(split('--adapters=A,B', '--pp-size=2')).toEqual([1, 2, 'auto', ['A', 'B']]);
    expect(split('--tp-size=2', '--pp-size=2', '--pp-split=5,3', '--adapters=A,B')).toEqual([2, 2, [5, 3], ['A', 'B']]);
    const refused: [string[], RegExp][] = [
      [['--tp-size=0'], /--tp-size 0: must be auto or from 1 to 99/],
      [['--pp-size=two'], /--pp-size two: must be/],
      [['--pp-size=2', '--pp-split=4'], /must be auto or 2 numbers of layers/],
      [['--pp-size=2', '--pp-split=4,x'], /--pp-split 4,x: must be auto or a comma-separated list of integers/],
      [['--pp-size=2', '--pp-split=4,0'], /--pp-split 4,0: must be auto or at least 1/],
      [['--adapters=A,B,C'], /names 3 for the 2 parts/],
      [['--adapters=A'], /use --chat-adapter/],
    ];
    for (const [argv, message] of refused) expect(() => parseServerConfig(argv, {})).toThrow(message);
  });

  test('priorities are off, and so is cutting answers to the context, unless asked for', () => {
    const asked = parseServerConfig(
      ['--enable-priority-scheduling', '--priority-scheduling-preemption-threshold=3', '--auto-truncate-max-tokens'],
      {},
    );
    expect(asked.engine).toMatchObject({
      enablePriorityScheduling: true,
      prioritySchedulingPreemptionThreshold: 3,
      autoTruncateMaxTokens: true,
    });
  });

  test('refuses one port for two listeners, but not 0', () => {
    expect(() => parseServerConfig(['--speech-port', '3000'], {})).toThrow(/port 3000 is given to two/);
    expect(parseServerConfig(['--port', '0', '--speech-port', '0'], {}).listeners.map(({ port }) => port)).toEqual([0, 0, 3002]);
  });

  test('an address of IPv6 may have the brackets of a URL', () => {
    for (const given of ['[::1]', '::1']) expect(parseServerConfig(['--host', given], {}).host).toBe('::1');
  });

  test('hosts and origins are compared as browsers send them', () => {
    const { origins } = parseServerConfig(['--allowed-hosts', 'AI.example', '--cors-origin', 'https://App.Example/,http://a:8080'], {});
    expect(origins).toEqual({ allowedHosts: ['ai.example'], corsOrigins: ['https://app.example', 'http://a:8080'] });
    const origin = (given: string) => parseServerConfig(['--cors-origin', given], {}).origins.corsOrigins;
    expect(origin('https://a.example:443,http://a.example:80/,https://a.example:80')).toEqual(['https://a.example', 'http://a.example', 'https://a.example:80']); // prettier-ignore
    expect(origin('*,null,Chrome-Extension://AbC,https://bücher.example')).toEqual(['*', 'null', 'chrome-extension://abc', 'https://xn--bcher-kva.example']); // prettier-ignore
    const hosts = (given: string) => parseServerConfig(['--allowed-hosts', given], {}).origins.allowedHosts;
    expect(hosts('a.example:3000,*,::1,[::1]:80,bücher.example:80')).toEqual(['a.example', '*', '::1', '::1', 'xn--bcher-kva.example']);
  });

  test.each([
    ['--cors-origin', 'a.example'],
    ['--cors-origin', 'https://a.example/page'],
    ['--cors-origin', 'https://*.example'],
    ['--cors-origin', 'https://a.example:port'],
    ['--allowed-hosts', 'https://a.example'],
    ['--allowed-hosts', '*.example'],
    ['--allowed-hosts', 'a.example/page'],
  ])('%s %s could match nothing, and is refused', (flag, value) => {
    const message = flag === '--cors-origin' ? 'origins such as https://app.example:8443' : 'host names such as app.example';
    expect(() => parseServerConfig([flag, value], {})).toThrow(`${flag} ${value}: must be ${message}, or *`);
  });

  test('the language of speech is given as requests give it', () => {
    const language = (given: string) => parseServerConfig([`--transcription-language=${given}`], {}).engine.transcriptionLanguage;
    expect(['auto', 'de', 'EN', 'english', 'pt-BR', 'Mandarin'].map(language)).toEqual(['auto', 'de', 'en', 'en', 'pt', 'zh']);
    expect(() => language('xx')).toThrow(/^--transcription-language xx: must be auto or an ISO 639-1 code such as en$/);
  });

  test('shows every setting but the key', () => {
    const { shown, adminKey } = parseServerConfig(['--api-key', 'sesame', '--admin-key', 'sesame oil'], {});
    expect(adminKey).toBe('sesame oil');
    expect(JSON.stringify(shown)).not.toContain('sesame');
    expect(shown).toMatchObject({ port: 3000, 'tp-size': 'auto', 'attention-backend': 'paged' });
  });
});

describe('readSettings', () => {
  test('command line wins over environment, that over the file, that over defaults', () => {
    const file = JSON.stringify({ port: 1, 'speech-port': 2, transcription_port: 3, 'legacy-speech': false, 'cors-origin': ['a', 'b'] });
    const settings = readSettings(['--port', '10', '--config', 'x.json'], { PARLEY_PORT: '20', PARLEY_SPEECH_PORT: '21' }, () => file);
    const { port, speechPort, transcriptionPort, legacySpeech, corsOrigin, pageSize } = settings;
    expect([port, speechPort, transcriptionPort, legacySpeech, corsOrigin, pageSize]).toEqual([10, 21, 3, false, ['a', 'b'], 16]);
  });

  test('takes --name=value, switches and their opposites', () => {
    const settings = readSettings(['--host=::1', '--model-optional', '--no-legacy-speech', '--cors-origin', 'a, b'], {}, noFile);
    const { host, modelOptional, legacySpeech, corsOrigin } = settings;
    expect([host, modelOptional, legacySpeech, corsOrigin]).toEqual(['::1', true, false, ['a', 'b']]);
  });

  test.each([
    [['--colour', 'red'], /--colour: there is no such setting/],
    [['port'], /port: settings begin with --/],
    [['--port'], /--port needs a value/],
    [['--port', '--host'], /--port needs a value/],
    [['--port', 'abc'], /--port abc: must be an integer/],
    [['--port', '1.5'], /must be an integer/],
    [['--port', '70000'], /must be from 0 to 65535/],
    [['--mem-fraction-static', '1.5'], /must be from 0.05 to 1/],
    [['--device-memory', '6GB'], /--device-memory 6GB: must be a number \(GiB, without a unit\)/],
    [['--device-memory', '6000000000'], /must be from 0.1 to 16384 \(GiB, without a unit\)/],
    [['--drain-timeout', '3000000'], /--drain-timeout 3000000: must be from 0 to 2000000 \(seconds, without a unit\)/],
    [['--drain-delay', '5s'], /--drain-delay 5s: must be a number \(seconds, without a unit\)/],
    [['--dtype', 'int3'], /must be one of auto, f32, f16/],
    [['--legacy-speech=maybe'], /must be true or false/],
    [['--no-legacy-speech=false'], /^--no-legacy-speech takes no value; --legacy-speech=false says the same$/],
    [['--schedule-policy', 'random'], /must be one of lpm, fcfs/],
    [['--attention-backend', 'flashinfer'], /must be one of paged, triton/],
    [['--config', 'missing.json'], /--config missing.json: missing.json is not there/],
    [['--chat-model', ''], /^--chat-model is empty; give it a value or leave it out$/],
    [['--config='], /^--config is empty; /],
  ] as const)('%j is refused in one line', (argv, message) => {
    expect(() => readSettings(argv, {}, noFile)).toThrow(message);
    try {
      readSettings(argv, {}, noFile);
    } catch (error) {
      expect(error).toBeInstanceOf(SettingsError);
      expect((error as Error).message).not.toContain('\n');
    }
  });

  test.each([
    [['--config', 'no-such.json'], '--config no-such.json: there is no such file'],
    [['--config', 'docs'], '--config docs: is a folder, where a file is expected'],
    [['--api-keys', 'README.md/keys'], '--api-keys README.md/keys: there is no such file'],
    [['--tls-cert', 'docs', '--tls-key', 'docs'], '--tls-cert docs: is a folder, where a file is expected'],
  ])('%j: why a file cannot be read is said in words', (argv, message) => {
    expect(() => parseServerConfig(argv, {})).toThrow(message);
  });

  test.each([
    ['[]', /must hold a JSON object/],
    ['{', /--config x.json: /],
    ['{"colour": 1}', /'colour' in x.json: there is no such setting/],
    ['{"port": "x"}', /^'port' in x.json x: must be an integer$/],
    ['{"chat-alias": ["a", {"b": 1}]}', /^'chat-alias' in x.json .*: must be a comma-separated list$/],
    ['{"cors-origin": [null]}', /^'cors-origin' in x.json .*: must be a comma-separated list$/],
    ['{"chat_model": ""}', /^'chat-model' in x.json is empty; /],
  ])('a file holding %s is refused', (text, message) => {
    expect(() => readSettings(['--config', 'x.json'], {}, () => text)).toThrow(message);
  });
});

test('what is wrong is called by where it was given, wherever that is found out', () => {
  const refused = (env: Readonly<Record<string, string>>, message: RegExp) => expect(() => parseServerConfig([], env)).toThrow(message);
  refused({ PARLEY_API_KEYS: '/nope' }, /^PARLEY_API_KEYS=\/nope: there is no such file$/);
  refused({ PARLEY_TLS_CERT: '/nope', PARLEY_TLS_KEY: '/nope' }, /^PARLEY_TLS_CERT=\/nope: there is no such file$/);
  refused({ PARLEY_TLS_CERT: 'a' }, /^TLS needs both PARLEY_TLS_CERT and --tls-key$/);
  refused({ PARLEY_CONFIG: '/nope' }, /^PARLEY_CONFIG=\/nope: there is no such file$/);
  refused({ PARLEY_VOICE_ALIAS: 'a' }, /^PARLEY_VOICE_ALIAS=a: must be name=voice/);
  refused({ PARLEY_PP_SPLIT: '1,1' }, /^PARLEY_PP_SPLIT=1,1: must be auto or 1 numbers of layers, as --pp-size says$/);
  refused({ PARLEY_ADAPTERS: 'A' }, /^PARLEY_ADAPTERS names one/);
  refused({ PARLEY_CORS_ORIGIN: 'a' }, /^PARLEY_CORS_ORIGIN=a: must be origins/);
  refused({ PARLEY_SPECULATIVE_NGRAM: '1', PARLEY_SPECULATIVE_MTP: '1' }, /^PARLEY_SPECULATIVE_NGRAM and PARLEY_SPECULATIVE_MTP: guesses/);
  const window = { PARLEY_SPECULATIVE_NGRAM: '1', PARLEY_SPECULATIVE_NGRAM_MIN_MATCH_WINDOW_SIZE: '9' };
  refused(window, /^PARLEY_SPECULATIVE_NGRAM_MIN_MATCH_WINDOW_SIZE=9 and --speculative-ngram-max-match-window-size 5: /);
  const file = JSON.stringify({ voice_alias: ['a'] });
  const folder = mkdtempSync(join(tmpdir(), 'parley-settings-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'x.json'), file);
  expect(() => parseServerConfig(['--config', join(folder, 'x.json')], {})).toThrow(/^'voice-alias' in .*x\.json a: must be name=voice/);
  expect(() => readSettings(['--admin-api-key='], {}, noFile)).toThrow(/^--admin-api-key is empty/);
});

test('files may begin with the mark that Windows gives them', () => {
  const folder = mkdtempSync(join(tmpdir(), 'parley-mark-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [config, keys] = [join(folder, 'config.json'), join(folder, 'keys.json')];
  writeFileSync(keys, '\uFEFF{"keys": [{"name": "ann", "key": "secret"}]}');
  writeFileSync(config, `\uFEFF${JSON.stringify({ port: 4000, 'api-keys': keys })}`);
  const { listeners, keys: read } = parseServerConfig(['--config', config], {});
  expect([listeners[0]!.port, read!.rows[0]!.name]).toEqual([4000, 'ann']);
});

test('a variable is called by its name, and an empty key lets nobody start a server that nobody can use', () => {
  expect(() => readSettings([], { PARLEY_PORT: 'abc' }, noFile)).toThrow(/^PARLEY_PORT=abc: must be an integer$/);
  expect(() => readSettings([], { PARLEY_API_KEY: '' }, noFile)).toThrow(/^PARLEY_API_KEY is empty; give it a value or leave it out$/);
  expect(readSettings([], { PARLEY_VOICE_ALIAS: '' }, noFile).voiceAlias).toEqual([]);
});

test.each(['sesame\n', ' sesame', 'sesame\t', '  ', 'Schlüssel', 'ключ', 'a\nb'])(
  'nor does the key %j, which no request can bring',
  (key) => {
    for (const variable of ['PARLEY_API_KEY', 'PARLEY_ADMIN_KEY']) {
      const refusal = new RegExp(`^${variable}: a key is printable ASCII without white space at its ends`);
      expect(() => readSettings([], { [variable]: key }, noFile)).toThrow(refusal);
    }
    expect(() => parseKeys(JSON.stringify({ keys: [{ name: 'a', key }] }))).toThrow(/^'keys.0.key': a key is printable ASCII/);
    expect(() => readSettings(['--config', 'x.json'], {}, () => JSON.stringify({ 'api-key': key }))).toThrow(/^'api-key' in x.json: a key/);
  },
);

test('--help names every flag and every default', () => {
  const help = helpText();
  for (const flag of FLAGS) {
    expect(help).toContain(flag.default === true ? `--no-${flag.name}` : `--${flag.name}`);
    if (typeof flag.default === 'number') expect(help).toContain(`(${flag.default})`);
  }
  // The table of voices alone has a thousand characters.
  expect(help).toContain("(OpenAI's 13 names and the bundled model's 19: docs/audio.md)");
  for (const line of help.split('\n')) expect(line.length, line).toBeLessThan(300);
});

/** A value that the flag takes and that is not its default, and what the settings then hold. */
function sample(flag: Flag): { readonly raw: string; readonly value: unknown } {
  if (flag.type === 'boolean') return { raw: String(!flag.default), value: !flag.default };
  if (flag.type === 'list') return { raw: 'a,b', value: ['a', 'b'] };
  if (flag.type === 'string') return { raw: flag.choices?.at(-1) ?? 'x', value: flag.choices?.at(-1) ?? 'x' };
  const number = flag.max ?? Math.max(flag.min ?? 0, 1) * 3;
  return flag.type === 'ints' ? { raw: `${number},${number}`, value: [number, number] } : { raw: String(number), value: number };
}

describe('a setting is one row', () => {
  const operable = FLAGS.filter(({ key }) => key !== 'config');

  test.each(operable)('$key: flag, environment and file are made from it', (flag) => {
    const { raw, value } = sample(flag);
    const file = JSON.stringify({ [flag.name]: flag.type === 'boolean' ? value : raw });
    const upper = `PARLEY_${flag.name.toUpperCase().replaceAll('-', '_')}`;
    expect(flag.name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase())).toBe(flag.key);
    expect(readSettings([`--${flag.name}=${raw}`], {}, noFile)[flag.key]).toEqual(value);
    expect(readSettings([], { [upper]: raw }, noFile)[flag.key]).toEqual(value);
    expect(readSettings(['--config', 'x.json'], {}, () => file)[flag.key]).toEqual(value);
    const asDefault = readSettings([], {}, noFile)[flag.key];
    expect(asDefault).toEqual(flag.default);
  });

  test('every setting of the engine reaches it, in its units', () => {
    const offered = operable.filter(({ key }) => key in ENGINE_SETTINGS);
    expect(offered.length).toBe(Object.values(ENGINE_SETTINGS).filter((row) => 'group' in row).length);
    // Not all fit together: one at a time, and some not alone, or not whatever they are.
    for (const flag of offered.filter(({ key }) => !['adapters', 'ppSplit', 'transcriptionLanguage'].includes(key))) {
      const { raw, value } = sample(flag);
      const scale = 'scale' in flag ? (flag.scale ?? 1) : 1;
      const { engine } = parseServerConfig([`--${flag.name}=${raw}`], {});
      expect(engine).toMatchObject({ [flag.key]: typeof value === 'number' ? value * scale : value });
    }
  });

  test('help names other settings as flags', () => {
    for (const { help } of FLAGS) expect(help).not.toMatch(/\{\w+\}/);
    expect(FLAGS.find(({ key }) => key === 'tpSize')!.help).toContain('2 where --adapters has two');
  });

  test('what is misspelt does not compile', () => {
    const settings = readSettings([], {}, noFile);
    // @ts-expect-error there is no such setting
    expect(settings.kvCacheType).toBeUndefined();
    // @ts-expect-error nor has the engine one
    const wrongKey: Partial<EngineConfig> = { kvCacheDType: 'f16' };
    // @ts-expect-error and this is none of its choices
    const wrongValue: Partial<EngineConfig> = { kvCacheDtype: 'f8' };
    // @ts-expect-error a flag is made from a key
    const wrongFlag = flagName('kvCacheType');
    // @ts-expect-error the default is none of the choices
    defineSettings({ policy: { type: 'string', choices: ['lpm', 'fcfs'], default: 'lfu', help: '' } });
    // @ts-expect-error the default is no number, nor a word that may stand for one
    defineSettings({ size: { type: 'int', words: ['auto'], default: 'none', help: '' } });
    // @ts-expect-error there is no such part of a row
    defineSettings({ size: { type: 'int', default: 1, minimum: 1, help: '' } });
    // @ts-expect-error what has no default may be absent
    const name: string = settings.servedModelName;
    expect([wrongKey, wrongValue, wrongFlag, name]).toHaveLength(4);
  });
});
