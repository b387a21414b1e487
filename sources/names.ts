/** Checks names that come from elsewhere before any of them becomes a local file's name. */

/** Windows' device names, with or without an extension. */
const RESERVED = /^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?$/i;
const MAX_PATH = 1024;
const MAX_SEGMENT_BYTES = 255;

/** Why a path of '/'-separated names is unsafe below a local folder, on any system; undefined if it is safe. */
export function pathProblem(path: string): string | undefined {
  if (path === '') return 'is empty';
  if (path.length > MAX_PATH) return `is longer than ${MAX_PATH} characters`;
  if (/[\0-\x1f\x7f]/.test(path)) return 'has a control character';
  if (path.includes('\\')) return 'has a backslash';
  if (path.startsWith('/')) return 'is an absolute path';
  if (/^[A-Za-z]:/.test(path)) return 'begins with a drive';
  for (const segment of path.split('/')) {
    const problem = segmentProblem(segment);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function segmentProblem(segment: string): string | undefined {
  if (segment === '..') return 'leads out of its folder';
  if (segment === '' || segment === '.') return 'has an empty part';
  if (/[<>:"|?*]/.test(segment)) return `has a character that not every system allows (${/[<>:"|?*]/.exec(segment)![0]})`;
  if (/[. ]$/.test(segment)) return 'has a part that ends in a dot or a space';
  if (RESERVED.test(segment)) return `has the name of a device (${segment})`;
  if (new TextEncoder().encode(segment).length > MAX_SEGMENT_BYTES) return `has a part of more than ${MAX_SEGMENT_BYTES} bytes`;
  return undefined;
}

/** A name for a message: quoted, shortened, and without control characters, which a terminal would obey. */
export function quoteName(name: string): string {
  const text = JSON.stringify(name.length > 120 ? `${name.slice(0, 120)}…` : name);
  return text.replace(/[\x7f-\x9f]/g, (character) => `\\u00${character.charCodeAt(0).toString(16)}`);
}

const HUB_NAME = /^[A-Za-z0-9](?:[\w.-]{0,94}[A-Za-z0-9_])?$/;

/** Whether a name can be an owner or a model on the hub, which itself forbids `..`, `--` and other characters. */
export function isHubName(name: string): boolean {
  return HUB_NAME.test(name) && !name.includes('..') && !name.includes('--') && !RESERVED.test(name);
}

/** Whether a revision is a commit, whose files never change. */
export const isCommit = (revision: string): boolean => /^[0-9a-f]{40}$/.test(revision);

/** Whether a text can be a branch, tag or commit. */
export function isRevision(revision: string): boolean {
  return (
    revision.length <= 200 && /^[\w.-]+(\/[\w.-]+)*$/.test(revision) && !revision.includes('..') && pathProblem(revision) === undefined
  );
}

/** Compares names as people count: part2 before part10. */
export function compareNatural(a: string, b: string): number {
  const parts = (text: string): string[] => text.match(/\d+|\D+/g) ?? [];
  const [left, right] = [parts(a), parts(b)];
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const [x, y] = [left[i]!, right[i]!];
    const order = /^\d/.test(x) && /^\d/.test(y) ? Number(x) - Number(y) : 0;
    if (order !== 0) return order;
    if (x !== y) return x < y ? -1 : 1;
  }
  return left.length - right.length;
}

/** Whether a text can be a token, which is sent in a header. */
export const isToken = (text: string): boolean => /^[\x21-\x7e]+$/.test(text);
