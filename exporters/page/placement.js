// Where memory is, against where threads run: bars by NUMA node.

import {shares} from "./bars.js";
import {el, table} from "./dom.js";
import {count, percent, sum} from "./words.js";

const COLOURS = 4;
const TOUCHERS = 3;

export function placement({placement: told, capabilities}) {
  const {source, reason} = capabilities.find(({name}) => name === "placement");
  if (source === "none") return [el("p", {class: "absent"}, `Not told: ${reason}.`)];
  if (!told) return [el("p", {class: "absent"}, "Not told yet: the first window has not ended.")];
  return [...findings(told), nodes(told), ...segments(told), ...processes(told)];
}

function findings({findings: all}) {
  if (!all.length) return [el("p", {}, "Nothing is misplaced.")];
  return all.map(({seen, implies, action}) =>
    el("p", {class: "problem warn"}, el("strong", {}, `${seen}.`), ` ${implies}. Do: ${action}.`));
}

function nodes({nodes: all}) {
  const titles = [["Node", "name"], ["allocated", "number"], ["of it for other nodes", "number"],
    ["usually", "number"], ["drift", "number"]];
  return table(titles, all.map(({node, allocated, remote, usual, drift}) => [
    el("span", {class: "key"}, el("span", {class: `swatch ${colour(node)}`}), `node ${node}`),
    `${count(allocated.local + allocated.other)} pages`, part(remote), part(usual), part(drift),
  ]));
}

function segments({segments: all}) {
  if (!all.length) return [];
  const titles = [["Shared segment", "name"], ["size", "number"], ["its memory", "nodes"],
    ["its threads", "nodes"], ["should be", "words"], ["so it is", "name"], ["touched first by", "words"]];
  return [table(titles, all.map((each) => [
    each.name, `${(each.bytes / 2 ** 20).toFixed(1)} MiB`, byNode(each.pages.by_node), byNode(each.ran_seconds),
    each.expected.nodes ? `on node ${each.expected.nodes}` : each.expected.reason, each.verdict,
    touchers(each.first_touch),
  ]))];
}

/** "75 % sampler 7 on node 0, 25 % main 9 on node 1 of 4,000 pages seen", or why that is not known. */
function touchers({pages, by, reason}) {
  if (!by) return reason;
  const told = by.slice(0, TOUCHERS).map((each) =>
    `${percent(each.pages, pages)} ${each.name} ${each.pid} on node ${each.node}`);
  return `${told.join(", ")} of ${count(pages)} pages seen`;
}

function processes({processes: all}) {
  if (!all.length) return [];
  const titles = [["Process", "name"], ["tenant", "name"], ["its memory", "nodes"], ["its threads", "nodes"],
    ["mismatch", "number"]];
  return [table(titles, all.map((each) => [
    `${each.name} ${each.pid}`, each.tenant,
    each.pages.by_node ? byNode(each.pages.by_node) : each.pages.reason, byNode(each.ran_seconds),
    typeof each.mismatch === "number" ? each.mismatch.toFixed(2) : "-",
  ]))];
}

/** A bar, and the same in words: "93 % node 1, 7 % node 0". */
function byNode(amounts) {
  const nodes = Object.keys(amounts).sort((one, other) => one - other);
  const total = sum(Object.values(amounts));
  if (!total) return "nowhere";
  const words = nodes.filter((node) => amounts[node] > 0)
    .sort((one, other) => amounts[other] - amounts[one])
    .map((node) => `${percent(amounts[node], total)} node ${node}`).join(", ");
  const slices = nodes.map((node) => [colour(node), amounts[node] / total]);
  return [shares(slices, words), el("span", {class: "words"}, words)];
}

const colour = (node) => `node-${node % COLOURS}`;

/** A share, or a dash where there is a reason instead. */
const part = (share) => typeof share === "number" ? percent(share, 1) : "-";
