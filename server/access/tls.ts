/** TLS by files: --tls-cert, --tls-key and, where clients must show a certificate, --tls-client-ca. */
import { createSecureContext } from 'node:tls';

/** Paths of PEM files. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
  /** Who signs the certificates of clients; without it none is asked for. */
  readonly clientCa?: string;
}

/** What a socket is opened with. */
export interface TlsOptions {
  readonly cert: string;
  readonly key: string;
  readonly ca?: string;
  readonly requestCert: boolean;
  readonly rejectUnauthorized: boolean;
  readonly minVersion: 'TLSv1.2';
}

/** Reads the files; throws an Error of one sentence where they are none, or do not belong together. */
export function readTls({ cert, key, clientCa }: TlsFiles, read: (path: string) => string): TlsOptions {
  const text = (flag: string, path: string): string => {
    try {
      return read(path);
    } catch (error) {
      throw new Error(`--${flag} ${path}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
    }
  };
  const options: TlsOptions = {
    cert: text('tls-cert', cert),
    key: text('tls-key', key),
    ...(clientCa !== undefined && { ca: text('tls-client-ca', clientCa) }),
    requestCert: clientCa !== undefined,
    rejectUnauthorized: clientCa !== undefined,
    minVersion: 'TLSv1.2',
  };
  try {
    createSecureContext({ ...options });
  } catch (error) {
    throw new Error(`--tls-cert ${cert} and --tls-key ${key} cannot be used together: ${error instanceof Error ? error.message : String(error)}`, { cause: error }); // prettier-ignore
  }
  return options;
}
