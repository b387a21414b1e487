/** TLS by files: --tls-cert, --tls-key and, where clients must show a certificate, --tls-client-ca. */
import { X509Certificate } from 'node:crypto';
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
      const pem = read(path);
      // Node leaves an empty one out: nobody gets a connection, or of signers, whoever has a certificate of any public authority does.
      if (pem.trim() === '') throw new Error('it is empty');
      return pem;
    } catch (error) {
      throw new Error(`--${flag} ${path}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
    }
  };
  const options: TlsOptions = {
    cert: text('tls-cert', cert),
    key: text('tls-key', key),
    ...(clientCa !== undefined && { ca: signers(clientCa, text('tls-client-ca', clientCa)) }),
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

/**
 * The certificates of a file of signers; throws where there is none, or one is broken. Node says nothing of either: where the text is no certificate
 * it lets nobody in.
 */
function signers(path: string, pem: string): string {
  const begun = pem.match(/-----BEGIN [^-]*CERTIFICATE-----/g) ?? [];
  const whole = pem.match(/-----BEGIN ([^-]*CERTIFICATE)-----[^-]*-----END \1-----/g) ?? [];
  if (begun.length === 0) throw new Error(`--tls-client-ca ${path}: there is no certificate in it (PEM)`);
  for (let i = 0; i < begun.length; i++) {
    try {
      new X509Certificate(whole[i] ?? '');
    } catch (cause) {
      throw new Error(`--tls-client-ca ${path}: certificate ${i + 1} of ${begun.length} cannot be read`, { cause });
    }
  }
  return pem;
}
