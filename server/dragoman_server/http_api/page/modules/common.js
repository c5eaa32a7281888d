// The longest common subsequence of two lists: where two texts agree.

const MAX_CELLS = 1_000_000;

/**
 * Returns pairs of places `[i, j]`, in order, at which two lists have the same. Beyond a size that
 * would be felt, only what both begin and end with is compared.
 */
export function commonPlaces(one, other) {
  let start = 0;
  while (start < one.length && start < other.length && one[start] === other[start]) {
    start += 1;
  }
  let oneEnd = one.length;
  let otherEnd = other.length;
  while (oneEnd > start && otherEnd > start && one[oneEnd - 1] === other[otherEnd - 1]) {
    oneEnd -= 1;
    otherEnd -= 1;
  }
  const pairs = [];
  for (let i = 0; i < start; i += 1) {
    pairs.push([i, i]);
  }
  const middle = compare(one.slice(start, oneEnd), other.slice(start, otherEnd));
  pairs.push(...middle.map(([i, j]) => [i + start, j + start]));
  for (let i = oneEnd; i < one.length; i += 1) {
    pairs.push([i, i - oneEnd + otherEnd]);
  }
  return pairs;
}

function compare(one, other) {
  const rows = one.length;
  const columns = other.length;
  if (!rows || !columns || rows * columns > MAX_CELLS) {
    return [];
  }
  // lengths[i][j]: of the longest common subsequence of one[i:] and other[j:].
  const width = columns + 1;
  const lengths = new Uint16Array((rows + 1) * width);
  for (let i = rows - 1; i >= 0; i -= 1) {
    for (let j = columns - 1; j >= 0; j -= 1) {
      lengths[i * width + j] =
        one[i] === other[j]
          ? lengths[(i + 1) * width + j + 1] + 1
          : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  const pairs = [];
  let i = 0;
  let j = 0;
  while (i < rows && j < columns) {
    if (one[i] === other[j]) {
      pairs.push([i, j]);
      i += 1;
      j += 1;
    } else if (lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]) {
      i += 1;
    } else {
      j += 1;
    }
  }
  return pairs;
}
