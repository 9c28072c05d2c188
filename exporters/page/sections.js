// What each part of the page shows of /live.json.

import {bar, inWords, legend, pair} from "./bars.js";
import {HeatMap, Stack, sparkline} from "./charts.js";
import {byId, el, fill, table} from "./dom.js";
import {placement} from "./placement.js";
import {problems} from "./problems.js";
import {reasons, stolen, waits} from "./series.js";
import {clock, count, duration, percent, span, sum} from "./words.js";

const SLOWEST = 6;
const BLAMED = 8;
const NOT_PLOTTED = {intervals: [], seconds: {}, absent: "not among the tenants that lost most, which are plotted"};
const WEIGHTS = {misleads: "bad", costs: "warn", note: "note"};

export class Sections {
  constructor() {
    this.heat = new HeatMap("heat", 1e-3, 1);
    this.why = new Stack("why");
    this.steal = new HeatMap("steal", 1e-2, 5);
  }

  /** `tenant` is "" for all. */
  show(live, tenant) {
    const plotted = live.plots.tenants.find((each) => (each.tenant ?? "") === tenant) ?? NOT_PLOTTED;
    fill(byId("verdict"), ...verdict(live, tenant));
    this.heat.show(live.plots, waits(live.plots, plotted));
    const why = reasons(live, plotted);
    this.why.show(live.plots, why);
    byId("why-legend").replaceChildren(...legend(why.causes));
    fill(byId("blame"), blame(live, tenant));
    fill(byId("causes"), ...legend(live.causes.filter(({name}) => live.recent.some((row) => row.seconds[name]))));
    fill(byId("steps"), steps(live, tenant));
    fill(byId("slowest"), ...slowest(live, tenant));
    this.steal.show(live.plots, stolen(live));
    fill(byId("stall"), ...stalls(live));
    fill(byId("placement"), ...placement(live));
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
    ? el("p", {class: "problem good"}, el("strong", {}, "Steps get their CPUs."),
      " In the last minute nobody waited for them long. The slowest steps below say what else took time.")
    : el("p", {class: "problem note"}, el("strong", {}, "No steps in the last minute."),
      " Does the engine mark them, and do the targets match it?")];
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

function stalls({stalls: lines, cannot_tell: causes}) {
  const reasons = ["steal", "stall"].filter((cause) => causes[cause])
    .map((cause) => el("li", {class: "absent"}, `Not told: ${causes[cause]}.`));
  const told = lines.map((line) => el("li", {}, line));
  if (!told.length && !causes.stall) told.push(el("li", {}, "No CPU stood still without a steal clock."));
  return [...told, ...reasons];
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
