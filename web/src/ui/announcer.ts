import { signal } from '@preact/signals';

/** Live region that tells screen readers about boundaries ("Answering", "Answer complete"), never about every token. */
export class Announcer {
  readonly message = signal('');

  say(text: string): void {
    this.message.value = text;
  }
}
