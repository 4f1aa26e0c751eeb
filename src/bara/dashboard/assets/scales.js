// From values to places, and round numbers beside the axes.

/** The round number that covers low .. high in about so many steps. */
function stepOf(low, high, parts) {
  const span = high - low || Math.abs(high) || 1;
  const power = 10 ** Math.floor(Math.log10(span / parts));
  return power * [1, 2, 2.5, 5, 10].find((factor) => power * factor * parts >= span * 0.999);
}

/** Round numbers that span low .. high in about so many steps. */
export function ticks(low, high, parts = 4) {
  const step = stepOf(low, high, parts);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k += 1) found.push(Number((k * step).toPrecision(12)));
  return found;
}

/** The lowest and highest of the values that are numbers, widened to round numbers unless an end is given. */
export function extent(values, { zero = false, min, max } = {}, parts = 4) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value === null || value === undefined) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) [low, high] = [0, 1];
  if (zero) [low, high] = [Math.min(low, 0), Math.max(high, 0)];
  if (low === high) high = low + (Math.abs(low) || 1);
  const step = stepOf(low, high, parts);
  return [min ?? Math.floor(low / step + 1e-9) * step, max ?? Math.ceil(high / step - 1e-9) * step];
}

/** A straight line from a domain to places. */
export function scale([low, high], [start, end]) {
  const factor = (end - start) / (high - low || 1);
  return (value) => start + (value - low) * factor;
}
