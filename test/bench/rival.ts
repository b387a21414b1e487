/** ONNX Runtime on a small model: its WebGPU provider is the rival on the same adapter, its CPU provider a reference line. */
import * as ort from 'onnxruntime-node';
import { onnxModel } from './onnx.ts';
import type { OnnxGraph } from './onnx.ts';
import type { Contender } from './harness.ts';

/** Options of every session: its idle worker threads would otherwise spin on the cores that the others compute on. */
export const IDLE_SESSION = {
  logSeverityLevel: 3,
  extra: { session: { intra_op: { allow_spinning: '0' }, inter_op: { allow_spinning: '0' } } },
} as const;

/** A session that runs a graph on the given inputs, host memory to host memory. */
export async function ortContender(
  provider: 'webgpu' | 'cpu',
  graph: OnnxGraph,
  inputs: Readonly<Record<string, Float32Array>>,
): Promise<Contender> {
  const session = await ort.InferenceSession.create(onnxModel(graph), { executionProviders: [provider], ...IDLE_SESSION });
  const feeds: Record<string, ort.Tensor> = {};
  for (const [name, dims] of Object.entries(graph.inputs)) feeds[name] = new ort.Tensor('float32', inputs[name]!, dims);
  return {
    name: `ORT ${provider}`,
    run: async () => (await session.run(feeds))['y']!.data as Float32Array,
  };
}
