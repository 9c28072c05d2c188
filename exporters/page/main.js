// Asks the agent for its state every few seconds, and shows it.

import {byId, el} from "./dom.js";
import {Sections} from "./sections.js";
import {clock, span} from "./words.js";

const AGAIN_MS = 1000;
const DEADLINE_MS = 10_000;
const GONE_MS = 15_000;

const sections = new Sections();
let live = null;
let answered = 0;

/** The agent's state; null when it cannot be had, with the reason at the status. */
async function ask() {
  try {
    const answer = await fetch(`${location.origin}/live.json`, {signal: AbortSignal.timeout(DEADLINE_MS)});
    if (answer.ok) return await answer.json();
    byId("status").title = await answer.text();
  } catch (error) {
    byId("status").title = error.message;
  }
  return null;
}

async function poll() {
  const answer = paused() ? null : await ask();
  setTimeout(poll, AGAIN_MS + 1000 * (answer?.fresh_seconds ?? 0));
  if (!answer) return;
  [live, answered] = [answer, Date.now()];
  byId("status").title = "";
  show();
}

function show() {
  byId("node").textContent = live.node;
  document.title = `${live.node} - tailtrace`;
  offerTenants();
  sections.show(live, byId("tenant").value);
  tick();
}

/** Whether what is seen is live, which must never be left to guess. */
function tick() {
  const status = byId("status");
  const gone = Date.now() - answered > GONE_MS;
  const kind = paused() ? "paused" : !live ? "starting" : gone ? "gone" : "live";
  status.className = `status ${kind}`;
  status.textContent = {
    paused: live ? `paused at ${clock(live.unix)}` : "paused",
    starting: "connecting",
    gone: live ? `no answer since ${clock(answered / 1000)}` : "no answer",
    live: live ? `live, traced for ${span(live.traced_seconds)}` : "",
  }[kind];
  document.body.classList.toggle("old", kind === "gone");
}

function offerTenants() {
  const choice = byId("tenant");
  const plotted = live.plots.tenants.map(({tenant}) => tenant).filter((tenant) => tenant !== null);
  const names = new Set([choice.value, ...plotted, ...live.recent.map(({tenant}) => tenant)]);
  names.delete("");
  const known = [...choice.options].map(({value}) => value);
  if ([...names].every((name) => known.includes(name)) && known.length === names.size + 1) return;
  const {value} = choice;
  choice.replaceChildren(el("option", {value: ""}, "all"),
    ...[...names].sort().map((name) => el("option", {value: name}, name)));
  choice.value = value;
}

const paused = () => byId("pause").getAttribute("aria-pressed") === "true";

byId("pause").addEventListener("click", () => {
  byId("pause").setAttribute("aria-pressed", String(!paused()));
  tick();
});
byId("tenant").addEventListener("change", () => { if (live) show(); });
addEventListener("resize", () => { if (live) show(); });
setInterval(tick, 1000);
poll();
