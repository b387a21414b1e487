/** What a chat model cannot do with some settings; all of it is found out before anything is loaded. */
import { splitOf } from '../config.ts';
import type { EngineConfig } from '../config.ts';
import { EngineError } from '../errors.ts';
import type { Remedy } from '../errors.ts';
import type { DecoderDefinition, DecoderShape } from '../models/decoder.ts';
import { expectStages } from '../models/shard.ts';
import type { Json } from '../util/json.ts';
import type { Checkpoint } from '../weights/checkpoint.ts';

/** Throws EngineError if the model cannot be split as the settings say. Checked before any of the adapters, which may be dozens, is opened. */
export function expectCuts(definition: DecoderDefinition, configJson: Json, { layers }: DecoderShape, config: EngineConfig): void {
  const { tpSize, ppSize } = splitOf(config);
  expectStages(layers, ppSize, config.ppSplit);
  // A rank's share of a layer does not depend on where the stages are cut.
  const first = { from: 0, to: layers - ppSize + 1 };
  for (let rank = 0; rank < tpSize; rank++) definition.expectShard?.(configJson, { rank, ranks: tpSize, layers: first });
}

/** The model definition, with its MTP head if the settings ask for drafts by it. Throws EngineError('unsupported') if it has none or cannot be used. */
export function withHeadIfAsked(id: string, definition: DecoderDefinition, config: EngineConfig): DecoderDefinition {
  if (!config.speculativeMtp) return definition;
  if (config.speculativeNgram) throw new EngineError('unsupported', 'tokens are guessed from earlier text or by a head, not both', { remedies: [WITHOUT_HEAD] }); // prettier-ignore
  const { tpSize, ppSize } = splitOf(config);
  if (tpSize * ppSize > 1) throw new EngineError('unsupported', `the head that guesses is not split over ${tpSize * ppSize} adapters`, { remedies: [WITHOUT_HEAD] }); // prettier-ignore
  if (definition.withHead) return definition.withHead;
  throw new EngineError('unsupported', `${id} is of an architecture without a head that guesses`, { remedies: [WITHOUT_HEAD] });
}

const WITHOUT_HEAD: Remedy = { does: 'do without its guesses', settings: [{ name: 'speculativeMtp', value: false }] };

/** Throws EngineError('unsupported') if the checkpoint lacks the MTP head, as many published copies do. */
export function expectHead(id: string, checkpoint: Checkpoint): void {
  if (checkpoint.names().some((name) => name.startsWith('mtp.'))) return;
  throw new EngineError('unsupported', `${id} has no head that guesses: no tensor of it is called mtp`, { remedies: [WITHOUT_HEAD] });
}

/** Refuses settings that a model with recurrent layers does not support; throws EngineError('unsupported'). */
export function refuseForStates(id: string, config: EngineConfig): void {
  const { tpSize, ppSize } = splitOf(config);
  if (tpSize * ppSize > 1) throw new EngineError('unsupported', `${id} has recurrent layers, which cannot be split over ${tpSize * ppSize} adapters`); // prettier-ignore
}

/** Refuses settings that LoRA adapters do not go with; throws EngineError('unsupported'). */
export function refuseForLoras(config: EngineConfig): void {
  const { tpSize, ppSize } = splitOf(config);
  if (tpSize * ppSize > 1) throw new EngineError('unsupported', `a model with LoRA adapters cannot be split over ${tpSize * ppSize} GPUs`);
  if (config.speculativeMtp) throw new EngineError('unsupported', 'the head that guesses does not know LoRA adapters', { remedies: [WITHOUT_HEAD] }); // prettier-ignore
}
