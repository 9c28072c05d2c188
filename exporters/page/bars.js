// The ledger of steps as bars: one slice a cause, in the order of the catalog.

import {el} from "./dom.js";
import {percent, sum} from "./words.js";

/** A bar of `seconds` by cause; `scale` is what the full width stands for. */
export function bar(causes, seconds, scale, kind = "") {
  const slices = causes.filter(({name}) => seconds[name] > 0).map(({name}) => {
    const slice = el("span", {class: `slice cause-${name}`});
    slice.style.width = `${100 * seconds[name] / scale}%`;
    return slice;
  });
  const words = inWords(causes, seconds, causes.length);
  return el("div", {class: `bar ${kind}`, role: "img", "aria-label": words, title: words}, ...slices);
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
