import { correctFirst, correctStreams, predictStreams } from '../../engine/ops/streams.ts';
import * as reference from '../reference/streams.ts';
import { describeKernels, randomTensor } from '../support/kernel-case.ts';
import type { KernelCase } from '../support/kernel-case.ts';

const cases: KernelCase[] = [];
for (const [streams, rows, room, columns] of [
  [4, 1, 16, 4],
  [4, 65, 80, 36],
  [2, 3, 3, 260],
  [3, 16, 16, 64],
] as const) {
  const shape = [streams, room, columns];
  const about = `${rows} of ${room} rows of ${columns} in ${streams} streams`;
  // Rows that no stream has are left alone.
  const outputs = { out: { dtype: 'f32', shape, initial: new Float32Array(streams * room * columns) } } as const;
  cases.push({
    name: `predict_streams mixes ${about}`,
    build(rng) {
      const x = randomTensor(rng, shape);
      const coefs = randomTensor(rng, [rows, streams * streams]);
      return {
        inputs: { x, coefs },
        outputs,
        run: (rec, t) => predictStreams(rec, { x: t['x']!, coefs: t['coefs']!, predicted: t['out']!, rows }),
        expected: { out: reference.predictStreams({ values: x.values, streams, room, columns }, coefs.values, rows) },
      };
    },
  });
  for (const first of [false, true]) {
    cases.push({
      name: `correct_streams corrects ${first ? 'the first of ' : ''}${about}`,
      build(rng) {
        const predicted = randomTensor(rng, shape);
        const coefs = randomTensor(rng, [rows, streams]);
        const [passed, added, scale] = [
          randomTensor(rng, [rows, columns]),
          randomTensor(rng, [rows, columns]),
          randomTensor(rng, [columns]),
        ];
        const all = reference.correctStreams({ values: predicted.values, streams, room, columns }, passed.values, coefs.values, added.values, rows); // prettier-ignore
        return {
          inputs: { predicted, coefs, passed, added, scale },
          outputs: first ? { out: { dtype: 'f32', shape: [rows, columns] } } : outputs,
          run(rec, t) {
            const args = { predicted: t['predicted']!, coefs: t['coefs']!, passed: t['passed']!, out: t['out']!, rows };
            if (first) correctFirst(rec, { ...args, scale: t['scale']! });
            else correctStreams(rec, { ...args, added: t['added']! });
          },
          expected: { out: first ? all.slice(0, rows * columns).map((value, i) => value * scale.values[i % columns]!) : all },
        };
      },
    });
  }
}

describeKernels('streams', cases);
