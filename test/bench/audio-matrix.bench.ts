/**
 * `npm run bench -- audio-matrix [answers] [uploads [PART OF A NAME]]`: every format, rate and delivery of spoken answers by ffprobe and ffmpeg (opened without a warning, in the right length), and uploads of every
 * container, codec, rate and number of channels that ffmpeg writes, against the clip or ffmpeg's own decoding of them in length (10 ms), and for one file a codec in words. Needs ffmpeg and
 * ffprobe with their usual libraries in PATH. Fails where one differs. Minutes, and only by name.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { decodeUpload } from '../../server/audio/upload/decode.ts';
import { postForm, postJson } from '../support/listeners.ts';
import { spawnAt, whenReady } from '../support/server-process.ts';
import { loadText } from './harness.ts';
import { UPLOADS } from './audio/upload-kinds.ts';

const CLIP = fileURLToPath(new URL('../fixtures/parley-transcribe/clip.wav', import.meta.url));
const CLIP_SECONDS = 2.01;
const RATES = [8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000] as const;
/** Seconds that two decoders of a file may differ by. */
const NEAR = 0.01;
const folder = mkdtempSync(join(tmpdir(), 'parley-audio-matrix-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const wrong: string[] = [];
const [part = '', named = ''] = process.argv.slice(2);
/** What ffprobe says of every file of its kind: ADTS, and MP3 and WAV whose lengths are open, as they are streamed (of ffmpeg's own WAV to a pipe too). */
const INHERENT =
  /^\[(aac|mp3|wav) @ \w+\] (Estimating duration from bitrate|Ignoring maximum wav data size|Packet corrupt \(stream = 0, dts = NOPTS\))/;

/** What a program says, and its complaints. */
function tool(
  name: 'ffmpeg' | 'ffprobe',
  args: readonly string[],
): { readonly out: Buffer; readonly complaints: string; readonly failed: boolean } {
  // What ffmpeg guesses of channels is no matter of the file.
  const level = name === 'ffprobe' ? 'warning' : 'error';
  const { stdout, stderr, status, error } = spawnSync(name, ['-hide_banner', '-v', level, ...args], { maxBuffer: 1 << 30 });
  if (error) throw new Error(`${name} cannot be run`, { cause: error });
  return { out: stdout, complaints: stderr.toString().trim(), failed: status !== 0 };
}

/** Seconds of a file as ffmpeg hears it at 16 kHz. */
function decodedSeconds(path: string): { readonly seconds: number; readonly complaints: string } {
  const { out, complaints } = tool('ffmpeg', ['-i', path, '-vn', '-ar', '16000', '-ac', '1', '-f', 's16le', '-']);
  return { seconds: out.length / 2 / 16000, complaints };
}

/** What stands around the sound of a format, in seconds at most: whole frames and the encoder's delay. MP3 says in its header, at its end, how much that is. */
function around(format: string, rate: number): number {
  return format === 'aac' ? (3 * 1024) / rate : format === 'mp3' ? (3 * 1152) / rate : 0;
}

async function checkAnswers(url: string): Promise<number> {
  const body = { model: 'tts-1', input: 'Hello there.', voice: 'nona', seed: 7 };
  const speak = async (fields: object): Promise<Buffer> => (await postJson(`${url}/audio/speech`, { ...body, ...fields })).bytes;
  const seconds = (await speak({ response_format: 'pcm' })).length / 2 / 24000;
  let count = 0;
  for (const format of ['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm']) {
    for (const rate of RATES) {
      for (const delivery of ['whole', 'audio', 'sse']) {
        count++;
        const answer = await speak({
          response_format: format,
          sample_rate: rate,
          ...(delivery !== 'whole' && { stream_format: delivery }),
        });
        const bytes = delivery === 'sse' ? ofEvents(answer.toString()) : answer;
        const problem =
          format === 'pcm' ? lengthProblem(bytes.length / 2 / rate, seconds, 0) : fileProblem(bytes, { format, rate, delivery, seconds });
        if (problem) wrong.push(`answer ${format} at ${rate} Hz, ${delivery}: ${problem}`);
      }
    }
  }
  return count;
}

function ofEvents(text: string): Buffer {
  const events = text.split('\n\n').filter((line) => line.startsWith('data: ')).map((line) => JSON.parse(line.slice(6)) as { type: string; audio?: string }); // prettier-ignore
  return Buffer.concat(events.map(({ audio = '' }) => Buffer.from(audio, 'base64')));
}

interface Spoken {
  readonly format: string;
  readonly rate: number;
  readonly delivery: string;
  readonly seconds: number;
}

function fileProblem(bytes: Buffer, { format, rate, delivery, seconds }: Spoken): string | undefined {
  const path = join(folder, `answer.${format}`);
  writeFileSync(path, bytes);
  const probe = tool('ffprobe', ['-show_entries', 'format=duration', '-of', 'csv=p=0', path]);
  const decoded = decodedSeconds(path);
  const complaints = [probe.complaints, decoded.complaints]
    .flatMap((all) => all.split('\n'))
    .filter((one) => one !== '' && ((delivery === 'whole' && format !== 'aac') || !INHERENT.test(one)));
  if (complaints.length > 0) return complaints.join('; ');
  const more = around(format, rate);
  // ADTS has no place for a length: ffprobe guesses it from the first frames.
  const declared = Number(probe.out.toString());
  if (delivery === 'whole' && format !== 'aac' && lengthProblem(declared, seconds, more))
    return `ffprobe says ${declared} s instead of ${seconds}`;
  return lengthProblem(decoded.seconds, seconds, format === 'mp3' && delivery === 'whole' ? 0 : more);
}

const lengthProblem = (found: number, wanted: number, more: number): string | undefined =>
  found > wanted - NEAR && found < wanted + more + NEAR ? undefined : `${found.toFixed(3)} s instead of ${wanted.toFixed(3)}`;

async function checkUploads(url: string): Promise<{ readonly files: number; readonly transcripts: number; readonly unmade: number }> {
  const count = { files: 0, transcripts: 0, unmade: 0 };
  for (const { name, args, rates, channels, apart = 0 } of UPLOADS.filter((one) => one.name.includes(part === 'uploads' ? named : ''))) {
    for (const rate of rates) {
      for (const many of channels) {
        const path = join(folder, `${rate}-${many}-${name}`);
        if (tool('ffmpeg', ['-y', '-i', CLIP, '-ar', `${rate}`, '-ac', `${many}`, ...args, path]).failed) {
          count.unmade++;
          continue;
        }
        count.files++;
        const label = `upload ${name}, ${rate} Hz, ${many} channels`;
        const problem = uploadProblem(path, apart);
        if (problem) wrong.push(`${label}: ${problem}`);
        else if (rate === rates.at(-1) && many === channels[0]) {
          count.transcripts++;
          const heard = await transcriptOf(url, path);
          const wav = `${path}.reference.wav`;
          tool('ffmpeg', ['-y', '-i', path, '-vn', '-c:a', 'pcm_s16le', '-f', 'wav', wav]);
          const wanted = await transcriptOf(url, wav);
          if (heard !== wanted) wrong.push(`${label}: heard "${heard}" instead of "${wanted}"`);
        }
      }
    }
  }
  return count;
}

function uploadProblem(path: string, apart: number): string | undefined {
  const samples = join(folder, 'samples');
  rmSync(samples, { force: true });
  try {
    const { samples: found } = decodeUpload(readFileSync(path), samples);
    // ffmpeg does not always cut at the end what the file says is none of the sound.
    const problem = lengthProblem(found.length / 16000, decodedSeconds(path).seconds, apart);
    return problem && lengthProblem(found.length / 16000, CLIP_SECONDS, 0) && problem;
  } catch (error) {
    return (error as Error).message;
  }
}

async function transcriptOf(url: string, path: string): Promise<string> {
  const { json } = await postForm(`${url}/audio/transcriptions`, [['model', 'whisper-1'], ['file', readFileSync(path)]]); // prettier-ignore
  return json.text;
}

const server = await whenReady(spawnAt(new URL('../../server/main.ts', import.meta.url), ['--chat-model=none']));
process.on('exit', () => server.child.kill('SIGKILL'));
const { speech, transcription } = server.urls;
if (speech === undefined || transcription === undefined) throw new Error(`the server did not start:\n${server.lines.join('\n')}`);
console.log(`date ${new Date().toISOString().slice(0, 16)}Z, load ${loadText()}`);
if (part !== 'uploads') console.log(`${await checkAnswers(speech)} answers`);
if (part !== 'answers') {
  const { files, transcripts, unmade } = await checkUploads(transcription);
  console.log(`${files} uploads, ${transcripts} of them transcribed; ffmpeg has no way to write ${unmade}`);
}
for (const one of wrong) console.log(one);
console.log(wrong.length === 0 ? 'none differs' : `${wrong.length} differ`);
process.exit(wrong.length === 0 ? 0 : 1);
