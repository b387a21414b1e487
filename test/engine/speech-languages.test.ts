import { expect, test } from 'vitest';
import { byLanguage } from '../../web/src/speak/voices.ts';
import { SPEECH_LANGUAGES, languageOfVoice, speechLanguage, spokenAs } from '../../engine/util/speech-languages.ts';

test.each([
  ['es', 'es'],
  ['ES', 'es'],
  ['es-419', 'es'],
  ['e', 'es'],
  [' Spanish ', 'es'],
  ['en', 'en-us'],
  ['en-AU', 'en-us'],
  ['en_GB', 'en-gb'],
  ['b', 'en-gb'],
  ['English', 'en-us'],
  ['british english', 'en-gb'],
  ['pt', 'pt-br'],
  ['pt-PT', 'pt-br'],
  ['portuguese', 'pt-br'],
  ['fr-FR', 'fr'],
  ['hi-IN', 'hi'],
  ['it', 'it'],
  ['zh-CN', 'zh'],
  ['mandarin', 'zh'],
  ['Chinese', 'zh'],
  ['j', 'ja'],
  ['ja-JP', 'ja'],
] as const)('a request for %s is one for %s', (asked, language) => {
  expect(speechLanguage(asked)).toBe(language);
});

test.each(['', ' ', '-', 'xx', 'klingon', 'ese', 'q', 'nish', 'constructor'])('%s is no language', (asked) => {
  expect(speechLanguage(asked)).toBeUndefined();
});

test('a voice of published Kokoro tells its language by its name, others do not', () => {
  const voices = ['af_heart', 'bm_george', 'ef_dora', 'ff_siwis', 'hm_psi', 'if_sara', 'jm_kumo', 'pm_alex', 'zf_xiaoni'];
  expect(voices.map(languageOfVoice)).toEqual(['en-us', 'en-gb', 'es', 'fr', 'hi', 'it', 'ja', 'pt-br', 'zh']);
  for (const other of ['aus-female-1', 'charter', '_gantry', 'ef', 'xf_one', 'ex_two']) expect(languageOfVoice(other)).toBeUndefined();
  expect(new Set(Object.values(SPEECH_LANGUAGES).map(({ letter }) => letter)).size).toBe(Object.keys(SPEECH_LANGUAGES).length);
});

test('a language that is not spoken is read in another accent of it, or not at all', () => {
  expect(spokenAs('en-gb', ['en-us', 'es'])).toBe('en-us');
  expect(spokenAs('en-gb', ['en-us', 'en-gb'])).toBe('en-gb');
  expect(spokenAs('fr', ['en-us'])).toBeUndefined();
  expect(spokenAs(undefined, ['en-us'])).toBeUndefined();
});

test('the playground lists voices by language where there are several', () => {
  expect(byLanguage(['ef_dora', 'bm_lewis', 'af_sky', 'af_bella', 'mine'])).toEqual([
    [undefined, ['mine']],
    ['English', ['af_sky', 'af_bella']],
    ['British English', ['bm_lewis']],
    ['Spanish', ['ef_dora']],
  ]);
  expect(byLanguage(['vulcan', 'charter'])).toEqual([[undefined, ['charter', 'vulcan']]]);
  expect(byLanguage([])).toEqual([[undefined, []]]);
});
