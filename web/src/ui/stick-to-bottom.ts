/** Keeps a scrolling box at its end while text grows, until the reader scrolls up; resumes when the reader reaches the bottom. */
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { RefObject } from 'preact';

const NEAR = 40; // px

/**
 * Returns refs for the scrolling box and for the growing element inside it. `key` changes when another document is shown; `fromTop` shows
 * it from its beginning.
 */
export function useStickToBottom(
  key: string,
  fromTop: boolean,
): {
  box: RefObject<HTMLDivElement | null>;
  content: RefObject<HTMLDivElement | null>;
  stick(): void;
} {
  const box = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const sticking = useRef(true);
  /** Last seen scroll position of the box. */
  const before = useRef(0);
  const toEnd = (): void => {
    if (!box.current) return;
    box.current.scrollTop = box.current.scrollHeight;
    // Recorded at once, because the scroll event of this may be merged with one of the reader's.
    before.current = box.current.scrollTop;
  };
  useLayoutEffect(() => {
    const element = box.current!;
    sticking.current = !fromTop;
    if (fromTop) element.scrollTop = 0;
    else toEnd();
    before.current = element.scrollTop;
    const onScroll = (): void => {
      const { scrollTop } = element;
      const left = element.scrollHeight - scrollTop - element.clientHeight;
      // A slow finger or trackpad moves by a few pixels, which must not be undone. A box whose content became shorter is at its end all the
      // same.
      sticking.current = scrollTop < before.current ? left <= 1 : left < NEAR;
      before.current = scrollTop;
    };
    // A wheel turn upwards wins at once, also while text is arriving.
    const onWheel = (event: WheelEvent): void => {
      if (event.deltaY < 0) sticking.current = false;
    };
    const observer = new ResizeObserver(() => sticking.current && toEnd());
    observer.observe(content.current!);
    element.addEventListener('scroll', onScroll, { passive: true });
    element.addEventListener('wheel', onWheel, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener('scroll', onScroll);
      element.removeEventListener('wheel', onWheel);
    };
  }, [key]);
  const stick = (): void => {
    sticking.current = true;
    toEnd();
  };
  return { box, content, stick };
}
