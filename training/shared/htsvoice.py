"""New speakers out of festival's HTS voice (Debian festvox-us-slt-hts)."""

import math, re, struct

HTS = "/usr/share/festival/voices/us/cmu_us_slt_arctic_hts/hts/cmu_us_slt_arctic_hts.htsvoice"


def edit_htsvoice(dst, alpha, f0, rng):
    """Shift/scale the log-F0 stream and set the spectral all-pass constant inside an .htsvoice file."""
    b = open(HTS, "rb").read()
    cut = b.index(b"[DATA]\n") + 7
    head, data = b[:cut].decode("latin1"), bytearray(b[cut:])
    pos = {m[1]: (int(m[2]), int(m[3])) for m in re.finditer(r"(\w+(?:\[\w+\])?):(\d+)-(\d+)", head)}
    lo, hi = pos["STREAM_PDF[LF0]"]
    ns = 5
    counts = struct.unpack_from("<%di" % ns, data, lo)
    assert lo + 4 * ns + sum(counts) * 7 * 4 == hi + 1, (counts, lo, hi)
    off = lo + 4 * ns
    n = sum(counts)
    rows = [list(struct.unpack_from("<7f", data, off + 28 * i)) for i in range(n)]
    voiced = [r[0] for r in rows if r[6] > 0.5]
    mean = sum(voiced) / len(voiced)
    for i, r in enumerate(rows):
        r[0] = mean + (r[0] - mean) * rng + math.log(f0)
        r[1] *= rng
        r[2] *= rng
        for k in (3, 4, 5):
            r[k] *= rng * rng
        struct.pack_into("<7f", data, off + 28 * i, *r)
    lo, hi = pos["GV_PDF[LF0]"]  # global variance of log-F0: int counts, then mean/var pairs
    gc = struct.unpack_from("<i", data, lo)[0]
    for i in range(gc):
        o = lo + 4 + 8 * i
        m, v = struct.unpack_from("<2f", data, o)
        struct.pack_into("<2f", data, o, m * rng * rng, v * rng**4)
    head = re.sub(r"ALPHA=[0-9.]+", "ALPHA=%g" % alpha, head)
    open(dst, "wb").write(head.encode("latin1") + bytes(data))
