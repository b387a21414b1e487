/** What the page remembers of the person's choices, without a browser. */
import { describe, expect, test } from 'vitest';
import { DEFAULT_SETTINGS, Settings, mergeDefaults } from '../../web/src/settings.ts';

/** What a browser keeps for all tabs of the page. */
function memory(): { readonly items: Map<string, string>; readonly storage: Storage } {
  const items = new Map<string, string>();
  const storage = {
    getItem: (key: string) => items.get(key) ?? null,
    setItem: (key: string, text: string) => items.set(key, text),
  } as unknown as Storage;
  return { items, storage };
}

describe('settings', () => {
  test('take only what has the type of the default', () => {
    const found = { theme: 'dark', chat: { temperature: 'hot', topK: 40, unknown: 1 }, where: null };
    const merged = mergeDefaults(DEFAULT_SETTINGS, found);
    expect(merged.theme).toBe('dark');
    expect(merged.chat).toEqual({ ...DEFAULT_SETTINGS.chat, topK: 40 });
    expect(merged.where).toEqual(DEFAULT_SETTINGS.where);
  });

  test('survive a reload, and a storage that holds rubbish', () => {
    const { items, storage } = memory();
    new Settings(storage).update('speech', { voice: 'oni' });
    expect(new Settings(storage).value.speech.voice).toBe('oni');
    for (const key of items.keys()) items.set(key, '{');
    expect(new Settings(storage).value).toEqual(DEFAULT_SETTINGS);
  });

  test('of two tabs are kept side by side, field by field', () => {
    const { storage } = memory();
    const [one, other] = [new Settings(storage), new Settings(storage)];
    other.set('apiKey', 'secret');
    other.update('chat', { topK: 40 });
    other.update('speech', { voices: { 'some/model': 'oni' } });
    other.choose('chat', 'server');
    one.set('theme', 'dark');
    one.update('chat', { temperature: 0.5 });
    one.update('speech', { voices: { 'parley-speech': 'nona' } });
    one.choose('speech', 'server');
    const { theme, apiKey, chat, speech, where } = new Settings(storage).value;
    expect({ theme, apiKey, where }).toEqual({
      theme: 'dark',
      apiKey: 'secret',
      where: { chat: 'server', speech: 'server', transcription: 'tab' },
    });
    expect(chat).toEqual({ ...DEFAULT_SETTINGS.chat, topK: 40, temperature: 0.5 });
    expect(speech.voices).toEqual({ 'some/model': 'oni', 'parley-speech': 'nona' });
    // What another tab chooses changes nothing here until the next visit.
    expect(one.value.apiKey).toBe('');
  });

  test('a tab that cannot compute uses servers and keeps what the person chose', () => {
    const { storage } = memory();
    const settings = new Settings(storage);
    settings.choose('speech', 'server');
    settings.useServers();
    expect(settings.where.value).toEqual({ chat: 'server', speech: 'server', transcription: 'server' });
    // What is saved of something else takes nothing of it along.
    settings.update('speech', { voice: 'oni' });
    expect(new Settings(storage).where.value).toEqual({ chat: 'tab', speech: 'server', transcription: 'tab' });
    settings.choose('chat', 'tab');
    expect(settings.where.value).toEqual({ chat: 'tab', speech: 'server', transcription: 'server' });
    settings.choose('chat', 'server');
    expect(new Settings(storage).where.value.chat).toBe('server');
  });
});
