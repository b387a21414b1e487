/** Converts template values to text as Python's `str` does: templates print lists, `None` and `True` in its spelling. */

/** A value of the template library. */
interface Value {
  readonly type: string;
  readonly value: unknown;
  toString(): string;
}

/** Converts a template's value to text; an undefined value is empty. */
export function pythonText(value: Value): string {
  return value.type === 'StringValue' ? (value.value as string) : value.type === 'UndefinedValue' ? '' : inside(value);
}

/** A value as it is printed within a list or an object, which is Python's `repr`. */
function inside(value: Value): string {
  const list = (values: unknown): string => (values as readonly Value[]).map(inside).join(', ');
  switch (value.type) {
    case 'StringValue':
      return quoted(value.value as string);
    case 'NullValue':
      return 'None';
    case 'BooleanValue':
      return value.value === true ? 'True' : 'False';
    case 'ArrayValue':
      return `[${list(value.value)}]`;
    case 'TupleValue':
      return `(${list(value.value)}${(value.value as readonly unknown[]).length === 1 ? ',' : ''})`;
    case 'ObjectValue':
      return `{${[...(value.value as ReadonlyMap<string, Value>)].map(([name, item]) => `${quoted(name)}: ${inside(item)}`).join(', ')}}`;
    default:
      return value.toString();
  }
}

const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '\\': '\\\\' };

function quoted(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text.replace(/[\\\p{Cc}]/gu, (char) => SHORT[char] ?? `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`);
  return quote + escaped.replaceAll(quote, `\\${quote}`) + quote;
}
