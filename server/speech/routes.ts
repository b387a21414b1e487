/** The speech listener: POST /v1/audio/speech in both request forms, GET /v1/audio/voices. */
import type { Express, Response } from 'express';
import type { SpeechEvent } from '../../engine/api.ts';
import { createApp } from '../listener/app.ts';
import { ListenerContext } from '../listener/context.ts';
import type { AppOptions, Job } from '../listener/context.ts';
import { modelLoading } from '../http/errors.ts';
import { binary } from '../http/answers.ts';
import { jsonBody } from '../body/describe.ts';
import { speechEventSchema, voicesSchema } from './answer-schema.ts';
import type { VoiceList } from './answer-schema.ts';
import { describeSpeechBody, parseSpeechBody, speechSettings } from './schema.ts';
import type { SpeechLimits, SpeechSettings } from './schema.ts';
import { AUDIO_TYPES, nameField, speak } from './speak.ts';
import type { Encoders, Outlet } from './speak.ts';
import { countAudio } from '../listener/relay.ts';
import type { AudioCount } from '../listener/relay.ts';
import { EVENT_TYPE, JSON_TYPE } from '../http/route.ts';
import type { Route } from '../http/route.ts';
import { EventStream, writeWithPressure } from '../http/sse.ts';
import { languageOfVoice, spokenAs } from '../../engine/util/speech-languages.ts';
import type { SpeechLanguage } from '../../engine/util/speech-languages.ts';
import { VOICE_TABLE, parseBlend, resolveVoices } from '../../engine/util/voices.ts';
import type { VoiceTable } from '../../engine/util/voices.ts';

export interface SpeechAppOptions extends AppOptions, Partial<SpeechSettings> {
  readonly codec: Encoders;
  /** Other names of voices; default: VOICE_TABLE. Names of voices that the model lacks are dropped. */
  readonly voiceAliases?: VoiceTable;
}

/** Makes the app of the speech listener; it does nothing until it is listened on. */
export function createSpeechApp(options: SpeechAppOptions): Express {
  const context = new ListenerContext('speech', options);
  return createApp(context, [speechRoute(context, options), voicesRoute(context, options)]);
}

function speechRoute(context: ListenerContext, options: SpeechAppOptions): Route {
  return {
    method: 'post',
    path: '/v1/audio/speech',
    summary: 'Speaks a text',
    tags: ['speech'],
    body: () => jsonBody(describeSpeechBody({ ...context.names, ...speechSettings(options) })),
    answers: { ...Object.fromEntries(AUDIO_TYPES.map((type) => [type, binary])), [EVENT_TYPE]: speechEventSchema },
    generates: { operation: 'speech', output: 'speech' },
    handler: context.job(async (request, response, job) => {
      const call = parseSpeechBody(await context.readJson(request, job.signal), limitsOf(context, options));
      if (call.model !== undefined) context.checkModel(call.model);
      if (call.legacy) response.set('deprecation', 'true');
      job.note({ format: call.format, delivery: call.delivery, voice: call.request.voice, characters: call.request.text.length });
      const events = countAudio(context, job, nameField(call, context.engine.synthesize(call.request, job.signal)), COUNT);
      await speak(events, call, options.codec, outletOf(response, job));
    }),
  };
}

function voicesRoute(context: ListenerContext, options: SpeechAppOptions): Route {
  return {
    method: 'get',
    path: '/v1/audio/voices',
    summary: 'Voices',
    tags: ['speech'],
    answers: { [JSON_TYPE]: voicesSchema },
    handler: (_request, response: Response<VoiceList>) => {
      const { voices, aliases } = limitsOf(context, options);
      const others = [...aliases].map(([name, voice]) => describeAlias(name, voice));
      const languages = (context.model()?.languages ?? []) as readonly SpeechLanguage[];
      const own = voices.map((name) => ({ id: name, name, language: spokenAs(languageOfVoice(name), languages) ?? 'en-us' }));
      response.json({ voices: [...own, ...others] });
    },
  };
}

function limitsOf(context: ListenerContext, options: SpeechAppOptions): SpeechLimits {
  const model = context.model();
  if (!model) throw modelLoading();
  const voices = model.voices ?? [];
  const aliases = resolveVoices(options.voiceAliases ?? VOICE_TABLE, voices);
  return { ...speechSettings(options), voices, aliases };
}

/** Describes an alias in the list of voices: `made_of` has the shares of its voices; `alias_of` names the voice if it is a single one. */
function describeAlias(name: string, voice: string): VoiceList['voices'][number] {
  const parts = parseBlend(voice) ?? new Map([[voice, 1]]);
  const single = parts.size === 1 ? { alias_of: voice } : {};
  return { id: name, name, ...single, made_of: Object.fromEntries(parts) };
}

const COUNT: AudioCount<SpeechEvent> = {
  isOutput: ({ type }) => type === 'audio',
  phase: ({ type }) => (type === 'start' ? 'synthesis' : undefined),
  seconds: (event) => (event.type === 'finish' ? event.seconds : undefined),
  tokens: (event) => (event.type === 'finish' ? event.inputTokens : 0),
};

/** The outlet that writes to a client's response. */
function outletOf(response: Response, job: Job): Outlet {
  let events: EventStream | undefined;
  return {
    begin: (headers) => {
      response.status(200).set(headers);
      if (!('content-length' in headers)) response.flushHeaders();
    },
    write: (bytes) => (bytes.length > 0 ? writeWithPressure(response, bytes) : Promise.resolve()),
    end: (last) => void (last ? response.end(last) : response.end()),
    fail: (error) => {
      if (response.destroyed) return;
      job.fail(error);
      // After the first byte, breaking the connection is the only way to show a failure.
      response.destroy();
    },
    events: {
      begin: (headers) => {
        response.set(headers);
        events = new EventStream(response);
        events.begin();
      },
      send: async (event) => events?.send(event),
      end: () => events?.end(),
      fail: async (error) => {
        if (response.destroyed) return;
        await events?.send(job.fail(error).body);
        events?.end();
      },
    },
  };
}
