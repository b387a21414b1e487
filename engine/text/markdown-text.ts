/** Removes the markup of Markdown, so that a listener hears only the words. */

/** What is said for the number of a note and for a checked task. */
export interface MarkdownWords {
  readonly note: string;
  readonly done: string;
}

/**
 * Drops the marks of headings, lists, quotes, tables and emphasis, rules, fences, and the targets of links. A list's numbers are kept, and a checked task begins
 * with "done:".
 */
export function withoutMarkdown(text: string, { note, done }: MarkdownWords = { note: 'Note', done: 'done' }): string {
  const lines = text
    .replace(/\[\^([\w-]{1,40})\](?!:)/g, '')
    .replace(/^\[\^([\w-]{1,40})\]:/gm, `${note} $1:`)
    .replace(/^ {0,3}\[[^\]\n]{1,500}\]:\s?(?:<[^>\n]*>|(?:https?:|mailto:|www\.|[./#])\S*)(?: +["'(][^\n]*)?$/gm, '')
    .replace(/(?<![\w\]])!?\[(?=[^\]\n]{0,500}[A-Za-z]{2})([^\]\n]{0,500})\]\[[^\]\n]{0,500}\]/g, '$1')
    .replace(/!?\[([^\]\n]{0,500})\]\((?:[^()\s]|\([^()\s]*\))*(?:\s+"[^"\n]*")?\)/g, '$1')
    .split('\n')
    .map((text) => line(text, done))
    .join('\n');
  return lines
    .replace(/`([^`\n]+)`/g, '$1')
    .replace(/(?<![\w*])\*(?=[^\s*])([^*\n]*[^\s*])\*(?![\w*])/g, '$1')
    .replace(/(?<![\w_])_(?=[^\s_])([^_\n]*[^\s_])_(?![\w_])/g, '$1');
}

function line(text: string, done: string): string {
  if (/^\s*(?:([-*_])(?:\s*\1){2,}|={3,}|```.*|~~~.*)\s*$/.test(text) || (/^[\s:|-]+$/.test(text) && /-/.test(text) && /\|/.test(text)))
    return '';
  const row = /^\s*\|(.*)\|\s*$/.exec(text)?.[1];
  if (row !== undefined) return row.split('|').map((cell) => cell.trim()).filter((cell) => cell !== '').join(', '); // prettier-ignore
  return text
    .replace(/^\s{0,3}(?:#{1,6}|>)\s+/, '')
    .replace(/^\s*[-*+•]\s+/, '')
    .replace(/^\[ \]\s+/, '')
    .replace(/^\[[xX]\]\s+/, `${done}: `)
    .replace(/(?<=\S) \| (?=\S)/g, ', ');
}
