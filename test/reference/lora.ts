/** What LoRA adapters add to a product. */
export { addLora } from '../../engine/runner/plain/lora.ts';
export type { LoraSegment } from '../../engine/runner/plain/lora.ts';
