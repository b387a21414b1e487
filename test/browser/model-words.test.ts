/** What the page says of a model, and which voice it takes when the model changes. Without a browser. */
import { signal } from '@preact/signals';
import { describe, expect, test, vi } from 'vitest';
import type { SessionState } from '../../web/src/backend/session-state.ts';
import type { RemoteEngine } from '../../web/src/backend/remote-engine.ts';
import { aboutWords, languageCode, memoryWords, namedLanguages } from '../../web/src/models/about-words.ts';
import { aboutOf } from '../../web/src/models/manifest.ts';
import type { ModelAbout } from '../../web/src/models/manifest.ts';
import { ModelChoices } from '../../web/src/models/model-choices.ts';
import { ModelLibrary } from '../../web/src/models/model-library.ts';
import { ModelStore } from '../../web/src/models/model-store.ts';
import { ModelWorks, describeAmount } from '../../web/src/models/model-work.ts';
import { RecommendedWork, pageBytes, pageSource } from '../../web/src/models/recommended-work.ts';
import { Settings } from '../../web/src/settings.ts';
import { INTERFACE_VOICES, voiceFor } from '../../web/src/speak/voices.ts';
import { RECOMMENDED_MODELS, parseSource } from '../../sources/index.ts';

const KOKORO = ['af_bella', 'af_heart', 'bf_emma', 'bm_fable'];

test.each([
  [{ contextLength: 8192 }, ['8,192 tokens of context']],
  [{ voices: KOKORO, sampleRate: 24000 }, ['4 voices', '24 kHz']],
  [{ voices: ['one'], sampleRate: 22050 }, ['1 voice', '22.05 kHz']],
  [{ languages: ['en'] }, ['English']],
  [{ languages: ['en', 'de', 'yue'] }, ['English, German, Cantonese']],
  [{ languages: ['en', 'de', 'fr', 'es'] }, ['4 languages']],
  [{ format: 'onnx' }, []],
])('%o in words', (about, words) => {
  expect(aboutWords(about)).toEqual(words);
});

test('languages are listed by their names; what is no code keeps its own', () => {
  expect(namedLanguages(['en', 'x y', 'de'])).toEqual([['en', 'English'], ['de', 'German'], ['x y', 'x y']]); // prettier-ignore
});

test('a language that a server calls by its name has its code; what is no name stays as it is', () => {
  expect(['english', 'German', 'hawaiian', 'cantonese', 'hebrew', 'javanese'].map(languageCode)).toEqual([
    'en',
    'de',
    'haw',
    'yue',
    'he',
    'jv',
  ]);
  expect(['en', 'myanmar', ''].map(languageCode)).toEqual(['en', 'myanmar', '']);
});

test('a context is at most a tab has; memory is that of the weights and of a conversation that fills it', () => {
  const description = { id: 'm', task: 'chat', architecture: 'llama', weightBytes: 1e6, tokenBytes: 100 } as const;
  expect(aboutOf({ ...description, ownContextLength: 2000 })).toEqual({ contextLength: 2000, memoryBytes: 1.2e6 });
  expect(memoryWords(aboutOf({ ...description, ownContextLength: 2000 }))).toEqual(['about 1.2 MB of memory']);
  expect(aboutOf({ ...description, ownContextLength: 2000, windowBytes: 5000 }).memoryBytes).toBe(1.2e6 + 5000);
  const speech = { id: 'm', task: 'speech', architecture: 'kokoro', weightBytes: 1e6, sampleRate: 24000 } as const;
  expect(aboutOf(speech)).toEqual({ sampleRate: 24000, weightBytes: 1e6 });
  // What it computes with besides is known when it is loaded.
  expect(memoryWords(aboutOf(speech))).toEqual(['at least 1.0 MB of memory']);
  expect(memoryWords({})).toEqual([]);
  expect(aboutOf({ ...description, ownContextLength: 131072 })).toEqual({ contextLength: 8192, memoryBytes: 1e6 + 819200 });
});

test('a download says its share, its speed and the time that is left', () => {
  expect(describeAmount({ done: 0, total: 0 }, true)).toBe('');
  expect(describeAmount({ done: 45, total: 100 }, true)).toBe('45 % of 100 B');
  expect(describeAmount({ done: 45e6, total: 98e6, speed: 12e6, left: 5 }, true)).toBe('45 % of 98 MB · 12 MB/s · 5 s left');
  expect(describeAmount({ done: 98e6, total: 98e6, speed: 12e6, left: 0 }, true)).toBe('98 MB · checking');
});

describe('the voice', () => {
  test.each([
    ['the model has it', INTERFACE_VOICES, ['oni'], 'oni'],
    ['the own choice comes before the last one', KOKORO, ['af_bella', 'af_heart'], 'af_bella'],
    ['an own choice that is gone gives way', KOKORO, ['zf_gone', 'af_heart'], 'af_heart'],
    ['one voice stands for another model’s', KOKORO, ['aus-male-3'], 'bm_fable'],
    ['a blend stands for it: the first of the loudest', KOKORO, ['aus-female-2'], 'bf_emma'],
    ['nothing stands for it', ['x', 'y'], ['aus-male-3'], 'x'],
    ['the voices are not known yet', undefined, ['af_bella', 'oni'], 'af_bella'],
  ] as const)('%s', (_why, voices, chosen, expected) => {
    expect(voiceFor(voices, chosen)).toBe(expected);
  });

  test('and the language are kept for each model, through a change of models and back', () => {
    const settings = new Settings(undefined);
    const library = new ModelLibrary(new ModelStore());
    const about = (id: string, words: ModelAbout) =>
      ({ id, task: 'speech', modelType: '', source: 'local', files: [], about: words }) as const;
    for (const model of [
      about('toy', { voices: INTERFACE_VOICES }),
      about('kokoro', { voices: KOKORO }),
      about('english', { languages: ['en'] }),
      about('many', { languages: ['en', 'de'] }),
    ])
      library.add(model);
    const state = signal<SessionState>({ name: 'idle' });
    const sessions = { chat: { state }, speech: { state }, transcription: { state } };
    const choices = new ModelChoices({ settings, library, sessions, remote: {} as RemoteEngine });
    const use = (speech: string, transcription: string): void => settings.update('models', { speech, transcription });
    use('toy', 'many');
    choices.setVoice('oni');
    choices.setLanguage('de');
    use('kokoro', 'english');
    expect([choices.voice, choices.language]).toEqual([choices.about('speech')!.voices![0], '']);
    choices.setVoice('af_heart');
    use('toy', 'many');
    expect([choices.voice, choices.language]).toEqual(['oni', 'de']);
    use('kokoro', 'english');
    expect(choices.voice).toBe('af_heart');
    // What the engine says of a loaded model comes before what its files said.
    const info = {
      adapter: {} as never,
      models: [{ id: 'kokoro', task: 'speech', architecture: '', parameters: 0, weightBytes: 0, voices: ['x'] }],
    } as const;
    state.value = { name: 'ready', info };
    expect(choices.voice).toBe('x');
  });
});

describe('a preset', () => {
  const placeWith = (
    hub: string,
  ): { readonly recommended: RecommendedWork; readonly settings: Settings; readonly library: ModelLibrary } => {
    const settings = new Settings(undefined);
    const store = new ModelStore();
    const library = new ModelLibrary(store);
    const unload = (): void => {};
    const works = new ModelWorks({
      library,
      store,
      settings,
      sessions: { chat: { unload }, speech: { unload }, transcription: { unload } },
    });
    const describe = (): never => {
      throw new Error('nothing was found');
    };
    return { recommended: new RecommendedWork({ works, library, settings, finder: { hub, describe } }), settings, library };
  };
  const before = { chat: 'parley-chat', speech: 'parley-speech', transcription: 'parley-transcribe' };

  test('that has no room is refused before anything is asked for', async () => {
    vi.stubGlobal('navigator', {
      storage: { estimate: () => Promise.resolve({ quota: 2e9, usage: 1.9e9 }), persisted: () => Promise.resolve(false) },
    });
    const { recommended, settings } = placeWith('http://127.0.0.1:9');
    await recommended.getPreset('small');
    expect(recommended.note.value).toBe('the preset small takes 374 MB, and this browser gives this page 100 MB more');
    expect(settings.value.models).toEqual(before);
    vi.unstubAllGlobals();
  });

  test('that was paused needs room for what is missing yet', async () => {
    vi.stubGlobal('navigator', {
      storage: { estimate: () => Promise.resolve({ quota: 2e9, usage: 1.7e9 }), persisted: () => Promise.resolve(false) },
      locks: { request: () => Promise.reject(new Error('here the download begins')) },
    });
    const { recommended, library } = placeWith('http://127.0.0.1:9');
    const files = [{ name: 'm.gguf', size: 105e6, sha256: [] }];
    const manifest = { id: 'SmolLM2-135M-Instruct', task: 'chat', modelType: 'llama', source: 'hub', files } as const;
    library.stored.value = [{ manifest, bytes: 100e6, complete: false }];
    await recommended.getPreset('small');
    // 274 of 374 MB, and there are 300.
    expect(recommended.note.value).toBe('SmolLM2-135M-Instruct: here the download begins');
    vi.unstubAllGlobals();
  });

  test('that breaks off names the model and why, and changes no choice', async () => {
    vi.stubGlobal('navigator', { deviceMemory: 8 });
    const { recommended, settings } = placeWith('http://127.0.0.1:9');
    await recommended.getPreset('small');
    expect(recommended.note.value).toMatch(/^SmolLM2-135M-Instruct: the hub at http:\/\/127.0.0.1:9 cannot be reached/);
    expect(recommended.preset.value).toBeUndefined();
    expect(settings.value.models).toEqual(before);
    vi.unstubAllGlobals();
  });
});

test('every recommended model can be fetched by a page with its size', () => {
  for (const model of RECOMMENDED_MODELS) {
    expect(parseSource(pageSource(model)).kind).toBe('hub');
    expect(pageBytes(model)).toBeGreaterThan(1e6);
  }
});
