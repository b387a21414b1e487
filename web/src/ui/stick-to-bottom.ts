/** Keeps a scrolled box at its end while text grows, until the reader scrolls up; takes hold again at the bottom. */
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { RefObject } from 'preact';

const NEAR = 40; // px

/**
 * Attach the refs to the scrolling box and to what grows inside; `key` changes when another document is shown. `fromTop`: one that is read from its
 * beginning.
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
  const toEnd = (): void => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  };
  useLayoutEffect(() => {
    const element = box.current!;
    sticking.current = !fromTop;
    if (fromTop) element.scrollTop = 0;
    else toEnd();
    const onScroll = (): void => {
      sticking.current = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR;
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
