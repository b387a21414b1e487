/**
 * Sounds in which nobody speaks: what a recogniser is given by a microphone that was left on. Seeded, so that the same call always gives the same samples.
 * Twelve kinds, five levels and five lengths about the 30 s of a window of Whisper are 300 clips.
 */

export const NON_SPEECH_RATE = 16000;

/** Clips in which nobody speaks, by kind; every generator fills samples at about full scale. */
export const NON_SPEECH_KINDS = {
  /** What a converter without a signal gives: two steps of 16 bits at random. */
  dither: (out, random) => fill(out, () => (random() < 0.5 ? 0 : 1)),
  white: (out, random) => fill(out, () => 2 * random() - 1),
  pink: (out, random) => pink(out, random),
  brown: (out, random) => brown(out, random),
  /** Mains at 50 Hz with its harmonics. */
  hum: (out) => fill(out, (t) => [1, 2, 3, 5].reduce((sum, n) => sum + tone(50 * n, t) / n, 0)),
  /** Keys, taps and faults of a line: impulses of a millisecond that ring out. */
  clicks: (out, random) => strikes(out, random, { every: 0.7, hz: 2500, decay: 0.002 }),
  /** Air through a mouth: noise with a formant, in and out every four seconds. */
  breath: (out, random) => breath(out, random),
  /** One voice of sines, a note every 0.4 s. */
  melody: (out, random) => notes(out, random, 1),
  /** Three voices with harmonics, and a drum. */
  music: (out, random) => notes(out, random, 3),
  /** A telephone: two tones, one second on and two off. */
  ringing: (out) => fill(out, (t) => (t % 3 < 1 ? tone(440, t) + tone(480, t) : 0)),
  /** Doors and steps: low thuds far apart. */
  thuds: (out, random) => strikes(out, random, { every: 2.5, hz: 70, decay: 0.08 }),
  /** A fan: low noise with the tone of its blades, which wavers. */
  fan: (out, random) => {
    brown(out, random);
    for (let i = 0; i < out.length; i++) {
      const t = i / NON_SPEECH_RATE;
      out[i]! += 0.3 * tone(120, t + 0.001 * Math.sin(t));
    }
  },
} as const satisfies Readonly<Record<string, (out: Float32Array, random: () => number) => void>>;

/** Peaks, in decibels of full scale: from the noise of a quiet room to a recording that clips almost. */
export const NON_SPEECH_LEVELS = [-60, -40, -25, -12, -1] as const;
/** Seconds: below, at and above one window, where the second one would be a scrap. */
export const NON_SPEECH_SECONDS = [28, 29.98, 30, 30.02, 33] as const;

export type NonSpeechKind = keyof typeof NON_SPEECH_KINDS;

export interface NonSpeechClip {
  readonly name: string;
  readonly samples: Float32Array;
}

/** All 300 clips, made as they are asked for. */
export function* nonSpeechClips(): Generator<NonSpeechClip> {
  for (const kind of Object.keys(NON_SPEECH_KINDS) as NonSpeechKind[])
    for (const level of NON_SPEECH_LEVELS)
      for (const seconds of NON_SPEECH_SECONDS)
        yield { name: `${kind} ${level} dB ${seconds} s`, samples: nonSpeech(kind, level, seconds) };
}

/** `seconds` of one kind whose highest peak lies at `level` dB; mono at NON_SPEECH_RATE. */
export function nonSpeech(kind: NonSpeechKind, level: number, seconds: number): Float32Array {
  const samples = new Float32Array(Math.round(seconds * NON_SPEECH_RATE));
  const generators: Readonly<Record<NonSpeechKind, (out: Float32Array, random: () => number) => void>> = NON_SPEECH_KINDS;
  generators[kind](samples, mulberry(level * 1000 + Math.round(seconds * 100) + kind.length));
  const peak = samples.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const gain = 10 ** (level / 20) / Math.max(peak, 1e-9);
  return samples.map((value) => value * gain);
}

/** Numbers in 0..1 that depend on the seed alone (Mulberry32). */
function mulberry(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const tone = (hz: number, seconds: number): number => Math.sin(2 * Math.PI * hz * seconds);

function fill(out: Float32Array, at: (seconds: number) => number): void {
  for (let i = 0; i < out.length; i++) out[i] = at(i / NON_SPEECH_RATE);
}

/** Noise whose power falls by 3 dB an octave: white noise through Paul Kellet's three poles. */
function pink(out: Float32Array, random: () => number): void {
  let [a, b, c] = [0, 0, 0];
  for (let i = 0; i < out.length; i++) {
    const white = 2 * random() - 1;
    a = 0.99765 * a + white * 0.099046;
    b = 0.963 * b + white * 0.2965164;
    c = 0.57 * c + white * 1.0526913;
    out[i] = a + b + c + white * 0.1848;
  }
}

/** Noise whose power falls by 6 dB an octave above 10 Hz, at about full scale. */
function brown(out: Float32Array, random: () => number): void {
  let state = 0;
  for (let i = 0; i < out.length; i++) {
    state = 0.996 * state + (2 * random() - 1) * 0.06;
    out[i] = state;
  }
}

/** A resonance at `hz` that is struck about every so many seconds and dies away in `decay` seconds. */
function strikes(
  out: Float32Array,
  random: () => number,
  { every, hz, decay }: { readonly every: number; readonly hz: number; readonly decay: number },
): void {
  for (let at = random() * every; at < out.length / NON_SPEECH_RATE; at += every * (0.5 + random())) {
    const first = Math.floor(at * NON_SPEECH_RATE);
    const force = 0.3 + 0.7 * random();
    for (let i = first; i < Math.min(out.length, first + 8 * decay * NON_SPEECH_RATE); i++) {
      const t = (i - first) / NON_SPEECH_RATE;
      out[i]! += force * tone(hz, t) * Math.exp(-t / decay);
    }
  }
}

/** Noise through a resonance at 1,200 Hz, louder and softer. */
function breath(out: Float32Array, random: () => number): void {
  const radius = 0.93;
  const cosine = Math.cos((2 * Math.PI * 1200) / NON_SPEECH_RATE);
  let [last, before] = [0, 0];
  for (let i = 0; i < out.length; i++) {
    const phase = (i / NON_SPEECH_RATE) % 4;
    const loudness = phase < 1.5 ? Math.sin((Math.PI * phase) / 1.5) : phase < 3.2 ? 0.6 * Math.sin((Math.PI * (phase - 1.5)) / 1.7) : 0;
    const now = 2 * random() - 1 + 2 * radius * cosine * last - radius * radius * before;
    [before, last] = [last, now];
    out[i] = loudness * now;
  }
}

/** Notes of a scale, each struck and fading; with several voices they have harmonics and a drum beats. */
function notes(out: Float32Array, random: () => number, voices: number): void {
  const scale = [0, 2, 4, 5, 7, 9, 11, 12];
  for (let voice = 0; voice < voices; voice++) {
    for (let at = 0; at < out.length / NON_SPEECH_RATE; at += 0.4) {
      const hz = 220 * 2 ** (voice / 2 + scale[Math.floor(random() * scale.length)]! / 12);
      const first = Math.floor(at * NON_SPEECH_RATE);
      for (let i = first; i < Math.min(out.length, first + 0.4 * NON_SPEECH_RATE); i++) {
        const t = (i - first) / NON_SPEECH_RATE;
        const timbre = voices === 1 ? tone(hz, t) : tone(hz, t) + tone(2 * hz, t) / 2 + tone(3 * hz, t) / 3;
        out[i]! += timbre * Math.min(1, t / 0.01) * Math.exp(-3 * t);
      }
    }
  }
  if (voices > 1) strikes(out, random, { every: 0.8, hz: 60, decay: 0.05 });
}
