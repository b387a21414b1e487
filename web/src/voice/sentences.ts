/** Cuts a growing answer into sentences that can be spoken before the rest is written. */

const SHORTEST = 12; // characters; "Dr." and "1." are not worth a breath of their own
const LONGEST = 200; // characters without an end; then any comma or space will do

/** Feed it text; it gives whole sentences as soon as they are certain. */
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

  /** The last, unfinished sentence. */
  flush(): string[] {
    const last = this.#rest.trim();
    this.#rest = '';
    return last === '' ? [] : [last];
  }

  /** Where the first sentence ends; 0 if that is not known yet. The space after the stop must have arrived: "3." may become "3.5". */
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

/** Text without the marks of Markdown, which nobody wants to hear. */
export function speakable(markdown: string): string {
  return markdown
    .replace(/```[\s\S]*?(```|$)/g, ' ')
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/^\s*(#{1,6}|[-*+]|>|\d+\.)\s+/gm, '')
    .replace(/[*_`~|]/g, '')
    .replace(/\s+/g, ' ')
    .trim();
}
