/** Schemas of what the speech listener answers besides audio. */
import { z } from 'zod';
import { count, named } from '../http/answers.ts';
import type { Sent } from '../http/answers.ts';

/** An event of a stream of speech. */
export const speechEventSchema = z
  .discriminatedUnion('type', [
    named('SpeechAudioDelta', 'A piece of the audio', {
      type: z.literal('speech.audio.delta'),
      audio: z.string().describe('Base64; all pieces together are the file'),
    }),
    named('SpeechAudioDone', 'The end of the audio', {
      type: z.literal('speech.audio.done'),
      usage: z.object({ input_tokens: count, output_tokens: count, total_tokens: count }),
    }),
  ])
  .meta({
    id: 'SpeechStreamEvent',
    description:
      'An event of a stream; `speech.audio.done` is the last, without `[DONE]`. A failure on the way is an event with an Error instead',
  });
export type SpeechStreamEvent = Sent<typeof speechEventSchema>;

export const voicesSchema = named('VoiceList', 'Voices, then their other names', {
  voices: z.array(
    named('Voice', 'A voice, or another name of one or of a blend', {
      id: z.string(),
      name: z.string(),
      language: z.string().optional().describe('Of a voice: the language that it speaks'),
      alias_of: z.string().optional().describe('Of another name of a single voice: that voice'),
      made_of: z.record(z.string(), z.number()).optional().describe('Of another name: shares of voices'),
    }),
  ),
});
export type VoiceList = Sent<typeof voicesSchema>;
