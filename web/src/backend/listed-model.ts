/** What servers list about their models. Servers other than Parley's leave out most fields, and fill some with null. */
import type { ModelAbout } from '../models/manifest.ts';

/** A model as /models lists it. */
export interface ListedModel {
  readonly id: string;
  readonly max_model_len?: unknown;
  readonly meta?: { readonly format?: unknown; readonly sample_rate?: unknown; readonly languages?: unknown } | null;
}

/** What views say about a model, as far as its server says it. */
export function listedAbout({ max_model_len: contextLength, meta }: ListedModel): ModelAbout {
  const { format, sample_rate: sampleRate, languages } = meta ?? {};
  const named = textsOf(languages);
  return {
    ...(typeof contextLength === 'number' && { contextLength }),
    ...(typeof format === 'string' && { format }),
    ...(typeof sampleRate === 'number' && { sampleRate }),
    ...(named.length > 0 && { languages: named }),
  };
}

/**
 * The model's own voices of a /audio/voices, without their aliases. A server lists names alone, or objects with an id or a name. Returns undefined where
 * there are none.
 */
export function voicesOf(listed: unknown): readonly string[] | undefined {
  const { voices } = listed as { readonly voices?: unknown };
  if (!Array.isArray(voices)) return undefined;
  const names = (voices as readonly ListedVoice[]).map((voice) =>
    typeof voice === 'string' ? voice : voice?.made_of ? undefined : (voice?.id ?? voice?.name),
  );
  const named = [...new Set(textsOf(names))];
  return named.length > 0 ? named : undefined;
}

type ListedVoice = string | { readonly id?: unknown; readonly name?: unknown; readonly made_of?: unknown } | null;

const textsOf = (found: unknown): readonly string[] => (Array.isArray(found) ? found.filter((text) => typeof text === 'string') : []);
