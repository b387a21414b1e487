/**
 * Reads WebM and Matroska files on behind damage in their middle, and takes joined ones apart. A piece that an upload lacks, or that a disk has lost, leaves sizes that
 * lead into the middle of something else; the next cluster or run of packets is found by its bytes. Source: RFC 9559.
 */
import type { FileBytes } from '../../../../engine/audio/wav.ts';
import { BLOCK_GROUP, CLUSTER, CUES, EBML, SEEK_HEAD, SEGMENT, SIMPLE_BLOCK, TIMESTAMP, element } from './ebml.ts';
import type { Element } from './ebml.ts';
import { MAX_PARTS, Pieces, cutOut, isPadding, search } from './part.ts';
import type { Part, Range } from './part.ts';
import { withoutTrailingTags } from './tags.ts';

/** Most elements of a file that are examined. Two hours of sound have half as many; this bounds the work for a file of nothing but headers. */
const MAX_ELEMENTS = 1 << 20;
/** Elements in a row that tell a packet from a number in the middle of another: each must lead to the next. */
const RUN = 4;
/** The longest packet of such a run, in bytes; those of sound are far shorter. */
const MAX_BLOCK = 1 << 20;

/** What a segment and a cluster contain. */
const ELEMENTS: ReadonlySet<number> = new Set([
  EBML, SEGMENT, SEEK_HEAD, 0x1549a966, 0x1654ae6b, CUES, 0x1941a469, 0x1043a770, 0x1254c367, CLUSTER, TIMESTAMP, SIMPLE_BLOCK, BLOCK_GROUP, 0xa7, 0xab, 0xaf, 0x5854, 0xec, 0xbf,
]); // prettier-ignore

/** Elements whose content is examined as well: the size that one of them declares is not needed. */
const isParent = (id: number): boolean => id === SEGMENT || id === CLUSTER;

/** Parts of a WebM or Matroska file: one for each file that was joined to it. */
export function webmParts(bytes: FileBytes): Part[] {
  const walk = new Walk(bytes);
  let at = 0;
  /** A packet before `at`, which may be the one whose size is wrong. */
  let packet: { readonly at: number; readonly from: number } | undefined;
  for (let count = 0; count < MAX_ELEMENTS; count++) {
    const head = element(bytes, at);
    // The rest is too short for a header.
    if (!head) break;
    if (isWhole(bytes, head)) {
      if (!walk.take(head, at)) break;
      packet = head.id < 0x100 ? { at, from: head.from } : undefined;
      at = head.from + (isParent(head.id) ? 0 : head.size!);
      continue;
    }
    const next = search(bytes, packet?.from ?? at, STARTS, (place) => isStart(bytes, place));
    if (next === undefined) {
      // What was cut off within its last element stays as it is, and its reader finds out.
      const isCut = ELEMENTS.has(head.id) && head.size !== undefined && head.from + head.size > bytes.length;
      if (!isCut) walk.end(at);
      break;
    }
    if (!walk.leaveOut(packet?.at ?? at, next)) break;
    at = next;
    packet = undefined;
  }
  return walk.finish();
}

/** Whether this is an element that can be where it was found, and ends within the file. */
const isWhole = (bytes: FileBytes, { id, from, size }: Element): boolean =>
  ELEMENTS.has(id) && (isParent(id) || (size !== undefined && from + size <= bytes.length));

/** First bytes of what can be read without what was before: a file, a cluster, and packets. */
const STARTS = [EBML >>> 24, CLUSTER >>> 24, SIMPLE_BLOCK, BLOCK_GROUP];

function isStart(bytes: FileBytes, at: number): boolean {
  const head = element(bytes, at);
  if (head?.id === EBML) return head.size !== undefined && element(bytes, head.from + head.size)?.id === SEGMENT;
  if (head?.id === CLUSTER) return element(bytes, head.from)?.id === TIMESTAMP;
  let place = at;
  for (let count = 0; count < RUN; count++) {
    const block = element(bytes, place);
    // A run that the file's end or a whole cluster ends is one as well.
    if (count > 0 && (place === bytes.length || block?.id === CLUSTER)) return true;
    if (!block || !isBlock(bytes, block)) return false;
    place = block.from + block.size!;
  }
  return true;
}

function isBlock(bytes: FileBytes, { id, from, size }: Element): boolean {
  if (size === undefined || size < 5 || size > MAX_BLOCK || from + size > bytes.length) return false;
  const [first = 0] = bytes.subarray(from, from + 1);
  // A group begins with its block, and a block with the number of its track, of which files have few.
  return id === BLOCK_GROUP ? first === 0xa1 : id === SIMPLE_BLOCK && first > 0x80 && first < 0x90;
}

/** A piece of a file that is read as something else. */
interface Edit extends Range {
  readonly as: Uint8Array;
}

const NOTHING = new Uint8Array();

/** The parts of a file as they are found. */
class Walk {
  readonly #bytes: FileBytes;
  readonly #done: Part[] = [];
  /** Begin and end of the current part. */
  #from = 0;
  #to: number;
  #isDamaged = false;
  #edits: Edit[] = [];
  /** Tables of places, which are wrong where something is left out. */
  #tables: Edit[] = [];
  /** The open segment and cluster: their sizes are wrong where something is left out. */
  #parents = new Map<number, Edit>();

  constructor(bytes: FileBytes) {
    this.#bytes = bytes;
    this.#to = bytes.length;
  }

  /** Takes an element; false if there are too many files. */
  take({ id, from, size }: Element, at: number): boolean {
    if (id === EBML && at > this.#from) {
      this.#to = at;
      this.finish();
      [this.#from, this.#to, this.#isDamaged] = [at, this.#bytes.length, false];
      [this.#edits, this.#tables, this.#parents] = [[], [], new Map()];
    }
    if (isParent(id) && size !== undefined) this.#parents.set(id, openSize(at + ID_BYTES, from));
    if ((id === SEEK_HEAD || id === CUES) && this.#tables.length < MAX_PARTS)
      this.#tables.push({ from: at, to: from + size!, as: NOTHING });
    return this.#done.length < MAX_PARTS;
  }

  /** Leaves out what is damaged; false if that was the case too often. */
  leaveOut(from: number, to: number): boolean {
    this.#isDamaged = true;
    this.#edits.push(...this.#parents.values(), { from, to, as: NOTHING });
    this.#parents.clear();
    if (this.#edits.length < MAX_PARTS) return true;
    this.#to = from;
    return false;
  }

  /** Ends the part here, since nothing behind can be read. */
  end(at: number): void {
    this.#to = at;
    this.#isDamaged ||= !isPadding(withoutTrailingTags(this.#bytes), at);
  }

  /** Ends the current part, and returns all. */
  finish(): Part[] {
    const edits = this.#isDamaged ? [...this.#edits, ...this.#tables].sort((a, b) => a.from - b.from) : [];
    const pieces: FileBytes[] = [];
    let at = this.#from;
    for (const { from, to, as } of edits) {
      if (from < at) continue;
      pieces.push(cutOut(this.#bytes, at, from), as);
      at = to;
    }
    pieces.push(cutOut(this.#bytes, at, Math.max(at, this.#to)));
    this.#done.push({ bytes: pieces.length === 1 ? pieces[0]! : new Pieces(pieces), isDamaged: this.#isDamaged });
    return this.#done;
  }
}

/** Bytes of the ids of segments and clusters. */
const ID_BYTES = 4;

/** Says that a size is open, in as many bytes. */
const openSize = (from: number, to: number): Edit => ({
  from,
  to,
  as: Uint8Array.from({ length: to - from }, (_, i) => (i === 0 ? 0xff >> (to - from - 1) : 0xff)),
});
