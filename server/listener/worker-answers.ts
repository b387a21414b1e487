/** Schemas of what the routes for routers answer. */
import { z } from 'zod';
import type { AdapterInfo, EngineStatus, KernelReport, MemoryPlan, MemoryUse, ModelMemory, TunedKernel } from '../../engine/api.ts';
import { MODEL_TASKS } from '../../engine/model-types.ts';
import { byteCount, count, named } from '../http/answers.ts';
import type { Sent, ShapeOf } from '../http/answers.ts';

const task = z.enum(MODEL_TASKS);
const state = z.enum(['loading', 'ready', 'lost', 'closing']);

const adapterSchema = named('AdapterInfo', 'A GPU as WebGPU describes it', {
  name: z.string(),
  vendor: z.string(),
  architecture: z.string(),
  software: z.boolean(),
  family: z.enum(['cpu', 'generic']).describe('Which kernels it gets'),
  features: z.array(z.string()),
  limits: z.record(z.string(), z.number()),
} satisfies ShapeOf<AdapterInfo>);

const device = {
  deviceBytes: byteCount,
  source: z.string().describe('Where `deviceBytes` comes from'),
  fraction: z.number().describe("Share of the device's memory that may be used"),
};

const memoryUseSchema = named('MemoryUse', "A device's memory and a chat model's use of it", {
  ...device,
  otherBytes: byteCount,
  weightBytes: byteCount,
  activationBytes: byteCount,
  kvBytes: byteCount,
  kvPages: count,
  windowPages: count.optional(),
  pageSize: count.describe('Tokens per page'),
  kvCacheDtype: z.string(),
  stateSlots: count.optional(),
  stateBytes: byteCount.optional(),
} satisfies ShapeOf<MemoryUse>);

const memoryPlanSchema = named('MemoryPlan', "The planned use of one device's memory", {
  ...device,
  models: z.array(
    named('ModelMemory', "A model's part of a plan", {
      id: z.string(),
      task,
      weightBytes: byteCount,
      activationBytes: byteCount,
      pages: memoryUseSchema.optional(),
    } satisfies ShapeOf<ModelMemory>),
  ),
  totalBytes: byteCount,
} satisfies ShapeOf<MemoryPlan>);

const kernelsSchema = named('KernelReport', 'Results of the self-test and the autotune at start', {
  tested: count,
  replaced: z.array(z.object({ kernel: z.string(), by: z.string(), why: z.string() })),
  tuned: z
    .array(
      named('TunedKernel', "The autotune's choice for a class of shapes", {
        shape: z.string(),
        chosen: z.string(),
        microseconds: z.record(z.string(), z.number()).optional(),
      } satisfies ShapeOf<TunedKernel>),
    )
    .optional(),
} satisfies ShapeOf<KernelReport>);

const statusSchema = named('EngineStatus', "The engine's counters since start, and its gauges", {
  state,
  lastProgress: z.number(),
  pending: z.boolean(),
  running: count,
  waiting: count,
  waitingTokens: count,
  kvPagesTotal: count,
  kvPagesUsed: count,
  windowPagesTotal: count,
  windowPagesUsed: count,
  promptTokens: count,
  generatedTokens: count,
  cachedTokens: count,
  draftedTokens: count,
  acceptedTokens: count,
  gpuBuffers: count,
  gpuBytes: byteCount,
  dispatches: count,
  submits: count,
  bytesRead: byteCount,
} satisfies ShapeOf<EngineStatus>);

/** Fields that model and worker are registered by. */
const registered = {
  model_path: z.string().describe('The served id'),
  tokenizer_path: z.string(),
  weight_version: z.string().optional().describe('The `system_fingerprint` of answers, once the model is loaded'),
};

const serverInfo = {
  task,
  state,
  version: z.string(),
  ...registered,
  served_model_name: z.string(),
  dp_size: count,
  tp_size: count,
  pp_size: count,
  context_length: count.optional(),
  max_total_tokens: count.optional(),
  max_running_requests: count,
  max_prefill_tokens: count.optional(),
  is_embedding: z.boolean(),
  disaggregation_mode: z.string(),
  enable_http2: z.boolean(),
  numerics: z.enum(['invariant', 'fast']).optional().describe('Of a chat model that is loaded: what it computes by, whatever the setting'),
  adapter: adapterSchema.nullable().optional().describe('Null until it is known'),
  memory_plan: z.array(memoryPlanSchema).optional(),
  kernels: kernelsSchema.optional(),
  memory: memoryUseSchema.optional(),
  ranks: z.array(z.object({ adapter: z.string(), memory: memoryUseSchema })).optional(),
  status: statusSchema.optional(),
};

/** `settings`: the schema of each that is shown, by the name of its flag. */
export const serverInfoSchema = (settings: z.ZodRawShape) =>
  named('ServerInfo', 'The worker; settings, adapter, memory and counters for administrators only', { ...settings, ...serverInfo });
export type ServerInfo = Sent<z.ZodObject<typeof serverInfo>>;

export const modelInfoSchema = named('ModelInfo', 'The model', {
  ...registered,
  is_generation: z.boolean(),
  has_image_understanding: z.boolean(),
  has_audio_understanding: z.boolean(),
  model_type: z.string().optional().describe('`model_type` of config.json, once the model is loaded'),
  architectures: z.array(z.string()).optional(),
});
export type ModelInfoAnswer = Sent<typeof modelInfoSchema>;

export const loadsSchema = named('Loads', 'What runs, what waits and what there is room for', {
  timestamp: z.string().meta({ format: 'date-time' }),
  version: z.string(),
  dp_rank_count: count,
  loads: z.array(
    named('Load', 'The load of one worker', {
      dp_rank: count,
      num_running_reqs: count,
      num_waiting_reqs: count,
      num_waiting_uncached_tokens: count,
      num_total_reqs: count,
      num_used_tokens: count.describe('Of an audio listener, requests, as in `max_total_num_tokens`'),
      max_total_num_tokens: count,
      token_usage: z.number().describe('Share, 0 to 1'),
      gen_throughput: z.number().describe('Tokens per second'),
      cache_hit_rate: z.number().describe('Share, 0 to 1'),
      utilization: z.number().describe('Share, 0 to 1'),
      max_running_requests: count,
    }),
  ),
});
export type LoadsAnswer = Sent<typeof loadsSchema>;

export const shortLoadsSchema = z.array(
  named('ShortLoad', 'The load of one worker in short', { dp_rank: count, num_reqs: count, num_waiting_reqs: count, num_tokens: count }),
);
export type ShortLoads = Sent<typeof shortLoadsSchema>;

export const sleepingSchema = named('Sleeping', 'Whether the model is put away', { is_sleeping: z.boolean() });
export type Sleeping = Sent<typeof sleepingSchema>;
