// One kept result of the service: a table that is sorted and filtered there, a file, a drawing.

import { blob, get, post, Refused, remove } from "./api.js";
import { byId, element, tell } from "./dom.js";
import { drawChart, fitsChart } from "./chart.js";
import { factText } from "./facts.js";
import { fitsNetwork, Network } from "./network.js";
import { VirtualTable } from "./virtual_table.js";

const WAIT = 250; // ms after the last key in the filter
const MOST_EDGES = 5000; // drawn
const MOST_BARS = 2000;
class Superseded extends Error {} // the rows of a result that is shown no more

const numbers = "text"; // JavaScript's own are exact to 53 bits only

export const isNumber = (column) => column.kind !== "symbol";
const counted = (n, word) => `${Number(n).toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;

export class ResultView {
  /** `onGone` asks again when the service keeps the result no more. */
  constructor({ onError, onGone, onView }) {
    Object.assign(this, { onError, onGone, onView, kept: null, relation: null, sort: 0, view: "table" });
    this.table = new VirtualTable(byId("rows-view"), {
      page: async (offset, limit) => (await this.rows(offset, limit)).rows,
      cells: (row) => this.cells(row),
      onError: (error) => this.failed(error),
    });
    this.network = new Network(byId("network-view"));
    let waiting = null;
    byId("contains").addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => this.arrange().catch((error) => this.failed(error)), WAIT);
    });
    for (const view of ["table", "network", "chart"]) byId(`view-${view}`).addEventListener("click", () => this.choose(view));
    byId("views").addEventListener("keydown", (event) => this.onKey(event));
    byId("download").addEventListener("click", () => this.download().catch((error) => this.failed(error)));
  }

  get step() {
    return this.kept?.step ?? null;
  }

  /** Ask; `body` is `{query}` or `{relation}`, with `as_of`. */
  async ask(body, relation = null, view = "table") {
    const mine = (this.asks = (this.asks ?? 0) + 1);
    const kept = await post("/results", body);
    const old = mine === this.asks ? this.kept : kept;
    if (old) remove(`/results/${old.result}`).catch(() => {});
    if (old === kept) return; // another query has been asked since
    Object.assign(this, { kept, relation, sort: 0 });
    byId("contains").value = "";
    byId("result").hidden = false;
    const able = { table: true, network: fitsNetwork(kept.columns), chart: fitsChart(kept.columns) };
    for (const [each, fits] of Object.entries(able)) {
      byId(`view-${each}`).disabled = !fits;
      byId(`view-${each}`).title = fits ? "" : each === "network" ? "two columns of one type make a graph" : "a number in a column makes a chart";
    }
    try {
      await this.choose(able[view] ? view : "table", false);
      await this.arrange();
    } catch (error) {
      if (!(error instanceof Superseded)) throw error;
    }
  }

  hide() {
    byId("result").hidden = true;
  }

  get arranged() {
    return { sort: this.sort, contains: byId("contains").value };
  }

  async rows(offset, limit, kept = this.kept) {
    try {
      const found = await get(`/results/${kept.result}`, { offset, limit, numbers, ...this.arranged });
      if (kept === this.kept) return found;
    } catch (error) {
      if (kept === this.kept) {
        if (error instanceof Refused && error.code === "no-such-result") this.onGone();
        throw error;
      }
    }
    throw new Superseded();
  }

  /** Show the rows in this order, with this filter. */
  async arrange() {
    const first = await this.rows(0, 1);
    const all = this.kept.total;
    const many = first.total === all ? counted(all, "answer") : `${counted(first.total, "answer")} of ${all.toLocaleString("en")}`;
    tell("query-told", `${many}, after step ${this.kept.step}`);
    byId("rows-view").hidden = this.kept.columns.length === 0 || this.view !== "table";
    const { heads, width } = this.heads(first.rows[0]);
    this.table.show(heads, first.total, `${width}ch`);
    if (this.view !== "table") await this.draw();
  }

  /** The heads of columns, as wide as names and the values of the first row ask for. */
  heads(sample) {
    let sum = 0;
    const heads = this.kept.columns.map((column, n) => {
      const direction = Math.abs(this.sort) === n + 1 ? (this.sort > 0 ? "ascending" : "descending") : "none";
      const sign = { ascending: " ▲", descending: " ▼", none: "" }[direction];
      const width = Math.max(column.name.length + column.type.length + 4, Math.min(isNumber(column) ? 22 : 36, (sample?.[n] ?? "").length + 6), isNumber(column) ? 12 : 24);
      sum += width;
      const button = element(
        "button",
        { type: "button", class: "sort", onclick: () => this.orderBy(n + 1) },
        column.name,
        element("span", { class: "soft" }, `:${column.type}`),
        element("span", { "aria-hidden": "true" }, sign),
      );
      const head = element("th", { scope: "col", "aria-sort": direction, class: isNumber(column) ? "number" : null }, button);
      head.style.width = `${width}ch`;
      return head;
    });
    if (this.relation) {
      const why = element("th", { scope: "col" }, "Why");
      why.style.width = "9ch";
      heads.push(why);
      sum += 9;
    }
    return { heads, width: sum };
  }

  cells(row) {
    const cells = row.map((value, n) => element("td", { class: isNumber(this.kept.columns[n]) ? "number" : null, title: value.length > 12 ? value : null }, value));
    if (this.relation) cells.push(element("td", {}, whyButton(factText(this.relation, row))));
    return cells;
  }

  orderBy(column) {
    this.sort = this.sort === column ? -column : this.sort === -column ? 0 : column;
    this.arrange().catch((error) => this.failed(error));
  }

  failed(error) {
    if (!(error instanceof Superseded)) this.onError(error);
  }

  // ── other views ──

  async choose(view, draws = true) {
    this.view = view;
    for (const each of ["table", "network", "chart"]) {
      byId(`view-${each}`).setAttribute("aria-checked", String(each === view));
      byId(`view-${each}`).tabIndex = each === view ? 0 : -1;
    }
    byId("rows-view").hidden = view !== "table" || this.kept.columns.length === 0;
    byId("network-view").hidden = view !== "network";
    byId("chart-view").hidden = view !== "chart";
    this.onView(view);
    if (!draws) return;
    try {
      await this.draw();
    } catch (error) {
      this.failed(error);
    }
  }

  onKey(event) {
    const able = ["table", "network", "chart"].filter((each) => !byId(`view-${each}`).disabled);
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const to = able[(able.indexOf(this.view) + by + able.length) % able.length];
    byId(`view-${to}`).focus();
    this.choose(to);
  }

  async draw() {
    if (this.view === "network") {
      const { rows, total } = await this.first(MOST_EDGES);
      this.network.show(rows, total);
    } else if (this.view === "chart") {
      const { rows, total } = await this.first(MOST_BARS);
      drawChart(byId("chart-view"), this.kept.columns, rows, total);
    }
  }

  /** The first rows, by pages of what an answer may have. */
  async first(most) {
    const rows = [];
    const { kept } = this;
    for (;;) {
      const page = await this.rows(rows.length, Math.min(1000, most - rows.length), kept);
      rows.push(...page.rows);
      if (!page.more || rows.length >= most || page.rows.length === 0) return { rows, total: page.total };
    }
  }

  async download() {
    const format = byId("file-format").value;
    byId("download").disabled = true;
    try {
      const file = await blob(`/results/${this.kept.result}/file`, { format, ...this.arranged });
      const link = element("a", { href: URL.createObjectURL(file), download: `${this.relation?.name ?? "answers"}.${format}` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    } finally {
      byId("download").disabled = false;
    }
  }
}

function whyButton(fact) {
  const asked = () => document.dispatchEvent(new CustomEvent("why", { detail: fact }));
  return element("button", { type: "button", class: "small", "aria-label": `Why ${fact}?`, onclick: asked }, "why");
}
