/** Finds the end of a JSON value that comes in pieces. Every character is looked at once, however long the value is. */

/** What a piece has of the value, and how many of its characters that took; `ended` = the value ends there. */
export interface ScannedPiece {
  readonly text: string;
  readonly taken: number;
  readonly ended: boolean;
}

export class JsonScan {
  #depth = 0;
  #inString = false;
  #escaped = false;

  /**
   * Takes the next piece. Objects and lists end with their brackets; anything else ends in front of one that it did not open. Control characters in
   * texts, which JSON does not allow and models write all the same, come out escaped.
   */
  push(piece: string): ScannedPiece {
    let text = '';
    let from = 0;
    for (let i = 0; i < piece.length; i++) {
      const code = piece.charCodeAt(i);
      if (this.#inString) {
        if (code < 0x20) {
          text += piece.slice(from, i) + JSON.stringify(piece[i]).slice(1, -1);
          from = i + 1;
        }
        if (this.#escaped) this.#escaped = false;
        else if (code === 0x5c) this.#escaped = true;
        else if (code === 0x22) this.#inString = false;
      } else if (code === 0x22) this.#inString = true;
      else if (code === 0x7b || code === 0x5b) this.#depth++;
      else if (code === 0x7d || code === 0x5d) {
        this.#depth--;
        const taken = this.#depth < 0 ? i : i + 1;
        if (this.#depth <= 0) return { text: text + piece.slice(from, taken), taken, ended: true };
      }
    }
    return { text: text + piece.slice(from), taken: piece.length, ended: false };
  }
}
