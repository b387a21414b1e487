/**
 * Yields the `data:` payload of each server-sent event of a response; comments and other fields are skipped, but for `error:`, where some servers (older
 * ones of llama.cpp) write why they stop. Some end without the last event's blank line: it counts unless it was cut off.
 */
export async function* sseData(response: Response): AsyncGenerator<string> {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      rest += value;
      const events = rest.split(/\r?\n\r?\n/);
      rest = events.pop()!;
      for (const event of events) {
        const data = dataOf(event);
        if (data !== '') yield data;
      }
    }
    const last = dataOf(rest);
    if (isWhole(last)) yield last;
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** The payload of an event; empty for one that has none, which some servers send to keep the connection. */
function dataOf(event: string): string {
  const lines = event.split(/\r?\n/).flatMap((line) => /^(?:data|error):\s*([^]*)$/.exec(line)?.[1] ?? []);
  return lines.join('\n');
}

function isWhole(data: string): boolean {
  try {
    return data === '[DONE]' || JSON.parse(data) !== undefined;
  } catch {
    return false;
  }
}
