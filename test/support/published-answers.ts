/** Answers against /openapi.json, more strictly than it says: a field that it does not declare is a mistake here, but clients are to bear those of later versions. */
import Ajv from 'ajv/dist/2020.js';
import type { AnySchema, ValidateFunction } from 'ajv';

interface Operation {
  readonly responses: Readonly<Record<'200' | 'default', Response>>;
}
interface Response {
  readonly content: Readonly<Record<string, { readonly schema: AnySchema }>>;
}

/** What is compared of an answer. */
interface Given {
  readonly status: number;
  readonly headers: { readonly 'content-type'?: string | undefined };
  readonly text: string;
}

export class PublishedAnswers {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly #ajv: Ajv;

  constructor(document: string) {
    const { paths, components } = JSON.parse(document, closed) as Pick<PublishedAnswers, 'paths'> & { readonly components: object };
    this.paths = paths;
    const isTime = (text: string): boolean => !Number.isNaN(Date.parse(text));
    this.#ajv = new Ajv({ strict: false, formats: { int64: true, binary: true, 'date-time': isTime } });
    this.#ajv.addSchema({ paths, components }, DOCUMENT);
  }

  /** What is wrong with an answer; nothing of a path without a description, such as a file of the playground. */
  problemsOf(method: string, path: string, { status, headers, text }: Given): string[] {
    if (method === 'HEAD' || method === 'OPTIONS' || (status !== 200 && status < 400)) return [];
    const type = headers['content-type']?.replace(/\s*;.*/, '') ?? '';
    if (status !== 200) {
      if (type !== 'application/json') return [`${method} ${path}: ${status} is ${type}`];
      return this.#compare(`${method} ${path} ${status}`, ERROR, JSON.parse(text));
    }
    const described = this.describedPath(path);
    if (described === undefined) return [];
    const place = `${method} ${path} ${type}`;
    const schema = this.paths[described]![method.toLowerCase()]?.responses[200].content[type]?.schema;
    if (schema === undefined) return [`${place} is not described`];
    const at = `#/paths/${described.replaceAll('/', '~1')}/${method.toLowerCase()}/responses/200/content/${type.replace('/', '~1')}/schema`;
    if (type === 'application/json') return this.#compare(place, at, JSON.parse(text));
    if (type !== 'text/event-stream') return this.#compare(place, at, text);
    return eventsOf(text).flatMap((event) => this.#compare(place, isError(event) ? ERROR : at, event));
  }

  /** The path of the document that a request's path stands for. */
  describedPath(path: string): string | undefined {
    const bare = path.length > 1 ? path.replace(/\/$/, '') : path;
    const all = Object.keys(this.paths);
    const matches = (known: string): boolean => known === bare || known === `/v1${bare}`;
    return (
      all.find(matches) ?? all.find((known) => new RegExp(`^${known.replace(/\{\w+\}/g, '.+')}$`).test(bare.replace(/^(\/v1)?/, '/v1')))
    );
  }

  #compare(place: string, at: string, value: unknown): string[] {
    const validate = this.#ajv.getSchema(DOCUMENT + at) as ValidateFunction;
    if (validate(value)) return [];
    return [`${place}: ${this.#ajv.errorsText(validate.errors)} in ${JSON.stringify(value).slice(0, 500)}`];
  }
}

const DOCUMENT = 'document';
const ERROR = '#/components/schemas/Error';

/** The JSON of a stream's events. */
export const eventsOf = (text: string): unknown[] =>
  [...text.matchAll(/^data: (?!\[DONE\]$)(.*)$/gm)].map(([, event]) => JSON.parse(event!) as unknown);

const isError = (event: unknown): boolean => typeof event === 'object' && event !== null && 'error' in event;

/** Closes a schema of an object, when JSON.parse calls it, to fields that it does not declare. */
const closed = (_: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && 'properties' in value && 'type' in value && value.type === 'object'
    ? { additionalProperties: false, ...value }
    : value;
