import { describe, expect, test } from 'vitest';
import { MAX_AUDIO_SECONDS, decodeUpload } from '../../server/audio/decode.ts';
import { tone, wavFile } from '../support/wav-file.ts';

describe('decodeUpload', () => {
  test('gives 16 kHz mono', () => {
    const { samples, warnings } = decodeUpload(wavFile(tone(440, 48000, 0.5), { encoding: 's16', sampleRate: 48000 }));
    expect(samples).toHaveLength(8000);
    expect(warnings).toEqual([]);
  });

  test('refuses more sound than its budget before it decodes it', () => {
    const header = wavFile([], { encoding: 'u8', sampleRate: 4000, declaredSize: 0xffffffff });
    const file = new Uint8Array(header.length + 4000 * (MAX_AUDIO_SECONDS + 1));
    file.set(header);
    expect(() => decodeUpload(file)).toThrow(expect.objectContaining({ status: 413, code: 'request_too_large', param: 'file' }));
  });

  test.each([
    ['fLaC....', 'FLAC'],
    ['ID3.....', 'MP3'],
    ['OggS....', 'Ogg'],
    ['....ftypM4A ', 'MP4'],
    ['\x1aE\xdf\xa3....', 'WebM'],
    ['\xff\xd8\xff\xe0', 'JPEG'],
    ['\x89PNG....', 'PNG'],
    ['what', 'no known audio format'],
  ])('names what %j is', (start, name) => {
    expect(() => decodeUpload(Buffer.from(start, 'latin1'))).toThrow(
      expect.objectContaining({ code: 'unsupported_audio', message: expect.stringContaining(name) }),
    );
  });
});
