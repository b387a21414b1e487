/** The text that the operator sees when the server is ready. */
import { existsSync } from 'node:fs';
import type { EngineInfo, MemoryPlan, ModelInfo } from '../engine/api.ts';
import { chatAdapters, headDrafts, promptLookup } from '../engine/config.ts';
import { MODEL_TASKS } from '../engine/model-types.ts';
import { describeMemory, describePlan } from '../engine/util/memory.ts';
import { VOICE_TABLE, resolveVoices } from '../engine/util/voices.ts';
import { PRESETS, downloadBytes, formatBytes, presetModels } from '../sources/index.ts';
import { isBundled } from './settings/config.ts';
import type { ServerConfig } from './settings/config.ts';

/** Describes adapter, base URLs and models, with hints about settings; `ports` are in the order of config.listeners, `seconds` is the time that the start took. */
export function describeStart(
  config: ServerConfig,
  { adapter, models, kernels }: EngineInfo,
  ports: readonly number[],
  seconds: number,
): string {
  const { tls } = config;
  const host = ['0.0.0.0', '::', '127.0.0.1'].includes(config.host) ? 'localhost' : config.host;
  const url = (port: number): string => `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const lines = [`adapter        ${adapter.name}${adapter.software ? ' (software: runs on the CPU)' : ''}`];
  for (const [index, { task, modelId }] of config.listeners.entries()) {
    const model = models.find((candidate) => candidate.task === task);
    lines.push(`${task.padEnd(14)} ${url(ports[index] ?? 0)}/v1  ${modelId}${model ? ` (${describeModel(model)})` : ''}`);
  }
  const loras = config.engine.chat?.loras ?? [];
  if (loras.length > 0) lines.push(`LoRA adapters  ${loras.map(({ id }) => id).join(', ')}`);
  const guesses = models.some(({ task }) => task === 'chat') ? describeGuesses(config) : undefined;
  if (guesses) lines.push(`guesses        ${guesses}`);
  lines.push(...describeNumerics(config, models));
  for (const [i, rank] of (models.find((model) => model.ranks)?.ranks ?? []).entries()) {
    lines.push(`${`rank ${i}`.padEnd(14)} ${rank.adapter}, memory ${describeMemory(rank.memory)}`);
  }
  const chat = config.listeners.findIndex(({ task }) => task === 'chat');
  if (chat >= 0 && existsSync(config.staticFolder)) lines.push(`playground     ${url(ports[chat] ?? 0)}/`);
  for (const note of [
    ...toys(config),
    ...sharedAdapters(config, models),
    ...shortContext(config, models),
    ...unknownLanguage(config, models),
    ...unspokenAliases(config, models),
  ])
    lines.push(`note           ${note}`);
  for (const { kernel, by, why } of kernels?.replaced ?? [])
    lines.push(`self-test      kernel ${kernel} ${why}; ${by} takes its place, which may be slower`);
  const tuned = kernels?.tuned ?? [];
  const gains = tuned.filter(({ chosen, microseconds = {} }) => chosen !== (Object.keys(microseconds)[0] ?? chosen)).length;
  const earlier = tuned.filter(({ microseconds }) => !microseconds).length;
  if (tuned.length > 0)
    lines.push(
      `autotune       ${tuned.length} shapes of products: ${earlier} known from earlier, ${gains} measured now to gain by another kernel`,
    );
  const isOpen =
    config.apiKey === undefined &&
    !config.keys &&
    tls?.files.clientCa === undefined &&
    !['127.0.0.1', '::1', 'localhost'].includes(config.host);
  if (isOpen) lines.push('note           other machines can reach this without a key; see --host and --api-key');
  lines.push(`ready after ${seconds.toFixed(1)} s; Ctrl-C stops`);
  return lines.join('\n');
}

/** A line about speculative decoding, if it is on. */
function describeGuesses({ engine }: ServerConfig): string | undefined {
  const ofHead = headDrafts(engine);
  const lookup = promptLookup(engine);
  const tokens = (count: number): string => `${count} token${count === 1 ? '' : 's'} a step`;
  if (ofHead > 0) return `the chat model's own head guesses ${tokens(ofHead)}`;
  return lookup && `at most ${tokens(lookup.draftTokens)} are guessed from earlier text`;
}

/** Whether prompts take matrices, where that is asked for. */
function describeNumerics({ engine }: ServerConfig, models: readonly ModelInfo[]): string[] {
  const chat = models.find(({ task }) => task === 'chat');
  if (engine.numerics !== 'fast' || !chat) return [];
  if (chat.numerics === 'fast') return ['numerics       fast: prompts take subgroup matrices (docs/numerics.md)'];
  return ["note           --numerics fast has no effect: the chat model's adapter offers no subgroup matrices that work here"];
}

/** Bundled models, and what to serve for real work. */
function toys({ engine, listeners }: ServerConfig): string[] {
  const tasks = listeners.map(({ task }) => task).filter((task) => isBundled(engine[task]?.path ?? ''));
  const [name, preset] = Object.entries(PRESETS)[0]!;
  const models = presetModels(preset).filter(({ task }) => tasks.includes(task));
  if (models.length === 0) return [];
  const bytes = formatBytes(models.reduce((sum, model) => sum + (downloadBytes(model) ?? 0), 0));
  const ids = models.map(({ id }) => id).join(', ');
  if (tasks.length === MODEL_TASKS.length) return [`the bundled models are toys; for real work: --preset ${name} (${ids}; ${bytes})`];
  const flags = models.map(({ task, id }) => `--${task}-model ${id}`).join(' ');
  return [
    `the bundled model${tasks.length === 1 ? '' : 's'} for ${tasks.join(' and ')} ${tasks.length === 1 ? 'is a toy' : 'are toys'}; for real work: ${flags} (${bytes})`,
  ];
}

/** Describes a device's memory plan, before its models are loaded. */
export function describeMemoryPlan(plan: MemoryPlan): string {
  return describePlan(plan)
    .map((line) => `memory         ${line}`)
    .join('\n');
}

/** Ranks of a split model that were given the same adapter. */
function sharedAdapters({ engine }: ServerConfig, models: readonly ModelInfo[]): string[] {
  const ranks = models.find((model) => model.ranks)?.ranks ?? [];
  const names = chatAdapters(engine).slice(0, ranks.length);
  const groups = [...new Set(names)].map((name) => names.flatMap((other, rank) => (other === name ? [rank] : [])));
  return groups
    .filter((group) => group.length > 1)
    .map(
      (group) =>
        `ranks ${group.slice(0, -1).join(', ')} and ${group.at(-1)} of the chat model share one adapter (${ranks[group[0]!]!.adapter}): ` +
        'slower than whole on it; --adapters names one each, --tp-size 1 --pp-size 1 does not split',
    );
}

/** A context that was asked for and that the model is not made for. */
function shortContext({ engine, contextAsked }: ServerConfig, models: readonly ModelInfo[]): string[] {
  const own = models.find(({ task }) => task === 'chat')?.ownContextLength;
  if (!contextAsked || own === undefined || own >= engine.contextLength) return [];
  return [`the chat model's own context is ${own} tokens, below the ${engine.contextLength} asked for (--context-length)`];
}

/** A language for speech of which the transcription model is unsure, and that it does not know. */
function unknownLanguage({ engine: { transcriptionLanguage }, called }: ServerConfig, models: readonly ModelInfo[]): string[] {
  const known = models.find(({ task }) => task === 'transcription')?.languages;
  if (transcriptionLanguage === 'auto' || known === undefined || known.includes(transcriptionLanguage)) return [];
  return [`${called('transcriptionLanguage', transcriptionLanguage)} has no effect: the transcription model does not know this language`];
}

/** Names that were given to voices, and that nobody can ask for. Those of the usual table are for models of several kinds, so each lacks some of them. */
function unspokenAliases({ voiceAliases, called }: ServerConfig, models: readonly ModelInfo[]): string[] {
  const voices = models.find(({ task }) => task === 'speech')?.voices;
  if (voices === undefined) return [];
  const spoken = resolveVoices(voiceAliases, voices);
  return [...voiceAliases].flatMap(([name, choices]) => {
    const meant = choices.join('|');
    if (spoken.has(name) || VOICE_TABLE.get(name)?.join('|') === meant) return [];
    const why = voices.includes(name) ? `has a voice '${name}' of its own` : `does not have all voices of '${meant}'`;
    return [`${called('voiceAlias', [`${name}=${meant}`])} has no effect: the speech model ${why}`];
  });
}

function describeModel({ architecture, format, parameters, contextLength, sampling, voices, adapter }: ModelInfo): string {
  const size = parameters >= 1e9 ? `${(parameters / 1e9).toFixed(1)} B` : `${(parameters / 1e6).toFixed(1)} M`;
  const more = contextLength === undefined ? (voices ? `, ${voices.length} voices` : '') : `, context ${contextLength}`;
  const sampled = sampling ? `, ${Object.entries(sampling).map(([name, value]) => `${name} ${value}`).join(', ')}` : ''; // prettier-ignore
  return `${architecture}${format === undefined ? '' : `, ${format}`}, ${size} parameters${more}${sampled}${adapter ? `, on ${adapter.name}` : ''}`;
}
