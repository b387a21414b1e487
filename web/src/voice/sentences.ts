/** Splits a growing answer into sentences that can be spoken before the rest is written. */

const SHORTEST = 12; // characters; "Dr." and "1." are not sentences of their own
const LONGEST = 200; // characters without a sentence end; then it is cut at any comma or space

/** The line that opens a block of code. */
const OPENING = /^[ \t]*(?:```|~~~)[^`\n]*\n/m;
const CLOSING = /^[ \t]*(?:```|~~~)[ \t]*$/m;

/** Takes pieces of text and returns whole sentences as soon as their ends are certain. Blocks of code are left out, which nobody wants to hear. */
export class SentenceSplitter {
  #rest = '';
  #inCode = false;

  push(text: string): string[] {
    this.#rest += text;
    const sentences: string[] = [];
    while (this.#step(sentences));
    return sentences;
  }

  /** Takes a sentence or a fence from the text; returns whether there was one. */
  #step(sentences: string[]): boolean {
    const fence = (this.#inCode ? CLOSING : OPENING).exec(this.#rest);
    const end = this.#inCode ? 0 : this.#end();
    if (fence && (end === 0 || fence.index < end)) {
      const before = this.#rest.slice(0, fence.index).trim();
      if (!this.#inCode && before !== '') sentences.push(before);
      this.#rest = this.#rest.slice(fence.index + fence[0].length);
      this.#inCode = !this.#inCode;
      return true;
    }
    // The last line of the code may become its closing fence.
    if (this.#inCode) this.#rest = this.#rest.slice(this.#rest.lastIndexOf('\n') + 1);
    if (end === 0) return false;
    sentences.push(this.#rest.slice(0, end).trim());
    this.#rest = this.#rest.slice(end);
    return true;
  }

  /** Returns the last, unfinished sentence. */
  flush(): string[] {
    const last = this.#inCode ? '' : this.#rest.trim();
    this.#rest = '';
    this.#inCode = false;
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
