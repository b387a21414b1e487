/** A question as it was asked. A long one (a pasted file) is folded to its beginning, so that the answer is not pages below. */
import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';

/** A question with more characters or lines is folded. */
const LONG = { characters: 2000, lines: 30 };
/** Characters and lines that a folded question shows. */
const SHOWN = { characters: 600, lines: 8 };

/** Index at which a text is folded, the end of a line or word; undefined if it is shown whole. */
export function foldOf(text: string): number | undefined {
  if (text.length <= LONG.characters && text.split('\n', LONG.lines + 1).length <= LONG.lines) return undefined;
  const lines = text.slice(0, SHOWN.characters).split('\n');
  if (lines.length > SHOWN.lines) return lines.slice(0, SHOWN.lines).join('\n').length;
  const space = text.slice(0, SHOWN.characters).search(/\s\S*$/);
  // A text without spaces is cut anywhere but within a character.
  return space > SHOWN.characters / 2 ? space : [...text.slice(0, SHOWN.characters)].slice(0, -1).join('').length;
}

export function Question({ text }: { text: string }) {
  const fold = foldOf(text);
  const isOpen = useSignal(false);
  const place = useRef<HTMLParagraphElement>(null);
  const toggled = useRef(false);
  useLayoutEffect(() => {
    if (!toggled.current) return;
    const message = place.current!.closest('.message')!;
    // Moves the focus to where reading begins; it would otherwise stay below the text that is now shown.
    if (isOpen.peek()) message.querySelector('h2')!.focus({ preventScroll: true });
    message.scrollIntoView({ block: 'start' });
  }, [isOpen.value]);
  if (fold === undefined) return <p class="question">{text}</p>;
  const toggle = (): void => {
    toggled.current = true;
    isOpen.value = !isOpen.peek();
  };
  return (
    <>
      {/* The rest is in the document all the same, for paper. */}
      <p class="question" ref={place}>
        {text.slice(0, fold)}
        <span class={isOpen.value ? undefined : 'folded'}>{text.slice(fold)}</span>
      </p>
      <button class="plain unfold" aria-expanded={isOpen.value} onClick={toggle}>
        {isOpen.value ? 'Show less' : `Show all ${text.length.toLocaleString('en')} characters`}
      </button>
    </>
  );
}
