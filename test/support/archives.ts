/** Wheels and npm packages as small as they can be, with whatever names a test wants: real libraries would refuse to write them. */
import { crc32, gzipSync } from 'node:zlib';

/** A member: its name, content, and for links the kind and the target. */
export interface FakeMember {
  readonly path: string;
  readonly content?: Buffer;
  /** Unix mode and file type in a zip; type flag in a tar. */
  readonly link?: string;
  /** A size that is not the content's. */
  readonly size?: number;
}

/** A zip file of stored members. */
export function zipOf(members: readonly FakeMember[]): Buffer {
  const locals: Buffer[] = [];
  const central: Buffer[] = [];
  let at = 0;
  for (const { path, content = Buffer.alloc(0), link, size } of members) {
    const name = Buffer.from(path);
    const data = link === undefined ? content : Buffer.from(link);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(0x800, 2);
    common.writeUInt32LE(crc32(data), 10);
    common.writeUInt32LE(data.length, 14);
    common.writeUInt32LE(size ?? data.length, 18);
    common.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, name, data]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(((link === undefined ? 0o100644 : 0o120777) << 16) >>> 0, 6);
    tail.writeUInt32LE(at, 10);
    central.push(Buffer.concat([Buffer.from('PK\x01\x02'), Buffer.from([20, 3]), common, tail, name]));
    locals.push(local);
    at += local.length;
  }
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(members.length, 8);
  end.writeUInt16LE(members.length, 10);
  end.writeUInt32LE(Buffer.concat(central).length, 12);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...locals, ...central, end]);
}

/** A gzipped tar file. */
export function tgzOf(members: readonly FakeMember[]): Buffer {
  const blocks = members.flatMap(({ path, content = Buffer.alloc(0), link }) => {
    const header = Buffer.alloc(512);
    header.write(path, 0, 100);
    header.write('0000644\0' + '0000000\0' + '0000000\0', 100);
    header.write(`${content.length.toString(8).padStart(11, '0')}\0`, 124);
    header.write('00000000000\0', 136);
    header.write('        ', 148);
    header.write(link === undefined ? '0' : '2', 156);
    if (link !== undefined) header.write(link, 157, 100);
    header.write('ustar\x0000', 257);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    return [header, content, Buffer.alloc((512 - (content.length % 512)) % 512)];
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)]));
}
