/** Formats transcripts: a whole one in each response format, and the events of a stream. */
import type { TokenLogprob, TranscriptSegment, TranscriptWord, TranscriptionEvent, TranscriptionRequest } from '../../engine/api.ts';
import { spaceBefore } from '../../engine/util/spaces.ts';
import { toSubtitles } from '../../engine/util/subtitles.ts';
import type { TranscriptAnswer, TranscriptEvent, VerboseTranscript } from './answer-schema.ts';
import { englishName } from './languages.ts';
import type { Granularity, TranscriptFormat, TranscriptionCall } from './schema.ts';

type Part<Type extends TranscriptionEvent['type']> = Extract<TranscriptionEvent, { type: Type }>;

/** All events of one transcription. */
export interface Transcript {
  readonly task: NonNullable<TranscriptionRequest['task']>;
  readonly start: Part<'start'>;
  readonly segments: readonly TranscriptSegment[];
  readonly finish: Part<'finish'>;
}

/** Collects the events of a transcription. Throws TypeError if the engine ends without `start` or `finish`. */
export async function collect(
  events: AsyncIterable<TranscriptionEvent>,
  { request: { task = 'transcribe' } }: Pick<TranscriptionCall, 'request'>,
): Promise<Transcript> {
  const segments: TranscriptSegment[] = [];
  let start: Part<'start'> | undefined;
  let finish: Part<'finish'> | undefined;
  for await (const event of events) {
    if (event.type === 'start') start = event;
    else if (event.type === 'segment') segments.push(event.segment);
    else finish = event;
  }
  if (!start || !finish) throw new TypeError('the engine ended a transcription without its start or finish');
  return { task, start, segments, finish };
}

/** Formats a transcript as a response body: a string, or an object to be sent as JSON. `type` is its content type; `granularities` matter for verbose_json only. */
export function shownTranscript(
  { format, granularities }: { readonly format: TranscriptFormat; readonly granularities: readonly Granularity[] },
  transcript: Transcript,
): { readonly type: string; readonly body: string | TranscriptAnswer } {
  const { finish, segments } = transcript;
  const usage = { type: 'duration' as const, seconds: Math.ceil(finish.duration) };
  const plain = 'text/plain; charset=utf-8';
  if (format === 'text') return { type: plain, body: `${finish.text}\n` };
  if (format === 'srt') return { type: plain, body: toSubtitles(format, segments) };
  if (format === 'vtt') return { type: 'text/vtt; charset=utf-8', body: toSubtitles(format, segments) };
  if (format === 'verbose_json') return { type: 'application/json', body: { ...verbose(transcript, granularities), usage } };
  return { type: 'application/json', body: { text: finish.text, ...logprobsOf(segments), usage } };
}

/**
 * Converts a transcription to the events of a stream; an `undefined` only begins the stream. Deltas concatenate to the final text, which has no white space
 * around it, so a segment's trailing white space is held back until more text follows.
 */
export async function* transcriptEvents(
  events: AsyncIterable<TranscriptionEvent>,
  { segments: tellsSegments, request: { task } }: Pick<TranscriptionCall, 'segments' | 'request'>,
): AsyncGenerator<TranscriptEvent | undefined> {
  let language: string | undefined;
  let text = '';
  let held = '';
  const segments: TranscriptSegment[] = [];
  for await (const event of events) {
    if (event.type === 'start') {
      language = task === 'translate' ? 'en' : event.language;
      yield undefined;
    } else if (event.type === 'segment') {
      segments.push(event.segment);
      const grown = text === '' ? event.segment.text.trimStart() : held + spaceBefore(event.segment.text, language) + event.segment.text;
      const delta = grown.trimEnd();
      held = grown.slice(delta.length);
      text += delta;
      if (delta !== '') yield { type: 'transcript.text.delta', delta, ...logprobsOf([event.segment]) };
      if (tellsSegments) yield { type: 'transcript.text.segment', ...shownSegment(event.segment) };
    } else yield { type: 'transcript.text.done', text, ...logprobsOf(segments), usage: tokensOf(event) };
  }
}

const tokensOf = ({
  inputTokens,
  audioTokens,
  outputTokens,
}: Part<'finish'>): Extract<TranscriptEvent, { readonly usage: unknown }>['usage'] => ({
  type: 'tokens',
  input_tokens: inputTokens,
  input_token_details: { text_tokens: inputTokens - audioTokens, audio_tokens: audioTokens },
  output_tokens: outputTokens,
  total_tokens: inputTokens + outputTokens,
});

/** Log-probabilities of the segments' tokens, as an object to spread; empty unless they were asked for. */
function logprobsOf(segments: readonly TranscriptSegment[]): { readonly logprobs?: readonly TokenLogprob[] } {
  return segments.some(({ logprobs }) => logprobs) ? { logprobs: segments.flatMap(({ logprobs = [] }) => logprobs) } : {};
}

/** A segment as in the event `transcript.text.segment`, where OpenAI's ids are strings. */
function shownSegment({ id, start, end, text }: TranscriptSegment) {
  return { id: `seg_${id}`, start: milliseconds(start), end: milliseconds(end), text };
}

function verbose({ task, start, segments, finish }: Transcript, granularities: readonly Granularity[]): Omit<VerboseTranscript, 'usage'> {
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

const shownWord = ({ text, start, end }: TranscriptWord) => ({
  word: text.trim(),
  start: milliseconds(start),
  end: milliseconds(end),
});

/** Rounds seconds to milliseconds; the model's times are no finer. */
const milliseconds = (seconds: number): number => Math.round(seconds * 1000) / 1000;
