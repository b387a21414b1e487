/** Names of OpenTelemetry's conventions for generative models (in development there: they change here alone). */
export const NAMES = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  inputTokens: 'gen_ai.usage.input_tokens',
  cachedTokens: 'gen_ai.usage.cache_read.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  outputType: 'gen_ai.output.type',
  finishReasons: 'gen_ai.response.finish_reasons',
  method: 'http.request.method',
  route: 'http.route',
  status: 'http.response.status_code',
  error: 'error.type',
  audioSeconds: 'parley.audio.seconds',
} as const;

/** The conventions' words for what a route does; speech and transcription have none there. */
export const OPERATIONS: Readonly<Record<string, string>> = {
  '/chat/completions': 'chat',
  '/completions': 'text_completion',
  '/audio/speech': 'speech',
  '/audio/transcriptions': 'transcription',
  '/audio/translations': 'translation',
};

/** What a route answers with. */
export const OUTPUTS: Readonly<Record<string, string>> = {
  '/chat/completions': 'text',
  '/completions': 'text',
  '/audio/speech': 'speech',
  '/audio/transcriptions': 'text',
  '/audio/translations': 'text',
};
