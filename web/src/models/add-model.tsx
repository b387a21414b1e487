/** Adds a model by what a person has: a hub id, an address, a folder, a GGUF file. It is looked at first, and fetched when asked. */
import { useSignal } from '@preact/signals';
import { RECOMMENDED_MODELS } from '../../../sources/index.ts';
import { useApp } from '../app.ts';
import { describeFiles } from '../backend/start-engine-worker.ts';
import { isAbort, toFailure } from '../failure.ts';
import type { Failure } from '../failure.ts';
import { findModel } from './find-model.ts';
import { requireFit, roomHere } from './fit.ts';
import { HubAccessPanel, TokenButton } from './hub-access.tsx';
import { manifestBytes } from './manifest.ts';
import { ModelItem } from './model-item.tsx';
import { describeFolder, describeGguf } from './picked-model.ts';
import type { PickedModel } from './picked-model.ts';
import { formatBytes, sentence } from '../util.ts';

type Look = (what: (signal: AbortSignal) => Promise<string>) => Promise<void>;

export function AddModel() {
  const app = useApp();
  const note = useSignal('');
  const problem = useSignal<Failure | undefined>(undefined);
  const looking = useSignal<AbortController | undefined>(undefined);
  // A model that is looked at takes the place of one before it.
  const look: Look = async (what) => {
    looking.peek()?.abort();
    const abort = new AbortController();
    looking.value = abort;
    note.value = '';
    problem.value = undefined;
    try {
      note.value = await what(abort.signal);
    } catch (error) {
      if (!abort.signal.aborted && !isAbort(error)) problem.value = toFailure(error);
    }
    if (looking.peek() === abort) looking.value = undefined;
  };
  const recommended = new Set(RECOMMENDED_MODELS.map(({ id }) => id));
  return (
    <section class="add-model stack" aria-labelledby="add-model">
      <h2 id="add-model">Add a model</h2>
      <p class="label">
        Name a model of the hub: owner/name, with :Q4_K_M, :file.gguf or @revision where you mean a certain one. Or give the https address
        of a GGUF file. Or open what you have: a GGUF file, or a folder with safetensors, a Whisper for CTranslate2 (faster-whisper), or a
        Kokoro as ONNX or .pth with its voices.
      </p>
      <HubForm look={look} />
      <Pickers look={look} />
      {looking.value && (
        <div class="row">
          <span class="label">Looking at it</span>
          <button onClick={() => looking.peek()?.abort()}>Cancel</button>
        </div>
      )}
      <p class="label" role="status">
        {note}
      </p>
      {problem.value && (
        <div class="failure" role="alert">
          <p>{sentence(problem.value.message)}</p>
          {problem.value.code === 'denied' && <TokenButton />}
        </div>
      )}
      <ul class="model-list found">
        {app.library.found.value
          .filter(({ id }) => !recommended.has(id))
          .map(({ id }) => (
            <ModelItem key={id} manifest={app.library.manifest(id)!} />
          ))}
      </ul>
    </section>
  );
}

/** Looks a model up and lists it below, with its size: nothing is fetched before the person says so there. */
function HubForm({ look }: { look: Look }) {
  const app = useApp();
  const text = useSignal('');
  const submit = (): Promise<void> =>
    look(async (signal) => {
      const manifest = await findModel(text.value, app.finder, signal);
      requireFit(manifest, await roomHere());
      app.library.add(manifest);
      return `${manifest.id} has ${formatBytes(manifestBytes(manifest))} to download; it is listed below`;
    });
  return (
    <>
      <form
        class="row hub"
        onSubmit={(event) => {
          event.preventDefault();
          if (text.value.trim() !== '') void submit();
        }}
      >
        <input
          type="text"
          aria-label="Hub id or https address"
          placeholder="owner/name, or https://…"
          autocapitalize="off"
          spellcheck={false}
          value={text}
          onInput={(event) => (text.value = event.currentTarget.value)}
        />
        <button disabled={text.value.trim() === ''}>Look it up</button>
      </form>
      <HubAccessPanel />
    </>
  );
}

/** Opens files of the person, and copies them where they can be read and have room. */
function Pickers({ look }: { look: Look }) {
  const app = useApp();
  const open = (input: HTMLInputElement, describe: typeof describeFolder): Promise<void> => {
    const files = [...(input.files ?? [])];
    // The same files may be opened again.
    input.value = '';
    return look(async (signal) => {
      const picked: PickedModel = await describe(files, describeFiles, signal);
      requireFit(picked.manifest, await roomHere());
      app.library.add(picked.manifest);
      void app.works.of(picked.manifest.id).copy(picked);
      return `${picked.manifest.id} is copied into this browser's storage; it is listed below`;
    });
  };
  return (
    <div class="row">
      <label class="button">
        Open a folder
        <input
          type="file"
          class="hidden"
          ref={(element) => element?.setAttribute('webkitdirectory', '')}
          onChange={(event) => void open(event.currentTarget, describeFolder)}
        />
      </label>
      <label class="button">
        Open a GGUF file
        <input type="file" class="hidden" accept=".gguf" multiple onChange={(event) => void open(event.currentTarget, describeGguf)} />
      </label>
    </div>
  );
}
