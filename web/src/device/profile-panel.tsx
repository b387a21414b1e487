/** Times every dispatch of the chat engine while it answers, and shows which kernels took the time. */
import { useSignal } from '@preact/signals';
import type { Signal } from '@preact/signals';
import type { ProfileEntry } from '../../../engine/api.ts';
import type { Engine } from '../../../engine/protocol.ts';
import { traceEvents } from '../../../engine/util/trace-events.ts';
import { useApp } from '../app.ts';
import type { App } from '../app.ts';
import { CAPTURE_RATE } from '../audio/microphone.ts';
import { FailureError } from '../failure.ts';
import type { ModelTask } from '../models/manifest.ts';
import { voiceFor } from '../speak/voices.ts';
import { download, messageOf, sentence } from '../util.ts';

const QUESTION = 'Tell me a short story about a fox.';
/** Most kernels that the table shows; the rest takes next to no time. */
const SHOWN = 30;
const TASKS: readonly ModelTask[] = ['chat', 'speech', 'transcription'];

export function ProfilePanel({ profile }: { profile: Signal<readonly ProfileEntry[]> }) {
  const app = useApp();
  const task = useSignal<ModelTask>('chat');
  const busy = useSignal(false);
  const adapter = useSignal('');
  const problem = useSignal('');
  const measure = async (): Promise<void> => {
    busy.value = true;
    problem.value = '';
    try {
      const measured = await measureOnce(app, task.peek());
      profile.value = measured.profile;
      adapter.value = measured.adapter;
    } catch (error) {
      problem.value = sentence(messageOf(error));
    }
    busy.value = false;
  };
  const total = profile.value.reduce((sum, entry) => sum + entry.milliseconds, 0);
  return (
    <section class="stack" aria-label="Profiler">
      <h2>Where the time goes</h2>
      <p class="label">One request, each dispatch timed on the GPU by itself, so the sum is more than a normal run takes.</p>
      <div class="row">
        <select aria-label="Task" onChange={(event) => (task.value = event.currentTarget.value as ModelTask)}>
          {TASKS.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
        <button disabled={busy} onClick={() => void measure()}>
          {busy.value ? 'Measuring' : 'Measure'}
        </button>
        {total > 0 && <span class="number">{total.toFixed(1)} ms on the GPU</span>}
        {total > 0 && (
          <button title="Every kernel on a time line, for ui.perfetto.dev" onClick={() => saveTrace(adapter.value, profile.value)}>
            Save trace
          </button>
        )}
      </div>
      {problem.value && (
        <p class="failure" role="alert">
          {problem}
        </p>
      )}
      {total > 0 && <ProfileTable entries={profile.value} total={total} />}
    </section>
  );
}

/** Loads the task's model if need be, and profiles one small request. */
async function measureOnce(app: App, task: ModelTask): Promise<{ readonly profile: readonly ProfileEntry[]; readonly adapter: string }> {
  const session = app.sessions[task];
  if (session.state.peek().name !== 'ready') await app.load(task);
  const state = session.state.peek();
  if (state.name === 'failed') throw new FailureError(state.failure);
  const { engine } = session;
  const { models, adapter } = engine.info();
  const voice = voiceFor(models.find((model) => model.task === task)?.voices, [app.choices.voice]);
  await engine.profile(true);
  try {
    for await (const event of runOnce(engine, task, voice)) void event;
  } catch (error) {
    // Turned off again, because timing every dispatch makes an engine slow.
    await engine.profile(false);
    throw error;
  }
  return { profile: await engine.profile(false), adapter: adapter.name };
}

function saveTrace(adapter: string, entries: readonly ProfileEntry[]): void {
  download('parley-trace.json', new Blob([JSON.stringify(traceEvents(adapter, entries))], { type: 'application/json' }));
}

function ProfileTable({ entries, total }: { entries: readonly ProfileEntry[]; total: number }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Kernels by time">
      <table class="profile">
        <thead>
          <tr>
            <th scope="col">kernel</th>
            <th scope="col">times</th>
            <th scope="col">ms</th>
            <th scope="col">share</th>
          </tr>
        </thead>
        <tbody>
          {entries.slice(0, SHOWN).map(({ label, count, milliseconds }) => (
            <tr key={label}>
              <td>{label}</td>
              <td>{count}</td>
              <td>{milliseconds.toFixed(2)}</td>
              <td>
                <meter value={milliseconds} max={total} aria-label={`${Math.round((milliseconds / total) * 100)} %`} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Returns some seconds of a voiced sound at CAPTURE_RATE; silence would be skipped before it reaches the GPU. */
function hum(seconds: number): Float32Array {
  const wave = (i: number, hertz: number): number => Math.sin((2 * Math.PI * hertz * i) / CAPTURE_RATE);
  return Float32Array.from(
    { length: seconds * CAPTURE_RATE },
    (_, i) => 0.2 * (wave(i, 140) + wave(i, 700) + wave(i, 1200)) * (0.6 + 0.4 * wave(i, 4)),
  );
}

/** Runs a small request of the task; `voice` is for speech. */
function runOnce(engine: Pick<Engine, 'chat' | 'synthesize' | 'transcribe'>, task: ModelTask, voice: string): AsyncIterable<unknown> {
  const { signal } = new AbortController();
  if (task === 'chat')
    return engine.chat({ messages: [{ role: 'user', content: QUESTION }], sampling: { temperature: 0 }, maxTokens: 32 }, signal);
  if (task === 'speech') return engine.synthesize({ text: 'This sentence is timed.', voice, seed: 1 }, signal);
  return engine.transcribe({ samples: hum(2), timestamps: 'none', temperature: 0 }, signal);
}
