/** A whole transcript in each of the formats that clients ask for. */
import type { Response } from 'express';
import type { TokenLogprob, TranscriptSegment, TranscriptWord, TranscriptionEvent, TranscriptionRequest } from '../../engine/api.ts';
import { toSubtitles } from '../../engine/util/subtitles.ts';
import { englishName } from './schema.ts';
import type { Granularity, TranscriptFormat } from './schema.ts';

type Part<Type extends TranscriptionEvent['type']> = Extract<TranscriptionEvent, { type: Type }>;

/** Everything the engine said of one transcription. */
export interface Transcript {
  readonly task: NonNullable<TranscriptionRequest['task']>;
  readonly start: Part<'start'>;
  readonly segments: readonly TranscriptSegment[];
  readonly finish: Part<'finish'>;
}

/** Sends a transcript as one body; `granularities` are those of verbose_json. */
export function sendTranscript(
  response: Response,
  { format, granularities }: { readonly format: TranscriptFormat; readonly granularities: readonly Granularity[] },
  transcript: Transcript,
): void {
  const { finish, segments } = transcript;
  const usage = { type: 'duration', seconds: Math.ceil(finish.duration) };
  if (format === 'text') response.type('text/plain; charset=utf-8').send(`${finish.text}\n`);
  else if (format === 'srt') response.type('text/plain; charset=utf-8').send(toSubtitles(format, segments));
  else if (format === 'vtt') response.type('text/vtt; charset=utf-8').send(toSubtitles(format, segments));
  else if (format === 'verbose_json') response.json({ ...verbose(transcript, granularities), usage });
  else response.json({ text: finish.text, ...logprobsOf(segments), usage });
}

/** Of the tokens of segments, where they were asked for: an object to spread. */
export function logprobsOf(segments: readonly TranscriptSegment[]): { readonly logprobs?: readonly TokenLogprob[] } {
  return segments.some(({ logprobs }) => logprobs) ? { logprobs: segments.flatMap(({ logprobs = [] }) => logprobs) } : {};
}

/** A segment as the event of a stream has it: its id is text there, as OpenAI has it. */
export function shownSegment({ id, start, end, text }: TranscriptSegment): object {
  return { id: `seg_${id}`, start: milliseconds(start), end: milliseconds(end), text };
}

function verbose({ task, start, segments, finish }: Transcript, granularities: readonly Granularity[]): object {
  const language = englishName(task === 'translate' ? 'en' : start.language);
  const shown = segments.map(({ id, seek, start: from, end, text, tokens, temperature, avgLogprob, compressionRatio, noSpeechProb }) => ({
    id, seek, start: milliseconds(from), end: milliseconds(end), text, tokens, temperature, avg_logprob: avgLogprob,
    compression_ratio: compressionRatio, no_speech_prob: noSpeechProb,
  })); // prettier-ignore
  const words = segments.flatMap((segment) => segment.words ?? []);
  return {
    task,
    language,
    ...(start.detected && { detected_language: englishName(start.detected.language), language_probability: start.detected.probability }),
    duration: finish.duration,
    text: finish.text,
    ...(granularities.includes('segment') && { segments: shown }),
    ...(granularities.includes('word') && { words: words.map(shownWord) }),
  };
}

const shownWord = ({ text, start, end }: TranscriptWord): object => ({
  word: text.trim(),
  start: milliseconds(start),
  end: milliseconds(end),
});

/** No more digits than the model tells. */
const milliseconds = (seconds: number): number => Math.round(seconds * 1000) / 1000;
