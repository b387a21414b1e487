/** Files that people upload, as ffmpeg's arguments. */

export interface UploadKind {
  /** Of the file, with its extension. */
  readonly name: string;
  readonly args: readonly string[];
  /** Hz that the codec has. */
  readonly rates: readonly number[];
  readonly channels: readonly number[];
  /** Seconds that ffmpeg leaves out of what the encoder put before the sound, and Parley does not. */
  readonly apart?: number;
}

const PHONE = [8000] as const;
const ALL = [8000, 11025, 16000, 22050, 44100, 48000] as const;
const HIGH = [...ALL, 96000] as const;
const MPEG = [8000, 16000, 22050, 44100, 48000] as const;
const MP2 = [16000, 22050, 44100, 48000] as const;
const OPUS = [8000, 16000, 48000] as const;
const [ONE, TWO, SIX] = [[1], [1, 2], [1, 2, 6]] as const;

const kind = (name: string, text: string, rates: readonly number[], channels: readonly number[]): UploadKind => ({
  name,
  args: text.split(' '),
  rates,
  channels,
});

const PCM = ['u8', 's16le', 's24le', 's32le', 'f32le', 'f64le'].flatMap((sample) => [
  kind(`${sample}.wav`, `-c:a pcm_${sample}`, HIGH, SIX),
  kind(`${sample}.w64`, `-c:a pcm_${sample}`, ALL, TWO),
]);
const BIG = ['s8', 's16be', 's24be', 's32be', 'f32be', 'f64be', 'mulaw', 'alaw'].map((sample) => kind(`${sample}.au`, `-c:a pcm_${sample}`, ALL, TWO)); // prettier-ignore
const AIFF = ['s16be', 's24be', 's32be', 'f32be', 'f64be', 'mulaw', 'alaw'].map((sample) => kind(`${sample}.aiff`, `-c:a pcm_${sample}`, ALL, TWO)); // prettier-ignore

/** Every container with every codec that is read in it. */
export const UPLOADS: readonly UploadKind[] = [
  ...PCM,
  ...BIG,
  ...AIFF,
  kind('rf64.wav', '-rf64 always', ALL, TWO),
  kind('bwf.wav', '-write_bext 1 -metadata description=call', ALL, TWO),
  kind('mulaw.wav', '-c:a pcm_mulaw', ALL, TWO),
  kind('alaw.wav', '-c:a pcm_alaw', ALL, TWO),
  kind('adpcm-ms.wav', '-c:a adpcm_ms', ALL, TWO),
  kind('adpcm-ima.wav', '-c:a adpcm_ima_wav', ALL, TWO),
  kind('adpcm-ms.w64', '-c:a adpcm_ms', ALL, TWO),
  kind('gsm.wav', '-c:a libgsm_ms', PHONE, ONE),
  kind('mp3.wav', '-c:a libmp3lame', MPEG, TWO),
  kind('cbr.mp3', '-c:a libmp3lame -b:a 64k', MPEG, TWO),
  kind('vbr.mp3', '-c:a libmp3lame -q:a 6', MPEG, TWO),
  kind('mp2.mp2', '-c:a mp2 -b:a 64k', MP2, TWO),
  kind('flac.flac', '-c:a flac', HIGH, SIX),
  kind('flac24.flac', '-c:a flac -sample_fmt s32 -bits_per_raw_sample 24', HIGH, SIX),
  kind('flac.ogg', '-c:a flac', ALL, TWO),
  kind('vorbis.ogg', '-c:a libvorbis', [...ALL, 96000], SIX),
  kind('opus.opus', '-c:a libopus -mapping_family 1', OPUS, SIX),
  kind('opus60.ogg', '-c:a libopus -frame_duration 60 -application voip', OPUS, TWO),
  kind('aac.m4a', '-c:a aac', HIGH, SIX),
  kind('aac.mov', '-c:a aac', ALL, TWO),
  kind('aac.3gp', '-c:a aac', ALL, TWO),
  kind('alac.m4a', '-c:a alac', HIGH, TWO),
  kind('opus.mp4', '-c:a libopus -mapping_family 1 -strict -2', OPUS, SIX),
  kind('pcm.mov', '-c:a pcm_s16le', ALL, TWO),
  kind('fragments.mp4', '-c:a aac -movflags frag_keyframe+empty_moov+default_base_moof -frag_duration 500000', ALL, TWO),
  kind('faststart.m4a', '-c:a aac -movflags +faststart', ALL, TWO),
  kind('aac.aac', '-c:a aac', ALL, SIX),
  kind('opus.webm', '-c:a libopus -mapping_family 1', OPUS, SIX),
  kind('live.webm', '-c:a libopus -live 1', OPUS, TWO),
  kind('vorbis.webm', '-c:a libvorbis', ALL, TWO),
  kind('aac.mkv', '-c:a aac', ALL, TWO),
  { ...kind('mp3.mkv', '-c:a libmp3lame', MPEG, TWO), apart: 0.01 },
  kind('flac.mkv', '-c:a flac', ALL, TWO),
  kind('pcm.mkv', '-c:a pcm_s16le', ALL, TWO),
  kind('pcm.caf', '-c:a pcm_s24be', ALL, TWO),
  kind('alac.caf', '-c:a alac', ALL, TWO),
  kind('ima4.caf', '-c:a adpcm_ima_qt', ALL, TWO),
  kind('aac.flv', '-c:a aac', ALL, TWO),
  kind('mp3.flv', '-c:a libmp3lame', [11025, 22050, 44100], TWO),
  kind('pcm.flv', '-c:a pcm_s16le', [11025, 22050, 44100], TWO),
  kind('mulaw.flv', '-c:a pcm_mulaw', PHONE, ONE),
];
