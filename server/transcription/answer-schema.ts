/** Schemas of what the transcription listener answers besides plain text. */
import { z } from 'zod';
import { count, integer, named } from '../http/answers.ts';
import type { Sent } from '../http/answers.ts';

const logprobs = z
  .array(
    named('TranscriptionLogprob', 'A token that was heard', {
      token: z.string(),
      bytes: z.array(integer).describe('UTF-8 of the token, which may be a part of a character'),
      logprob: z.number(),
    }),
  )
  .optional()
  .describe('There if the request asked for it');

const usage = named('TranscriptionDuration', 'How much was transcribed', {
  type: z.literal('duration'),
  seconds: count.describe('Rounded up'),
});

const seconds = z.number().describe('Seconds from the start of the audio');

const segmentSchema = named('TranscriptionSegment', 'A piece of the text, with its times', {
  id: count,
  seek: count.describe("Start of the segment's window, in hundredths of a second"),
  start: seconds,
  end: seconds,
  text: z.string(),
  tokens: z.array(integer),
  temperature: z.number(),
  avg_logprob: z.number(),
  compression_ratio: z.number().describe('High where the model repeats itself'),
  no_speech_prob: z.number(),
});

/** The format json. */
const plainSchema = named('Transcription', 'A transcript in the format `json`', { text: z.string(), logprobs, usage });

/** The format verbose_json. */
const verboseSchema = named('TranscriptionVerbose', 'A transcript in the format `verbose_json`', {
  task: z.enum(['transcribe', 'translate']),
  language: z.string().describe('Name in English'),
  detected_language: z.string().optional().describe('The likeliest language, if the request named none'),
  language_probability: z.number().optional(),
  duration: z.number().describe('Seconds'),
  text: z.string(),
  segments: z.array(segmentSchema).optional(),
  words: z.array(named('TranscriptionWord', 'A word with its times', { word: z.string(), start: seconds, end: seconds })).optional(),
  usage,
});
export type VerboseTranscript = Sent<typeof verboseSchema>;

export const transcriptSchema = z.union([verboseSchema, plainSchema]);
export type TranscriptAnswer = Sent<typeof transcriptSchema>;

/** An event of a stream of text. */
export const transcriptEventSchema = z
  .discriminatedUnion('type', [
    named('TranscriptTextDelta', 'A piece of the text', { type: z.literal('transcript.text.delta'), delta: z.string(), logprobs }),
    named('TranscriptTextSegment', 'A segment with its times, if the request asked for those', {
      type: z.literal('transcript.text.segment'),
      id: z.string(),
      start: seconds,
      end: seconds,
      text: z.string(),
    }),
    named('TranscriptTextDone', 'The whole text', {
      type: z.literal('transcript.text.done'),
      text: z.string(),
      logprobs,
      usage: z.object({
        type: z.literal('tokens'),
        input_tokens: count,
        input_token_details: z.object({ text_tokens: count, audio_tokens: count }),
        output_tokens: count,
        total_tokens: count,
      }),
    }),
  ])
  .meta({
    id: 'TranscriptionStreamEvent',
    description:
      'An event of a stream. After `transcript.text.done` comes `data: [DONE]`. A failure on the way is an event with an Error instead',
  });
export type TranscriptEvent = Sent<typeof transcriptEventSchema>;
