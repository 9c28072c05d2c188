// What is wrong now, who does it and since when: the lines at the top of the page.

import {clock, duration, percent, span, sum} from "./words.js";

const LINES = 4;

/** Part of its steps' time that a tenant waits for CPUs, from which on it is worth a line, and bad. */
const WORTH = 0.02;
const BAD = 0.1;

/** Part of what the first aggressor took, from which on the second is named, too. */
const ALSO = 0.3;

/** [{weight, title, words}], worst first. */
export function problems(live, tenant) {
  const waiting = byTenant(live).filter((each) => each.part >= WORTH && (!tenant || each.tenant === tenant))
    .sort((one, other) => other.part - one.part).map((each) => waits(live, each));
  const misleading = live.findings.filter(({weight}) => weight === "misleads")
    .map(({seen}) => ({weight: "warn", title: "Measurements mislead here.", words: `${seen}.`}));
  return [...waiting, ...misleading].slice(0, LINES);
}

/** What the steps of each tenant waited for CPUs in the last minute. */
function byTenant({recent, causes}) {
  const wanted = causes.filter((cause) => cause.deschedule);
  const tenants = Map.groupBy(recent.filter((row) => !row.is_stage), (row) => row.tenant);
  return [...tenants].map(([tenant, rows]) => {
    const of = ({name}) => sum(rows.map(({seconds}) => seconds[name]));
    const [main] = [...wanted].sort((one, other) => of(other) - of(one));
    const total = sum(rows.map(({seconds}) => sum(Object.values(seconds))));
    const worst = rows.reduce((one, other) => other.p999 / other.p50 > one.p999 / one.p50 ? other : one);
    return {tenant, main, part: sum(wanted.map(of)) / total, mainPart: of(main) / total, worst};
  });
}

function waits(live, {tenant, main, part, mainPart, worst}) {
  const mostly = mainPart > 0.9 * part ? main.words : `mostly ${main.words}`;
  const tail = `${worst.step} p999 ${duration(worst.p999)}, ${(worst.p999 / worst.p50).toFixed(1)} times the median.`;
  return {
    weight: part >= BAD ? "bad" : "warn",
    title: `${tenant} waits for CPUs ${percent(part, 1)} of its time, ${mostly}.`,
    words: `${who(live.plots, tenant)} ${tail}`,
  };
}

/** "antagonist took 1.2 s in the last minute, since 03:12:40 (5 min); cpu quota 0.4 s." */
function who(plots, tenant) {
  const known = plots.blame.filter(({victim, last_minute: s}) => victim === tenant && s > 0);
  if (!known.length) return "Who had them is not known, or took too little to be plotted.";
  const [first, second] = known;
  const also = second && second.last_minute > ALSO * first.last_minute
    ? `; ${second.aggressor} ${duration(second.last_minute)}` : "";
  return `${first.aggressor} took ${duration(first.last_minute)} in the last minute${since(plots, first)}${also}.`;
}

function since(plots, {since_slot: slot}) {
  if (slot === null) return "";
  const begin = plots.begin + slot * plots.slot_seconds;
  if (slot) return `, since ${clock(begin)} (${span(plots.until - begin)})`;
  const whole = plots.covered.length * plots.slot_seconds >= plots.span_seconds;
  return whole ? ", for more than half an hour" : ", since the agent began";
}
