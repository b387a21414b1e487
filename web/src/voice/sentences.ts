/** Splits a growing answer into sentences that can be spoken before the rest is written. */

const SHORTEST = 12; // characters; "Dr." and "1." are not sentences of their own
const LONGEST = 200; // characters without a sentence end; then it is cut at any comma or space

/** Takes pieces of text and returns whole sentences as soon as their ends are certain. */
export class SentenceSplitter {
  #rest = '';

  push(text: string): string[] {
    this.#rest += text;
    const sentences: string[] = [];
    for (let end = this.#end(); end > 0; end = this.#end()) {
      sentences.push(this.#rest.slice(0, end).trim());
      this.#rest = this.#rest.slice(end);
    }
    return sentences;
  }

  /** Returns the last, unfinished sentence. */
  flush(): string[] {
    const last = this.#rest.trim();
    this.#rest = '';
    return last === '' ? [] : [last];
  }

  /**
   * Returns the end of the first sentence; 0 if it is not known yet. The space after the full stop must have arrived: "3." may become
   * "3.5".
   */
  #end(): number {
    const pattern = /[.!?…]["'”’)]*\s|\n/g;
    for (const match of this.#rest.matchAll(pattern)) {
      const end = match.index + match[0].length;
      if (this.#rest.slice(0, end).trim().length >= SHORTEST) return end;
    }
    if (this.#rest.length < LONGEST) return 0;
    const head = this.#rest.slice(0, LONGEST);
    return Math.max(head.lastIndexOf(', ') + 1, head.lastIndexOf(' ') + 1) || LONGEST;
  }
}

/** Returns Markdown as plain text, without marks, which must not be spoken. */
export function speakable(markdown: string): string {
  return markdown
    .replace(/```[\s\S]*?(```|$)/g, ' ')
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/^\s*(#{1,6}|[-*+]|>|\d+\.)\s+/gm, '')
    .replace(/[*_`~|]/g, '')
    .replace(/\s+/g, ' ')
    .trim();
}
