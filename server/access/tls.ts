/** TLS by files: --tls-cert, --tls-key and, where clients must show a certificate, --tls-client-ca. */
import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';

/** Paths of PEM files. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
  /** Certificates of the authorities that sign client certificates (mutual TLS); absent = clients need none. */
  readonly clientCa?: string;
}

/** TLS options of a listening socket. */
export interface TlsOptions {
  readonly cert: string;
  readonly key: string;
  readonly ca?: string;
  readonly requestCert: boolean;
  readonly rejectUnauthorized: boolean;
  readonly minVersion: 'TLSv1.2';
}

/** Names a setting and its file, for error messages. */
type Called = (key: 'tlsCert' | 'tlsKey' | 'tlsClientCa', path: string) => string;

/** Reads the files; throws an Error of one sentence if one is invalid, or certificate and key do not match. */
export function readTls({ cert, key, clientCa }: TlsFiles, read: (path: string) => string, called: Called): TlsOptions {
  const text = (setting: Parameters<Called>[0], path: string): string => {
    try {
      const pem = read(path);
      // Node ignores an empty file: no connection would succeed, or, without authorities, any publicly signed client certificate would be accepted.
      if (pem.trim() === '') throw new Error('it is empty');
      return pem;
    } catch (error) {
      throw new Error(`${called(setting, path)}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
    }
  };
  const options: TlsOptions = {
    cert: text('tlsCert', cert),
    key: text('tlsKey', key),
    ...(clientCa !== undefined && { ca: signers(called('tlsClientCa', clientCa), text('tlsClientCa', clientCa)) }),
    requestCert: clientCa !== undefined,
    rejectUnauthorized: clientCa !== undefined,
    minVersion: 'TLSv1.2',
  };
  try {
    createSecureContext({ ...options });
  } catch (error) {
    throw new Error(`${called('tlsCert', cert)} and ${called('tlsKey', key)} cannot be used together: ${error instanceof Error ? error.message : String(error)}`, { cause: error }); // prettier-ignore
  }
  return options;
}

/** Says why clients will refuse a server's certificate at this time, by its own dates; undefined = they have no reason by those. The server itself would not hear of it. */
export function validityProblem({ cert }: Pick<TlsOptions, 'cert'>, now = Date.now()): string | undefined {
  const own = /-----BEGIN ([^-]*CERTIFICATE)-----[^-]*-----END \1-----/.exec(cert)?.[0];
  if (own === undefined) return undefined;
  const { validFrom, validTo } = new X509Certificate(own);
  if (now > Date.parse(validTo)) return `the certificate expired on ${validTo}; clients refuse it`;
  return now < Date.parse(validFrom) ? `the certificate is not valid before ${validFrom}; clients refuse it` : undefined;
}

/**
 * Checks a file of authorities' certificates and returns it; throws an Error if it has none or a broken one. Node reports neither, and would just let nobody
 * in.
 */
function signers(called: string, pem: string): string {
  const begun = pem.match(/-----BEGIN [^-]*CERTIFICATE-----/g) ?? [];
  const whole = pem.match(/-----BEGIN ([^-]*CERTIFICATE)-----[^-]*-----END \1-----/g) ?? [];
  if (begun.length === 0) throw new Error(`${called}: there is no certificate in it (PEM)`);
  for (let i = 0; i < begun.length; i++) {
    try {
      new X509Certificate(whole[i] ?? '');
    } catch (cause) {
      throw new Error(`${called}: certificate ${i + 1} of ${begun.length} cannot be read`, { cause });
    }
  }
  return pem;
}
