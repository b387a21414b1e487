/**
 * Renders Markdown as elements. The lexer's tokens are rendered directly and no HTML string ever exists, so there is nothing to sanitise:
 * markup in the text is shown as text. Finished blocks keep their elements while the last one grows.
 */
import type { Token, Tokens } from 'marked';
import type { ComponentChildren, VNode } from 'preact';
import { Component } from 'preact';
import { CopyButton } from './copy-button.tsx';
import { GrowingMarkdown } from './growing-markdown.ts';
import { parts } from './parts.tsx';

/** Renders a document; `text` may end in the middle of anything. */
export class Markdown extends Component<{ text: string }> {
  #document = new GrowingMarkdown();

  override render({ text }: { text: string }) {
    let found = this.#document.grow(text);
    // Another text.
    if (found === undefined) found = (this.#document = new GrowingMarkdown()).grow(text)!;
    return <div class="markdown">{parts(found, blockElement)}</div>;
  }
}

const blocks = (tokens: readonly Token[] | undefined): ComponentChildren => tokens?.map((token) => blockElement(token));
const inlines = (tokens: readonly Token[] | undefined): ComponentChildren => tokens?.map((token) => inlineElement(token));

function blockElement(token: Token): ComponentChildren {
  switch (token.type) {
    case 'heading': {
      // Headings of an answer rank below the page's own.
      const Tag = (['h3', 'h4', 'h5'] as const)[Math.min((token as Tokens.Heading).depth, 3) - 1]!;
      return <Tag>{inlines(token.tokens)}</Tag>;
    }
    case 'paragraph':
      return <p>{inlines(token.tokens)}</p>;
    case 'text':
      return token.tokens ? inlines(token.tokens) : token.text;
    case 'code':
      return <CodeBlock code={token as Tokens.Code} />;
    case 'blockquote':
      return <blockquote dir="auto">{blocks(token.tokens)}</blockquote>;
    case 'list':
      return list(token as Tokens.List);
    case 'table':
      return table(token as Tokens.Table);
    case 'hr':
      return <hr />;
    case 'checkbox':
      return <TaskBox checked={(token as Tokens.Checkbox).checked} />;
    case 'space':
    case 'def':
      return null;
    default:
      return <p>{token.raw}</p>;
  }
}

function CodeBlock({ code }: { code: Tokens.Code }) {
  return (
    <div class="code-block">
      <pre tabIndex={0} role="group" aria-label={code.lang ? `Code, ${code.lang}` : 'Code'}>
        <code>{code.text}</code>
      </pre>
      <CopyButton text={() => code.text} />
    </div>
  );
}

const itemElement = ({ task, tokens }: Tokens.ListItem): VNode => <li class={task ? 'task' : undefined}>{blocks(tokens)}</li>;

function list({ ordered, start, items }: Tokens.List): VNode {
  const Tag = ordered ? 'ol' : 'ul';
  return (
    <Tag dir="auto" {...(start !== '' && { start })}>
      {parts(items, itemElement)}
    </Tag>
  );
}

/**
 * The checkbox of a task item, where the lexer found the brackets: before the text of a tight item, in the first paragraph of a loose one.
 */
function TaskBox({ checked }: { checked: boolean }) {
  return (
    <>
      <input type="checkbox" checked={checked} disabled aria-label={checked ? 'Done' : 'Not done'} />{' '}
    </>
  );
}

const sideOf = ({ align }: Tokens.TableCell) => ({ textAlign: align ?? '' });

const rowElement = (row: readonly Tokens.TableCell[]): VNode => (
  <tr>
    {row.map((cell) => (
      <td style={sideOf(cell)}>{inlines(cell.tokens)}</td>
    ))}
  </tr>
);

function table({ header, rows }: Tokens.Table): VNode {
  return (
    <div class="scroll" dir="auto" tabIndex={0} role="group" aria-label={`Table: ${header.map(({ text }) => text).join(', ')}`}>
      <table>
        <thead>
          <tr>
            {header.map((cell) => (
              <th scope="col" style={sideOf(cell)}>
                {inlines(cell.tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{parts(rows, rowElement)}</tbody>
      </table>
    </div>
  );
}

function inlineElement(token: Token): ComponentChildren {
  switch (token.type) {
    case 'strong':
      return <strong>{inlines(token.tokens)}</strong>;
    case 'em':
      return <em>{inlines(token.tokens)}</em>;
    case 'del':
      return <del>{inlines(token.tokens)}</del>;
    case 'codespan':
      return <code>{token.text}</code>;
    case 'br':
      return <br />;
    case 'checkbox':
      return <TaskBox checked={(token as Tokens.Checkbox).checked} />;
    case 'link':
      return link(token as Tokens.Link);
    case 'image':
      // Images are not loaded: fetching an address that a model wrote would tell a stranger that it was read.
      return (
        <span>
          [image: {token.text} {token['href']}]
        </span>
      );
    case 'html':
      return /^<br\s*\/?>$/i.test(token.raw) ? <br /> : token.raw;
    case 'escape':
      // Escapes that begin or end a formula, or are spaces in one, stay as written: nobody escapes those characters for Markdown.
      return /[()[\],;!]/.test(token['text'] as string) ? token.raw : token.text;
    case 'text':
      return token.tokens ? inlines(token.tokens) : token.text;
    default:
      return token.raw;
  }
}

/** Renders a link; only web and mail addresses become links. */
function link({ href, tokens }: Tokens.Link): ComponentChildren {
  if (!/^(https?:|mailto:)/i.test(href)) return inlines(tokens);
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {inlines(tokens)}
    </a>
  );
}
