/** Adds a model from a folder or from the hub. */
import { useSignal } from '@preact/signals';
import { useApp } from '../app.ts';
import { toFailure } from '../failure.ts';
import { DEFAULT_SETTINGS } from '../settings.ts';
import { TextField } from '../ui/fields.tsx';
import { formatBytes } from '../util.ts';
import { describeFolder, describeGguf, describeHubModel } from './import-model.ts';
import type { PickedModel } from './import-model.ts';
import { manifestBytes } from './manifest.ts';

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
  const open = (files: FileList | null, describe: (files: readonly File[]) => Promise<PickedModel>): Promise<void> =>
    work(async () => {
      const { manifest, blobs } = await describe([...(files ?? [])]);
      await app.store.importFiles(manifest, blobs, (done, total) => (share.value = done / total));
      return `${manifest.id} is stored`;
    });
  return (
    <section class="add-model stack" aria-label="Add a model">
      <h2>Add a model</h2>
      <p class="label">
        A checkpoint in its public form: config.json, safetensors, tokenizer; or a chat model as a GGUF file. Its files are copied into this
        browser's storage.
      </p>
      <div class="row">
        <label class="button">
          Open a folder
          <input
            type="file"
            class="hidden"
            ref={(element) => element?.setAttribute('webkitdirectory', '')}
            onChange={(event) => void open(event.currentTarget.files, describeFolder)}
          />
        </label>
        <label class="button">
          Open a GGUF file
          <input
            type="file"
            class="hidden"
            accept=".gguf"
            multiple
            onChange={(event) => void open(event.currentTarget.files, describeGguf)}
          />
        </label>
      </div>
      <HubForm work={work} />
      {share.value !== undefined && <progress value={share.value} max={1} aria-label="Copying" />}
      <p class="label" role="status">
        {note}
      </p>
    </section>
  );
}

/** Looks a repository up and lists it above, with its size: nothing is fetched before the person says so there. */
function HubForm({ work }: { work: Work }) {
  const app = useApp();
  const hubId = useSignal('');
  const { hub } = app.settings.data.value;
  const look = (): Promise<void> =>
    work(async () => {
      const manifest = await describeHubModel(hubId.value.trim(), hub);
      app.library.add(manifest);
      return `${manifest.id}: ${manifest.modelType}, ${formatBytes(manifestBytes(manifest))}; download it in the list above`;
    });
  return (
    <>
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
      </form>
      <details>
        <summary>Another hub</summary>
        <TextField
          label="Address of the hub or of a mirror"
          value={hub}
          placeholder={DEFAULT_SETTINGS.hub}
          onChange={(address) => app.settings.set('hub', address.trim() || DEFAULT_SETTINGS.hub)}
        />
      </details>
    </>
  );
}
