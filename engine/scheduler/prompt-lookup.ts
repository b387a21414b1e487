import type { PromptLookup } from '../config.ts';

/**
 * Up to `count` draft tokens by prompt lookup decoding (Saxena 2023): what followed the longest earlier occurrence of the last `minMatch`
 * to `maxMatch` tokens, the latest among equally long ones. Where the continuation reaches the end of `tokens`, it repeats itself. Empty
 * when there is no match.
 */
export function draftTokens(tokens: readonly number[], { minMatch, maxMatch }: PromptLookup, count: number): number[] {
  const last = tokens.length - 1;
  let longest = minMatch - 1;
  let found = -1;
  for (
    // lastIndexOf(token, -1) would search from the end.
    let end = last > 0 ? tokens.lastIndexOf(tokens[last]!, last - 1) : -1;
    end >= longest && end >= 0;
    end = end > 0 ? tokens.lastIndexOf(tokens[last]!, end - 1) : -1
  ) {
    let length = 1;
    while (length < maxMatch && length <= end && tokens[end - length] === tokens[last - length]) length++;
    if (length <= longest) continue;
    [longest, found] = [length, end];
    if (length === maxMatch) break;
  }
  const drafts: number[] = [];
  if (found < 0) return drafts;
  for (let i = found + 1; drafts.length < count; i++) drafts.push(i <= last ? tokens[i]! : drafts[i - last - 1]!);
  return drafts;
}
