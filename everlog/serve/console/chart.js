// Charts of answers: bars for values by name, points and a line for values by number.

import { element, svg } from "./dom.js";

const [WIDE, HIGH, LEFT, BELOW, ABOVE] = [900, 340, 74, 34, 12];
const BARS = 40; // with names beside them
const BAR = 22;

const chosen = { x: null, y: null }; // names of columns, kept from one drawing to the next

const numeric = (column) => column.kind !== "symbol";

export const fitsChart = (columns) => columns.some(numeric);

const short = (text, most) => ([...text].length > most ? `${[...text].slice(0, most - 1).join("")}…` : text);

/** Round steps of an axis, at most about `most` of them. */
export function ticks(low, high, most = 6) {
  if (!(high > low)) return [low];
  const raw = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= raw);
  const out = [];
  for (let n = Math.ceil(low / step); n * step <= high + step * 1e-9; n += 1) out.push(n * step);
  return out;
}

const label = (value) => (Math.abs(value) >= 1e6 || (value !== 0 && Math.abs(value) < 1e-3) ? value.toExponential(1) : String(Number(value.toPrecision(6))));

export function drawChart(box, columns, rows, total) {
  const ys = columns.map((column, n) => n).filter((n) => numeric(columns[n]));
  const at = (name, fallback) => {
    const n = columns.findIndex((column) => column.name === name);
    return n < 0 ? fallback : n;
  };
  const last = ys.at(-1);
  let y = at(chosen.y, last);
  if (!ys.includes(y)) y = last;
  let x = at(chosen.x, columns.length > 1 ? columns.findIndex((_, n) => n !== y) : -1);
  const again = () => drawChart(box, columns, rows, total);
  const select = (name, text, value, options) => {
    const made = element("select", { "aria-label": text }, ...options.map(([n, each]) => element("option", { value: n, selected: n === value }, each)));
    made.addEventListener("change", () => {
      chosen[name] = columns[Number(made.value)]?.name ?? null;
      again();
    });
    return element("label", {}, `${text} `, made);
  };
  const tools = element(
    "div",
    { class: "line" },
    select("y", "Value", y, ys.map((n) => [n, columns[n].name])),
    select("x", "By", x, columns.map((column, n) => [n, column.name]).filter(([n]) => n !== y)),
    element("span", { class: "soft" }, rows.length < total ? `the first ${rows.length} of ${total} rows: order or filter to choose others` : ""),
  );
  const values = rows.map((row) => [x < 0 ? "" : row[x], Number(row[y])]).filter(([, value]) => Number.isFinite(value));
  const picture = x >= 0 && numeric(columns[x]) ? asPoints(values, columns[x].name, columns[y].name) : asBars(values, columns[y].name);
  box.replaceChildren(tools, element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Chart" }, picture));
}

function asBars(values, name) {
  const bars = values.slice(0, BARS);
  const low = Math.min(0, ...bars.map(([, value]) => value));
  const high = Math.max(0, ...bars.map(([, value]) => value), low + 1e-9);
  const names = 200;
  const place = (value) => names + ((value - low) / (high - low)) * (WIDE - names - 90);
  const height = bars.length * BAR + BELOW;
  const picture = svg("svg", { class: "chart", viewBox: `0 0 ${WIDE} ${height}`, width: WIDE, height, role: "img", "aria-label": `${name} of ${bars.length} rows, as bars` });
  bars.forEach(([text, value], n) => {
    const [from, to] = [place(Math.min(0, value)), place(Math.max(0, value))];
    picture.append(
      svg(
        "g",
        {},
        svg("title", {}, `${text}: ${value}`),
        svg("text", { x: names - 8, y: n * BAR + 15, "text-anchor": "end" }, short(text, 24)),
        svg("g", {}, svg("rect", { class: "bar", x: from, y: n * BAR + 3, width: Math.max(1, to - from), height: BAR - 6, rx: 2 })),
        svg("text", { class: "value", x: to + 6, y: n * BAR + 15 }, label(value)),
      ),
    );
  });
  if (values.length > BARS) picture.append(svg("text", { x: names, y: height - 10 }, `… and ${values.length - BARS} more: order by the value, or filter`));
  return picture;
}

function asPoints(values, xName, yName) {
  const points = values.map(([x, y]) => [Number(x), y]).filter(([x]) => Number.isFinite(x)).sort((a, b) => a[0] - b[0]);
  const range = (n) => points.reduce(([low, high], point) => [Math.min(low, point[n]), Math.max(high, point[n])], [Infinity, -Infinity]);
  const [[lowX, highX], [lowY, highY]] = [range(0), range(1)];
  const [bottom, top] = [Math.min(0, lowY), Math.max(0, highY)];
  const placeX = (x) => LEFT + (highX > lowX ? (x - lowX) / (highX - lowX) : 0.5) * (WIDE - LEFT - 30);
  const placeY = (y) => ABOVE + (top > bottom ? (top - y) / (top - bottom) : 0.5) * (HIGH - ABOVE - BELOW);
  const picture = svg("svg", { class: "chart", viewBox: `0 0 ${WIDE} ${HIGH}`, width: WIDE, height: HIGH, role: "img", "aria-label": `${yName} by ${xName}, ${points.length} points` });
  for (const tick of ticks(bottom, top)) {
    picture.append(svg("path", { class: "grid", d: `M${LEFT} ${placeY(tick)}H${WIDE - 20}` }), svg("text", { x: LEFT - 8, y: placeY(tick) + 4, "text-anchor": "end" }, label(tick)));
  }
  for (const tick of ticks(lowX, highX, 8)) picture.append(svg("text", { x: placeX(tick), y: HIGH - 12, "text-anchor": "middle" }, label(tick)));
  const alone = new Set(points.map(([x]) => x)).size === points.length; // a value for each x: a line
  if (alone) picture.append(svg("path", { class: points.length > 400 ? "curve fine" : "curve", d: points.map(([x, y], n) => `${n ? "L" : "M"}${placeX(x).toFixed(1)} ${placeY(y).toFixed(1)}`).join("") || "M0 0" }));
  const drawn = alone && points.length >= 200 ? [] : points;
  picture.append(svg("g", {}, ...drawn.map(([x, y]) => svg("circle", { class: "point", cx: placeX(x), cy: placeY(y), r: 3 }, svg("title", {}, `${xName} ${x}: ${y}`)))));
  return picture;
}
