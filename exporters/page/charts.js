// Plots over the last half hour, one column a slot. uPlot does axes, sizes and the shared cursor; the
// columns are painted here.

import {byId} from "./dom.js";
import {clock, duration} from "./words.js";

const {uPlot} = globalThis;
const STEPS = 48;
const GUTTER = 62;
const LEAST_SPAN = 300;
const TIME = {incrs: [60, 300, 600], values: (_, ticks) => ticks.map((tick) => clock(tick).slice(0, 5))};

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

class Columns {
  /** `id` of the place; below it is a line with what the cursor points at. */
  constructor(id) {
    this.place = byId(id);
    this.line = byId(`${id}-reading`);
    this.height = this.place.clientHeight;
    this.plot = new uPlot(this.options(), [[0, 1], [0, 0]], this.place);
    new ResizeObserver(() => this.resize()).observe(this.place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.plot.redraw());
  }

  options() {
    const axis = {stroke: () => css("--muted"), grid: {stroke: () => css("--line"), width: 1},
      ticks: {show: false}, font: "12px system-ui, sans-serif"};
    return {
      width: this.place.clientWidth || 300, height: this.height,
      legend: {show: false},
      cursor: {sync: {key: "slots"}, y: false, points: {show: false}, drag: {x: false, y: false}},
      scales: {x: {time: true, range: () => this.span()}, y: {range: () => [0, this.top()]}},
      series: [{}, {paths: () => null, points: {show: false}}],
      axes: [{...axis, size: 26, space: 70, ...TIME}, {...axis, size: GUTTER, ...this.axis()}],
      hooks: {drawClear: [() => this.paint()], setCursor: [() => this.read()]},
    };
  }

  show(plots, of) {
    this.plots = plots;
    this.of = of;
    this.height = this.place.clientHeight;
    this.plot.setData([[plots.begin, plots.until], [0, 0]]);
    this.resize();
    this.place.setAttribute("aria-label", this.summary());
    this.read();
  }

  resize() {
    const width = this.place.clientWidth;
    const {plot, height} = this;
    if (width && (width !== plot.width || height !== plot.height)) plot.setSize({width, height});
  }

  /** What is plotted: all that is known, or a few minutes. */
  span() {
    if (!this.plots) return [0, 1];
    const {begin, until} = this.plots;
    return [Math.min(begin, until - LEAST_SPAN), until];
  }

  begin(at) { return this.plots.begin + at * this.plots.slot_seconds; }

  paint() {
    if (!this.of) return;
    const {ctx, bbox} = this.plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.fillStyle = css("--absent");
    ctx.fillRect(bbox.left, bbox.top, bbox.width, bbox.height);
    for (let at = 0; at < this.length(); at++) {
      if (this.isAbsent(at)) continue;
      const end = Math.min(this.begin(at + 1), this.plots.until);
      const left = Math.round(this.plot.valToPos(this.begin(at), "x", true));
      const right = Math.round(this.plot.valToPos(end, "x", true));
      ctx.fillStyle = css("--panel");
      ctx.fillRect(left, bbox.top, right - left, bbox.height);
      this.column(ctx, at, left, Math.max(1, right - left));
    }
    ctx.restore();
  }

  rectangle(ctx, left, width, low, high) {
    const top = Math.round(this.plot.valToPos(high, "y", true));
    const bottom = Math.round(this.plot.valToPos(low, "y", true));
    ctx.fillRect(left, top, width, Math.max(1, bottom - top));
  }

  /** Where the cursor is: [slot, value], or the newest slot. */
  pointed() {
    const {left, top} = this.plot.cursor;
    const inside = left >= 0;
    const seconds = inside ? this.plot.posToVal(left, "x") : this.plots.until - 1e-3;
    const at = Math.floor((seconds - this.plots.begin) / this.plots.slot_seconds);
    return [at, inside && top >= 0 ? this.plot.posToVal(top, "y") : null];
  }

  read() {
    if (!this.of) return;
    const [at, value] = this.pointed();
    const when = at < 0 ? "before the agent began" : clock(this.begin(at));
    const known = at >= 0 && at < this.length() && !this.isAbsent(at);
    this.line.textContent = `${when}: ${known ? this.words(at, value) : this.of.absent ?? "not traced"}`;
  }
}

/** Rows over time, coloured by the time that they stand for. */
export class HeatMap extends Columns {
  /** `least` and `most`: seconds in a slot at the ends of the colours. */
  constructor(id, least, most) {
    super(id);
    [this.least, this.most] = [least, most];
    byId(`${id}-ramp`).textContent = `${duration(least)} to ${duration(most)} in 10 s`;
  }

  axis() {
    return {
      splits: () => this.of?.marks.map(([at]) => at) ?? [],
      values: () => this.of?.marks.map(([, words]) => words) ?? [],
    };
  }

  top() { return Math.max(1, this.of?.rows ?? 1); }
  length() { return this.of.columns.length; }
  isAbsent(at) { return this.of.columns[at] === null; }
  words(at, value) { return this.of.words(at, value === null ? null : Math.floor(value)); }
  summary() { return this.of.summary; }

  column(ctx, at, left, width) {
    const whole = this.plots.slot_seconds / this.plots.covered[at];
    this.of.columns[at].forEach((seconds, row) => {
      if (!(seconds > 0)) return;
      ctx.fillStyle = this.colour(seconds * whole);
      this.rectangle(ctx, left, width, row, row + 1);
    });
  }

  colour(seconds) {
    const part = Math.log(seconds / this.least) / Math.log(this.most / this.least);
    return ramp()[Math.round(Math.min(1, Math.max(0, part)) * (STEPS - 1))];
  }
}

/** Time lost per second, stacked by cause. */
export class Stack extends Columns {
  axis() { return {values: (_, ticks) => ticks.map((tick) => duration(tick))}; }
  top() { return Math.max(0.01, 1.1 * Math.max(0, ...(this.of?.totals ?? []))); }
  length() { return this.of.totals.length; }
  isAbsent(at) { return this.of.totals[at] === null; }
  words(at) { return this.of.words(at); }
  summary() { return this.of.summary; }

  column(ctx, at, left, width) {
    let low = 0;
    for (const {name, rates} of this.of.causes) {
      if (!(rates[at] > 0)) continue;
      ctx.fillStyle = css(`--${name}`);
      this.rectangle(ctx, left, width, low, low + rates[at]);
      low += rates[at];
    }
  }
}

let known = {};

/** The colours of the style sheet's ramp, STEPS of them. */
function ramp() {
  const ends = [0, 1, 2, 3, 4].map((at) => css(`--ramp-${at}`));
  if (known.ends !== ends.join()) known = {ends: ends.join(), colours: mixed(ends)};
  return known.colours;
}

function mixed(ends) {
  const parts = ends.map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  return Array.from({length: STEPS}, (_, step) => {
    const at = step / (STEPS - 1) * (ends.length - 1);
    const low = Math.min(Math.floor(at), ends.length - 2);
    const mix = parts[low].map((from, i) => Math.round(from + (at - low) * (parts[low + 1][i] - from)));
    return `rgb(${mix.join(" ")})`;
  });
}

const SVG = "http://www.w3.org/2000/svg";

/** A line of numbers as small as a word; a gap where there is none. */
export function sparkline(series, words) {
  const most = Math.max(...series.map((each) => each ?? 0)) || 1;
  let path = "";
  let pen = "M";
  series.forEach((each, at) => {
    if (each === null) { pen = "M"; return; }
    path += `${pen}${at},${(20 - 18 * each / most).toFixed(1)}`;
    pen = "L";
  });
  const svg = document.createElementNS(SVG, "svg");
  for (const [key, value] of Object.entries({class: "spark", role: "img", "aria-label": words,
    viewBox: `0 0 ${Math.max(1, series.length - 1)} 22`, preserveAspectRatio: "none"})) {
    svg.setAttribute(key, value);
  }
  const line = document.createElementNS(SVG, "path");
  line.setAttribute("d", path);
  svg.append(line);
  return svg;
}
