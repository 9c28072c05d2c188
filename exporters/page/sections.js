// What each part of the page shows of /live.json.

import {bar, inWords, legend, pair} from "./bars.js";
import {HeatMap, Stack, sparkline} from "./charts.js";
import {byId, el, fill, table} from "./dom.js";
import {problems} from "./problems.js";
import {clock, count, duration, percent, span, sum} from "./words.js";

const SLOWEST = 6;
const BLAMED = 8;
const WEIGHTS = {misleads: "bad", costs: "warn", note: "note"};

export class Sections {
  constructor() {
    this.heat = new HeatMap("heat", 1e-3, 1);
    this.why = new Stack("why");
    this.steal = new HeatMap("steal", 1e-2, 5);
  }

  /** `tenant` is "" for all. */
  show(live, tenant) {
    const plotted = live.plots.tenants.find((each) => (each.tenant ?? "") === tenant)
      ?? {intervals: [], seconds: {}};
    fill(byId("verdict"), ...verdict(live, tenant));
    this.heat.show(live.plots, waits(live.plots, plotted.intervals));
    this.why.show(live.plots, reasons(live, plotted.seconds));
    fill(byId("blame"), blame(live, tenant));
    fill(byId("causes"), ...legend(live.causes.filter(({name}) => live.recent.some((row) => row.seconds[name]))));
    fill(byId("steps"), steps(live, tenant));
    fill(byId("slowest"), ...slowest(live, tenant));
    this.steal.show(live.plots, stolen(live.plots));
    fill(byId("stall"), ...["steal", "stall"].filter((cause) => live.cannot_tell[cause])
      .map((cause) => `Not told: ${live.cannot_tell[cause]}. `));
    fill(byId("placement"), el("p", {class: "absent"}, "Not told: this agent does not ask where pages lie."));
    fill(byId("findings"), ...findings(live));
    fill(byId("unknown"), ...unknown(live));
  }
}

function verdict(live, tenant) {
  const found = problems(live, tenant);
  if (found.length) {
    return found.map(({weight, title, words}) =>
      el("p", {class: `problem ${weight}`}, el("strong", {}, title), " ", words));
  }
  const seen = live.recent.some((row) => !tenant || row.tenant === tenant);
  return [seen
    ? el("p", {class: "problem good"}, el("strong", {}, "Nothing wrong."),
      " In the last minute steps got their CPUs when they wanted them.")
    : el("p", {class: "problem note"}, el("strong", {}, "No steps in the last minute."),
      " Does the engine mark them, and do the targets match it?")];
}

/** For the heat map. */
function waits({bounds}, intervals) {
  const rows = Math.max(0, bounds.length - 1);
  const middle = Array.from({length: rows}, (_, row) => (bounds[row] + (bounds[row + 1] ?? 2 * bounds[row])) / 2);
  const longest = (columns) => {
    const row = middle.findLastIndex((_, at) => columns.some((counts) => counts?.[at]));
    return row < 0 ? "none" : `the longest ${range(bounds, row)}`;
  };
  return {
    rows,
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
function reasons({plots, causes}, seconds) {
  const some = causes.filter(({name}) => seconds[name]?.some((each) => each > 0)).map((cause) => ({
    ...cause, rates: seconds[cause.name].map((each, at) => each && each / plots.covered[at]),
  }));
  const [any = []] = Object.values(seconds);
  const totals = any.map((each, at) => each === null ? null : sum(some.map(({rates}) => rates[at])));
  const words = (at) => some.filter(({rates}) => rates[at] > 0)
    .map((cause) => `${duration(cause.rates[at])} ${cause.words}`).join(", ") || "nothing lost";
  byId("why-legend").replaceChildren(...legend(some));
  return {
    causes: some, totals, words: (at) => `each second ${words(at)}`,
    summary: `Time lost per second by cause; at last ${words(totals.length - 1)}`,
  };
}

/** For the map of steal. */
function stolen({steal}) {
  const cpus = [...steal].sort((one, other) => one.cpu - other.cpu);
  const [any = {seconds: []}] = cpus;
  const columns = any.seconds.map((each, at) => each === null ? null : cpus.map(({seconds}) => seconds[at]));
  const all = sum(cpus.map(({seconds}) => sum(seconds)));
  return {
    rows: cpus.length, columns,
    marks: cpus.map(({cpu}, at) => [at + 0.5, `CPU ${cpu}`]),
    summary: `Time that the hypervisor took from each CPU in the last half hour, ${duration(all)} in all`,
    words: (at, row) => cpus[row]
      ? `${duration(cpus[row].seconds[at])} stolen from CPU ${cpus[row].cpu}`
      : `${duration(sum(columns[at]))} stolen from all CPUs together`,
  };
}

function blame({plots, causes}, tenant) {
  const pairs = plots.blame.filter(({victim}) => !tenant || victim === tenant).slice(0, BLAMED);
  if (!pairs.length) return el("p", {class: "absent"}, "Nobody: no step wanted a CPU that another had.");
  const titles = [["Aggressor", "name"], ["took from", "name"], ["last minute", "number"],
    ["half hour", "number"], ["since", "since"], ["over time", "wide"], ["the victim was", "words"]];
  return table(titles, pairs.map((row) => [
    row.aggressor, row.victim,
    row.last_minute ? duration(row.last_minute) : "-", duration(sum(row.seconds)),
    since(plots, row.since_slot),
    sparkline(row.seconds, `${row.aggressor} took from ${row.victim} over the last half hour`),
    inWords(causes, row.causes, 2),
  ]));
}

function since(plots, slot) {
  if (slot === null) return el("span", {class: "absent"}, "quiet");
  const begin = plots.begin + slot * plots.slot_seconds;
  const words = slot ? clock(begin) : "the start";
  return [el("strong", {}, words), ` ${span(plots.until - begin)}`];
}

function steps({recent, more_recent: more, causes}, tenant) {
  const rows = recent.filter((row) => !tenant || row.tenant === tenant);
  if (!rows.length) return el("p", {class: "absent"}, "None has ended.");
  const titles = [["Tenant", "name"], ["Step", "name"], ["count", "number"], ["p50", "number"],
    ["p99", "number"], ["p999", "number"], ["p999/p50", "number"], ["Where their time went", "wide"]];
  const cells = rows.map((row) => [
    row.tenant, row.is_stage ? `- ${row.step}` : row.step, count(row.count),
    duration(row.p50), duration(row.p99), row.count < 1000 ? `${duration(row.p999)}*` : duration(row.p999),
    (row.p999 / row.p50).toFixed(1),
    [bar(causes, row.seconds, sum(Object.values(row.seconds))),
      el("span", {class: "words"}, inWords(causes, row.seconds, 3))],
  ]);
  const notes = [rows.some((row) => row.count < 1000) && "* the longest, of fewer than 1,000 steps",
    more && `${more} more with less time`].filter(Boolean).join("; ");
  return el("div", {}, table(titles, cells), el("p", {class: "reading"}, notes));
}

function slowest({slowest: all, causes, unix}, tenant) {
  const shown = all.filter((step) => !tenant || step.tenant === tenant).slice(0, SLOWEST);
  if (!shown.length) return [el("li", {class: "absent"}, "None has ended.")];
  const alike = (step) => shown.filter((each) => each.tenant === step.tenant && each.step === step.step);
  const scale = (step) => Math.max(step.median, ...alike(step).map(({elapsed}) => elapsed));
  return shown.map((step) => el("li", {},
    el("h3", {}, `${step.tenant} ${step.step} `, el("strong", {}, duration(step.elapsed)),
      el("small", {}, ` median ${duration(step.median)}, ended ${clock(unix - step.ago)}, thread ${step.tid}`)),
    pair(causes, step, scale(step)),
    el("p", {}, step.words)));
}

function findings({findings: all}) {
  if (!all.length) return [el("li", {}, "Nothing on this machine lengthens tails or misleads.")];
  return all.map(({weight, sure, seen, implies, action}) => el("li", {class: WEIGHTS[weight]},
    el("strong", {}, `${weight === "misleads" ? "Misleads: " : ""}${seen}.`), ` ${sure}: ${implies}. Do: ${action}.`));
}

function unknown({lost, cannot_tell: causes, capabilities}) {
  const losses = lost.map(({reason, count: n, help, falsifies}) => el("li", {class: falsifies ? "warn" : "note"},
    el("strong", {}, `Lost ${count(n)}: ${reason}.`), ` ${help}`));
  const absent = Object.entries(causes).map(([cause, reason]) => el("li", {class: "note"},
    el("strong", {}, `${cause}:`), ` ${reason}`));
  const others = capabilities.filter(({name, source}) => source === "none" && !(name in causes))
    .map(({name, reason}) => el("li", {class: "note"}, el("strong", {}, `${name}:`), ` ${reason}`));
  const all = [...losses, ...absent, ...others];
  return all.length ? all : [el("li", {}, "Nothing was lost, and everything can be told here.")];
}
