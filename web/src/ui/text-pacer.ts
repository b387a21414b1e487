/** Joins pieces of text so that the page renders them once per frame, whatever the engine's pace. */
export class TextPacer {
  readonly #show: (text: string) => void;
  #text = '';
  #frame = 0;

  constructor(show: (text: string) => void) {
    this.#show = show;
  }

  /** The whole text so far, rendered or not. */
  get text(): string {
    return this.#text;
  }

  add(text: string): void {
    this.#text += text;
    // Hidden pages have no frames; their text is rendered when the answer ends or the page becomes visible again.
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#show(this.#text);
    });
  }

  flush(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    if (this.#text !== '') this.#show(this.#text);
  }
}
