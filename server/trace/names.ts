/** Names of OpenTelemetry's conventions for generative models (in development there: they change here alone). */
export const NAMES = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
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
