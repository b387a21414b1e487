import { signal } from '@preact/signals';

/** Longest task of the main thread and slowest interaction since the page opened, in ms, where the browser reports them. */
export class Responsiveness {
  readonly longestTask = signal(0);
  readonly slowestInteraction = signal(0);

  constructor() {
    this.#observe({ type: 'longtask', buffered: true }, this.longestTask);
    this.#observe({ type: 'event', buffered: true, durationThreshold: 16 } as PerformanceObserverInit, this.slowestInteraction);
  }

  #observe(options: PerformanceObserverInit, most: { value: number; peek(): number }): void {
    if (!PerformanceObserver.supportedEntryTypes.includes(options.type!)) return;
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) most.value = Math.max(most.peek(), Math.round(duration));
    }).observe(options);
  }
}
