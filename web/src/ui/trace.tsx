/**
 * The trace: levels over time, with ticks of time below and a number at the right. The microphone, takes and recordings all look like this.
 */
import { effect } from '@preact/signals';
import type { ReadonlySignal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { formatTenths, formatTime } from '../util.ts';

interface TraceProps {
  /** Amplitudes 0..1, evenly spaced over the duration (or the latest ones, for a live trace without duration). */
  readonly levels: ReadonlySignal<ArrayLike<number>>;
  readonly label: string;
  /** Duration in seconds; absent = live. */
  readonly duration?: ReadonlySignal<number>;
  /** Playback position in seconds. */
  readonly position?: ReadonlySignal<number>;
  readonly onSeek?: (seconds: number) => void;
  readonly running?: boolean;
}

interface Painted {
  readonly levels: TraceProps['levels'];
  readonly duration: TraceProps['duration'] | undefined;
  readonly position: TraceProps['position'] | undefined;
  readonly running: boolean;
}

const STEP = 5; // most seconds that an arrow key moves; in a short sound, a twentieth of it

export function Trace({ levels, label, duration, position, onSeek, running = false }: TraceProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  usePainting(canvas, { levels, duration, position, running });
  const seconds = duration?.value ?? 0;
  const at = position?.value ?? 0;
  const seek = (event: PointerEvent & { currentTarget: HTMLElement }): void => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    onSeek?.(Math.max(0, Math.min(1, (event.clientX - left) / width)) * seconds);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const target = seekTarget(event.key, at, seconds);
    if (target === undefined) return;
    event.preventDefault();
    onSeek?.(target);
  };
  // Whole seconds are too coarse for short sounds.
  const clock = (time: number): string => (seconds < 60 ? formatTenths(time) : formatTime(time));
  const slider = onSeek && {
    role: 'slider' as const,
    tabIndex: 0,
    'aria-valuemin': 0,
    'aria-valuemax': tenths(seconds),
    'aria-valuenow': tenths(at),
    'aria-valuetext': `${clock(at)} of ${clock(seconds)}`,
    onPointerDown: seek,
    onKeyDown,
  };
  return (
    <div class="trace">
      <canvas ref={canvas} role="img" aria-label={label} {...slider} />
      {duration && (
        <span class="number">
          {clock(at)} / {clock(seconds)}
        </span>
      )}
    </div>
  );
}

/** Calls `changed` when the page's colours change: the system's scheme, the page's own theme, or the reader's forced colours. */
function onColours(changed: () => void): () => void {
  const queries = ['(prefers-color-scheme: dark)', '(forced-colors: active)'].map((query) => matchMedia(query));
  for (const query of queries) query.addEventListener('change', changed);
  const theme = new MutationObserver(changed);
  theme.observe(document.documentElement, { attributeFilter: ['data-theme'] });
  return () => {
    for (const query of queries) query.removeEventListener('change', changed);
    theme.disconnect();
  };
}

/** Redraws the trace, at most once per frame, whenever its data, its size or the colours change. */
function usePainting(canvas: RefObject<HTMLCanvasElement | null>, { levels, duration, position, running }: Painted): void {
  useEffect(() => {
    const element = canvas.current!;
    let frame = 0;
    const paint = (): void => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        draw(element, levels.peek(), duration?.peek(), position?.peek(), running);
      });
    };
    const stop = effect(() => {
      void [levels.value, duration?.value, position?.value];
      paint();
    });
    const observer = new ResizeObserver(paint);
    observer.observe(element);
    const unwatch = onColours(paint);
    return () => {
      stop();
      observer.disconnect();
      unwatch();
      cancelAnimationFrame(frame);
    };
  }, [levels, duration, position, running]);
}

/** Returns the position that a key seeks to in a sound of `seconds`; undefined for other keys. */
function seekTarget(key: string, at: number, seconds: number): number | undefined {
  const small = Math.min(STEP, seconds / 20);
  const steps = { ArrowLeft: -small, ArrowRight: small, PageDown: -4 * small, PageUp: 4 * small, Home: -seconds, End: seconds };
  const step = steps[key as keyof typeof steps] as number | undefined;
  return step === undefined ? undefined : Math.max(0, Math.min(seconds, at + step));
}

const tenths = (seconds: number): number => Math.round(seconds * 10) / 10;

const BAR = 3; // px a level takes, its gap included

function draw(
  canvas: HTMLCanvasElement,
  levels: ArrayLike<number>,
  duration: number | undefined,
  position: number | undefined,
  running: boolean,
): void {
  const scale = devicePixelRatio;
  const { clientWidth: width, clientHeight: height } = canvas;
  if (width === 0) return;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const context = canvas.getContext('2d')!;
  context.scale(scale, scale);
  const style = getComputedStyle(canvas);
  const color = (name: string): string => style.getPropertyValue(name);
  const middle = (height - 6) / 2;
  const bars = Math.floor(width / BAR);
  const played = duration && position !== undefined ? (position / duration) * width : running ? width : 0;
  for (let bar = 0; bar < bars; bar++) {
    const level = duration === undefined ? (levels[levels.length - bars + bar] ?? 0) : bucket(levels, bar, bars);
    const half = Math.max(0.5, level * middle);
    context.fillStyle = bar * BAR < played ? color('--trace-played') : color('--trace-ahead');
    context.fillRect(bar * BAR, middle - half, BAR - 1, half * 2);
  }
  if (!duration) return;
  context.fillStyle = color('--trace-ahead');
  const step = tickStep(duration, width);
  for (let second = 0; second <= duration; second += step) context.fillRect((second / duration) * (width - 1), height - 5, 1, 5);
}

/** Returns the maximum of the levels that fall into one bar. */
function bucket(levels: ArrayLike<number>, bar: number, bars: number): number {
  const from = Math.floor((bar * levels.length) / bars);
  const to = Math.max(from + 1, Math.floor(((bar + 1) * levels.length) / bars));
  let most = 0;
  for (let i = from; i < to && i < levels.length; i++) most = Math.max(most, levels[i]!);
  return most;
}

function tickStep(duration: number, width: number): number {
  return [0.5, 1, 5, 10, 30, 60, 300].find((step) => (step / duration) * width >= 24) ?? 600;
}
