// Elements. Whatever strangers called themselves gets in as text, never as markup.

export const byId = (id) => document.getElementById(id);

/** el("td", {class: "number"}, "3 ms") - children are elements or text. */
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

/** Replace what an element holds. It never gets lower again, so that nothing below it jumps. */
export function fill(element, ...children) {
  element.replaceChildren(...children);
  const width = element.clientWidth;
  const known = element.widthOfFloor === width ? element.floor : 0;
  element.widthOfFloor = width;
  element.floor = Math.max(known, element.scrollHeight);
  element.style.minHeight = `${element.floor}px`;
}

export function table(titles, rows) {
  const head = titles.map(([title, kind]) => el("th", {scope: "col", class: kind}, title));
  const body = rows.map((cells) => el("tr", {}, ...cells.map(
    (cell, at) => el("td", {class: titles[at][1], "data-title": titles[at][0]}, ...[cell].flat()))));
  return el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...body));
}
