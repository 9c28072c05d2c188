// Bars. Those of a ledger have one slice a cause, in the order of the catalog.

import {el} from "./dom.js";
import {percent, sum} from "./words.js";

/** A bar of slices, each [class, part of the whole width]. */
export function shares(parts, words, kind = "") {
  const slices = parts.map(([colour, part]) => {
    const slice = el("span", {class: `slice ${colour}`});
    slice.style.width = `${100 * part}%`;
    return slice;
  });
  return el("div", {class: `bar ${kind}`, role: "img", "aria-label": words, title: words}, ...slices);
}

/** A bar of `seconds` by cause; `scale` is what the full width stands for. */
export function bar(causes, seconds, scale, kind = "") {
  const some = causes.filter(({name}) => seconds[name] > 0);
  const parts = some.map(({name}) => [`cause-${name}`, seconds[name] / scale]);
  return shares(parts, inWords(causes, seconds, causes.length), kind);
}

/** The largest causes: "93 % running, 4.8 % in the run queue". */
export function inWords(causes, seconds, most) {
  const total = sum(Object.values(seconds));
  return causes.filter(({name}) => seconds[name] > 0)
    .sort((one, other) => seconds[other.name] - seconds[one.name]).slice(0, most)
    .map((cause) => `${percent(seconds[cause.name], total)} ${cause.words}`).join(", ");
}

export function legend(causes) {
  return causes.map(({name, words, help}) => el("span", {class: "key", title: help},
    el("span", {class: `swatch cause-${name}`}), words));
}

/** The wall time of a step with its median step below it, on one scale. */
export function pair(causes, step, scale) {
  return el("div", {class: "pair"},
    bar(causes, step.seconds, scale),
    bar(causes, step.typical, scale, "typical"));
}
