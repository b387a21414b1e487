/** Adds a model from a folder or from the hub. */
import { useSignal } from '@preact/signals';
import type { Signal } from '@preact/signals';
import { useApp } from '../app.ts';
import { toFailure } from '../failure.ts';
import { formatBytes } from '../util.ts';
import { describeFolder, describeHubModel } from './import-model.ts';
import { manifestBytes } from './manifest.ts';
import type { ModelManifest } from './manifest.ts';

/** Runs one piece of work; what it returns or throws is shown. */
type Work = (what: () => Promise<string>) => Promise<void>;

export function AddModel() {
  const app = useApp();
  const note = useSignal('');
  const share = useSignal<number | undefined>(undefined);
  const work: Work = async (what) => {
    try {
      note.value = await what();
    } catch (error) {
      note.value = toFailure(error).message;
    }
    share.value = undefined;
    await app.library.refresh();
  };
  const openFolder = (files: FileList | null): Promise<void> =>
    work(async () => {
      const { manifest, blobs } = await describeFolder([...(files ?? [])]);
      await app.store.importFiles(manifest, blobs, (done, total) => (share.value = done / total));
      return `${manifest.id} is stored`;
    });
  return (
    <section class="add-model stack" aria-label="Add a model">
      <h2>Add a model</h2>
      <p class="label">
        A checkpoint in its public form: config.json, safetensors, tokenizer. Its files are copied into this browser's storage.
      </p>
      <div class="row">
        <label class="button">
          Open a folder
          <input
            type="file"
            class="hidden"
            ref={(element) => element?.setAttribute('webkitdirectory', '')}
            onChange={(event) => void openFolder(event.currentTarget.files)}
          />
        </label>
        <HubForm work={work} share={share} />
      </div>
      {share.value !== undefined && <progress value={share.value} max={1} aria-label="Copying" />}
      <p class="label" role="status">
        {note}
      </p>
    </section>
  );
}

/** Looks a repository up first, so that its size is known before anything is fetched. */
function HubForm({ work, share }: { work: Work; share: Signal<number | undefined> }) {
  const app = useApp();
  const found = useSignal<ModelManifest | undefined>(undefined);
  const hubId = useSignal('');
  const look = (): Promise<void> =>
    work(async () => {
      found.value = undefined;
      found.value = await describeHubModel(hubId.value.trim());
      return `${found.value.id}: ${found.value.modelType}`;
    });
  const fetchFound = (manifest: ModelManifest): Promise<void> =>
    work(async () => {
      await app.store.download(manifest, new AbortController().signal, (done, total) => (share.value = done / total));
      found.value = undefined;
      return `${manifest.id} is stored`;
    });
  return (
    <form
      class="row hub"
      onSubmit={(event) => {
        event.preventDefault();
        void look();
      }}
    >
      <input
        type="text"
        aria-label="Hugging Face hub id"
        placeholder="owner/name on the Hugging Face hub"
        value={hubId}
        onInput={(event) => (hubId.value = event.currentTarget.value)}
      />
      <button disabled={hubId.value.trim() === ''}>Look it up</button>
      {found.value && (
        <button type="button" class="primary" onClick={() => void fetchFound(found.value!)}>
          Download {formatBytes(manifestBytes(found.value))}
        </button>
      )}
    </form>
  );
}
