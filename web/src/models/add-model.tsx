/**
 * The form that adds a model by a hub id, an address, a folder or a GGUF file. The model is described first, and fetched only when the
 * person asks for it.
 */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { RECOMMENDED_MODELS } from '../../../sources/index.ts';
import { useApp } from '../app.ts';
import { HubAccessPanel, TokenButton } from './hub-access.tsx';
import { ModelItem } from './model-item.tsx';
import { describeFolder, describeGguf, pickedFiles } from './picked-model.ts';
import { sentence } from '../util.ts';

export function AddModel() {
  const app = useApp();
  const { note, problem, looking } = app.adding;
  const list = useRef<HTMLUListElement>(null);
  const said = problem.value ?? note.value;
  const before = useRef(said);
  // Scrolled into view, because the model may have been dropped on another view or far above.
  useEffect(() => {
    if (said !== '' && said !== before.current) list.current!.parentElement!.scrollIntoView({ block: 'end' });
    before.current = said;
  }, [said]);
  const recommended = new Set(RECOMMENDED_MODELS.map(({ id }) => id));
  return (
    <section class="add-model stack" aria-labelledby="add-model">
      <h2 id="add-model">Add a model</h2>
      <p class="label">
        Drop what you have anywhere on this page, or open it: a GGUF file, or a folder with safetensors, a Whisper for CTranslate2
        (faster-whisper), or a Kokoro as ONNX or .pth with its voices. It is copied into this browser and sent nowhere.
      </p>
      <Pickers />
      <p class="label">
        Or name a model of the hub: owner/name, with :Q4_K_M, :file.gguf or @revision where you mean a certain one. Or give the https
        address of a GGUF file.
      </p>
      <HubForm />
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
      <ul class="model-list found" ref={list}>
        {app.library.found.value
          .filter(({ id }) => !recommended.has(id))
          .map(({ id }) => (
            <ModelItem key={id} manifest={app.library.manifest(id)!} />
          ))}
      </ul>
    </section>
  );
}

function HubForm() {
  const { adding } = useApp();
  const text = useSignal('');
  return (
    <>
      <form
        class="row hub"
        onSubmit={(event) => {
          event.preventDefault();
          if (text.value.trim() !== '') void adding.lookUp(text.value);
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

function Pickers() {
  const { adding } = useApp();
  const open = (input: HTMLInputElement, describe: typeof describeFolder): void => {
    const files = pickedFiles(input.files ?? []);
    // Cleared, so that the same files can be chosen again.
    input.value = '';
    void adding.open(files, describe);
  };
  return (
    <div class="row">
      <label class="button">
        Open a GGUF file
        <input type="file" class="hidden" accept=".gguf" multiple onChange={(event) => open(event.currentTarget, describeGguf)} />
      </label>
      <label class="button">
        Open a folder
        <input
          type="file"
          class="hidden"
          ref={(element) => element?.setAttribute('webkitdirectory', '')}
          onChange={(event) => open(event.currentTarget, describeFolder)}
        />
      </label>
    </div>
  );
}
