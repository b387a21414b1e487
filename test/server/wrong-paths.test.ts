/** What the 404 of a path says that belongs to another listener, to another API, or behind another base URL. */
import { expect, test } from 'vitest';
import { postJson, startListeners } from '../support/listeners.ts';

test('what another listener or another API serves is named, and so is a base URL that is wrong', async () => {
  const { chat, speech, transcription } = await startListeners();
  for (const [url, hint] of [
    [`${chat}/v1/audio/speech`, /POST \/v1\/audio\/speech here: the speech listener has it \(--speech-port\)$/],
    [`${chat}/audio/transcriptions`, /the transcription listener has it \(--transcription-port\)$/],
    [`${speech}/v1/chat/completions`, /the chat listener has it \(--port\)$/],
    [`${transcription}/v1/audio/speech`, /the speech listener/],
    [`${chat}/v1/responses`, /POST \/v1\/chat\/completions is$/],
    [`${chat}/v1/v1/chat/completions`, /twice$/],
    [`${chat}/v1//chat/completions`, /there is no POST \/v1\/\/chat\/completions here: the path has \/\/ where \/ is meant; /],
    [`${speech}//v1/audio/speech`, /the path has \/\/ where/],
    [`${chat}/v1/embeddings`, /there is no POST \/v1\/embeddings here: embeddings are not served$/],
    [`${chat}/v1/messages/count_tokens`, /Anthropic's Messages API is not served; POST \/v1\/chat\/completions is$/],
    [`${chat}/v1/realtime`, /the Realtime API is not served$/],
    [`${chat}/api/chat`, /Ollama's API is not served; OpenAI's is, under \/v1$/],
    [`${chat}/completion`, /POST \/v1\/completions continues a prompt$/],
    [`${transcription}/inference`, /POST \/v1\/audio\/transcriptions transcribes$/],
    [`${speech}/`, /there is no POST \/ here: the API is under \/v1; /],
    [`${chat}/v1`, /there is no POST \/v1 here: the API is under \/v1; /],
    [`${chat}/v1/chat/completions/chat/completions`, /the base URL ends in \/v1, which follows the port$/],
    [`${speech}/openai/v1/audio/speech`, /the base URL ends in \/v1/],
    [`${chat}/v1/files`, /there is no POST \/v1\/files here$/],
  ] as const) {
    const { status, json } = await postJson(url, {});
    expect([status, json.error.code]).toEqual([404, 'unknown_url']);
    expect(json.error.message).toMatch(hint);
  }
});
