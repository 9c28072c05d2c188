// /live.json as the plots of charts.js want it.

import {count, duration, sum} from "./words.js";

const LABELS = 5;

/** For the heat map. */
export function waits({bounds}, {intervals, absent}) {
  const rows = Math.max(0, bounds.length - 1);
  const middle = Array.from({length: rows}, (_, row) => (bounds[row] + (bounds[row + 1] ?? 2 * bounds[row])) / 2);
  const longest = (columns) => {
    const row = middle.findLastIndex((_, at) => columns.some((counts) => counts?.[at]));
    return row < 0 ? "none" : `the longest ${range(bounds, row)}`;
  };
  return {
    rows, absent,
    columns: intervals.map((counts) => counts && counts.map((n, row) => n * middle[row])),
    marks: marks(bounds),
    summary: `Heat map: waits for a CPU by duration over the last half hour, ${longest(intervals)}`,
    words(at, row) {
      const n = intervals[at][row];
      if (n === undefined) return `${count(sum(intervals[at]))} waits, ${longest([intervals[at]])}`;
      return `${count(n)} waits of ${range(bounds, row)}, ${duration(n * middle[row])} together`;
    },
  };
}

/** "8.39 ms to 12.6 ms" */
function range(bounds, row) {
  const [low, high] = [bounds[row], bounds[row + 1]].map((bound) => bound && duration(bound));
  if (!low) return `less than ${high}`;
  return high ? `${low} to ${high}` : `${low} or more`;
}

/** Where the decades are on an axis whose bounds are that far apart: [row, words]. */
function marks(bounds) {
  return [1e-4, 1e-3, 1e-2, 1e-1, 1, 10].flatMap((seconds) => {
    const row = bounds.findIndex((low, at) => low && low <= seconds && seconds < bounds[at + 1]);
    if (row < 0) return [];
    const place = Math.log(seconds / bounds[row]) / Math.log(bounds[row + 1] / bounds[row]);
    return [[row + place, duration(seconds)]];
  });
}

/** For the stack of causes. */
export function reasons({plots, causes}, {seconds, absent}) {
  const some = causes.filter(({name}) => seconds[name]?.some((each) => each > 0)).map((cause) => ({
    ...cause, rates: seconds[cause.name].map((each, at) => each && each / plots.covered[at]),
  }));
  const [any = []] = Object.values(seconds);
  const totals = any.map((each, at) => each === null ? null : sum(some.map(({rates}) => rates[at])));
  const words = (at) => some.filter(({rates}) => rates[at] > 0)
    .map((cause) => `${duration(cause.rates[at])} ${cause.words}`).join(", ") || "nothing lost";
  return {
    causes: some, totals, absent, words: (at) => `each second ${words(at)}`,
    summary: `Time lost per second by cause; at last ${words(totals.length - 1)}`,
  };
}

/** For the map of steal: CPUs that had any. */
export function stolen({plots, cannot_tell: causes}) {
  const cpus = [...plots.steal].sort((one, other) => one.cpu - other.cpu);
  const told = plots.covered.map((each) => causes.steal ? null : each);
  const columns = told.map((each, at) => each && cpus.map(({seconds}) => seconds[at]));
  const all = sum(cpus.map(({seconds}) => sum(seconds)));
  return {
    rows: cpus.length, columns, absent: causes.steal && "cannot be told here",
    marks: cpus.flatMap(({cpu}, at) => at % Math.ceil(cpus.length / LABELS) ? [] : [[at + 0.5, `CPU ${cpu}`]]),
    summary: `Time that the hypervisor took from each CPU in the last half hour, ${duration(all)} in all`,
    words: (at, row) => cpus[row]
      ? `${duration(cpus[row].seconds[at])} stolen from CPU ${cpus[row].cpu}`
      : `${duration(sum(columns[at]))} stolen from all CPUs together`,
  };
}
