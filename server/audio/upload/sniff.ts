/** Detects the format of a file by its first bytes, since names and declared types lie. */
import { isWav } from '../../../engine/audio/wav.ts';
import type { FileBytes } from '../../../engine/audio/wav.ts';
import { mpegStart } from './mpeg-start.ts';
import { tagEnd } from './repair/tags.ts';

/** Names of the formats that are decoded, for errors and documentation. */
export const READ_FORMATS = ['WAV', 'MP3', 'FLAC', 'Ogg', 'MP4', 'WebM', 'AAC', 'AIFF', 'CAF', 'AU', 'W64', 'FLV'] as const;
export type FileFormat = (typeof READ_FORMATS)[number];

/** First bytes of Wave 64: its name has 16 bytes. */
export const W64_MAGIC = /^riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb/;

/** First bytes of the formats that are read. An ID3 tag may precede MP3 and AAC. */
const READ: readonly (readonly [FileFormat, RegExp])[] = [
  ['FLAC', /^fLaC/],
  ['AAC', /^\xff[\xf0\xf1\xf8\xf9]/],
  // Layers I to III of MPEG 1, 2 and 2.5; a layer of 0 is AAC's.
  ['MP3', /^(ID3|\xff[\xe2-\xe7\xf2-\xf7\xfa-\xff])/],
  ['Ogg', /^OggS(?![\s\S]{24}Speex)/],
  ['MP4', /^[\s\S]{4}ftyp/],
  ['WebM', /^\x1aE\xdf\xa3/],
  ['AIFF', /^FORM[\s\S]{4}AIF[FC]/],
  ['CAF', /^caff/],
  ['AU', /^\.snd/],
  ['W64', W64_MAGIC],
  ['FLV', /^FLV\x01/],
];

/** First bytes of formats that people send by mistake. */
const OTHER: readonly (readonly [string, RegExp])[] = [
  ['JPEG', /^\xff\xd8\xff/],
  ['PNG', /^\x89PNG/],
  ['PDF', /^%PDF/],
  ['ZIP', /^PK\x03\x04/],
  ['MIDI', /^MThd/],
  ['AMR', /^#!AMR/],
  ['Speex in Ogg', /^OggS/],
  ['WMA', /^0&\xb2u/],
  ['AVI', /^RIFF[\s\S]{4}AVI/],
  ['AC-3', /^\x0bw/],
  ['WavPack', /^wvpk/],
  ["Monkey's Audio", /^MAC /],
  ['TTA', /^TTA[12]/],
  ['Musepack', /^(MPCK|MP\+)/],
  ['DTS', /^(\x7f\xfe\x80\x01|\xfe\x7f\x01\x80)/],
  ['DSD', /^(DSD |FRM8)/],
  // Of dictation machines.
  ['DSS', /^[\x02\x03]ds[s2]/],
  ['Creative Voice', /^Creative Voice File/],
  ['RealMedia', /^\.(RMF|ra)/],
  ['MPEG video', /^\0\0\x01[\xb3\xba]/],
  // Packets of 188 bytes begin with a G; Blu-ray puts four bytes before each.
  ['an MPEG transport stream', /^(G[\s\S]{187}G|[\s\S]{4}G[\s\S]{191}G)/],
];

/** Bytes at the beginning of a file that are examined. */
const SNIFFED_BYTES = 197;

/** A file's format, and the offset at which it begins. */
export interface KnownFile {
  readonly format: FileFormat;
  readonly at: number;
}

/** Detects a file's format; undefined if it is none that is read. */
export function formatOf(bytes: FileBytes): KnownFile | undefined {
  const head = bytes.subarray(0, SNIFFED_BYTES);
  const format = formatAt(head);
  // Programs that know songs only put their tag before files of every kind.
  const behind = tagEnd(bytes, 0);
  const tagged = behind > 0 ? formatAt(bytes.subarray(behind, behind + SNIFFED_BYTES)) : undefined;
  if (tagged !== undefined && tagged !== 'MP3' && tagged !== 'AAC') return { format: tagged, at: behind };
  if (format) return { format, at: 0 };
  // A file of another known format is that, whatever its bytes further on look like.
  return otherName(head) === undefined ? mpegStart(bytes) : undefined;
}

const formatAt = (head: Uint8Array): FileFormat | undefined =>
  isWav(head) ? 'WAV' : READ.find(([, magic]) => magic.test(latin1(head)))?.[0];

/** Name of the format of a file that is not read, for messages. */
export const nameOf = (bytes: FileBytes): string => otherName(bytes.subarray(0, SNIFFED_BYTES)) ?? 'no known audio format';

const otherName = (head: Uint8Array): string | undefined => OTHER.find(([, magic]) => magic.test(latin1(head)))?.[0];

const latin1 = (head: Uint8Array): string => String.fromCharCode(...head);
