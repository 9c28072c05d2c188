// Numbers as people read them; the same forms as tracer/judge/words.py.

const UNITS = [["s", 1], ["ms", 1e-3], ["us", 1e-6]];

export function duration(seconds) {
  const size = Math.abs(seconds);
  if (size >= 10_000) return `${(seconds / 3600).toFixed(1)} h`;
  for (const [unit, scale] of UNITS) {
    if (size >= 0.9995 * scale) {
      const value = seconds / scale;
      const digits = size >= 99.95 * scale ? 0 : size >= 9.995 * scale ? 1 : 2;
      return `${value.toFixed(digits)} ${unit}`;
    }
  }
  return "0";
}

export function percent(part, whole) {
  if (!whole) return "-";
  const value = 100 * part / whole;
  return `${value.toFixed(Math.abs(value) >= 9.95 ? 0 : 1)} %`;
}

export const count = (number) => Math.round(number).toLocaleString("en");

export const clock = (unix) => new Date(unix * 1000).toTimeString().slice(0, 8);

/** "12 min", for how long something lasts. */
export function span(seconds) {
  if (seconds < 120) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}

export const sum = (numbers) => numbers.reduce((total, each) => total + (each ?? 0), 0);
