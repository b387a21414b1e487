/** Intake of sound: dropped or chosen files, or the microphone. */
import { useSignal } from '@preact/signals';
import type { Signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { useApp } from '../app.ts';
import { Microphone } from '../audio/microphone.ts';
import { SOUND_FILES } from '../audio/sound-file.ts';
import { useIsReady } from '../engine-notice.tsx';
import { isAbort } from '../failure.ts';
import { Trace } from '../ui/trace.tsx';
import { formatTime, messageOf } from '../util.ts';

export function Intake({
  onFiles,
  onRecorded,
}: {
  onFiles: (files: readonly File[]) => void;
  onRecorded: (samples: Float32Array) => void;
}) {
  const app = useApp();
  const over = useSignal(false);
  const recording = useSignal(false);
  const problem = useSignal('');
  const microphone = useRef(new Microphone()).current;
  // Leaving the view ends a recording, which is transcribed all the same.
  useEffect(
    () => async () => {
      const samples = await microphone.stop();
      if (recording.peek()) onRecorded(samples);
    },
    [],
  );
  useFileDrag(over);
  const finish = async (): Promise<void> => {
    recording.value = false;
    onRecorded(await microphone.stop());
  };
  const toggle = async (): Promise<void> => {
    if (recording.value) return finish();
    problem.value = '';
    try {
      await microphone.start(app.settings.data.peek().microphone, (why) => {
        problem.value = `${why} What was heard before is transcribed.`;
        void finish();
      });
      recording.value = true;
    } catch (error) {
      // An abort means that the view was left, or the button pressed again, before the microphone was open.
      if (!isAbort(error)) problem.value = messageOf(error);
    }
  };
  return (
    <div class={`intake ${over.value ? 'over' : ''}`}>
      <div class="row">
        <FileButton onFiles={onFiles} />
        <button class={recording.value ? 'running' : ''} onClick={() => void toggle()}>
          {recording.value ? `Stop recording, ${formatTime(microphone.seconds.value)}` : 'Record'}
        </button>
        <span class="label">or drop files here</span>
      </div>
      {recording.value && <Trace levels={microphone.levels} label="Microphone level" running />}
      {problem.value && (
        <p class="failure" role="alert">
          {problem}
        </p>
      )}
    </div>
  );
}

/** Sets `over` while files are dragged above the view; the shell takes them. */
function useFileDrag(over: Signal<boolean>): void {
  useEffect(() => {
    const onDrag = (event: DragEvent): void => {
      over.value = event.type === 'dragover' && (event.dataTransfer?.types.includes('Files') ?? false);
    };
    const types = ['dragover', 'dragleave', 'drop'] as const;
    for (const type of types) addEventListener(type, onDrag);
    return () => types.forEach((type) => removeEventListener(type, onDrag));
  }, []);
}

function FileButton({ onFiles }: { onFiles: (files: readonly File[]) => void }) {
  return (
    <label class={`button ${useIsReady('transcription') ? 'primary' : ''}`}>
      Choose files
      <input
        type="file"
        accept={SOUND_FILES}
        class="hidden"
        multiple
        onChange={(event) => {
          onFiles([...(event.currentTarget.files ?? [])]);
          event.currentTarget.value = '';
        }}
      />
    </label>
  );
}
