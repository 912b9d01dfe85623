// A table of any number of rows: only those in sight are in the document.
//
// The table itself stays where it is; below it, an empty box is as high as all rows would be, and
// where it is scrolled to says which rows are shown.  Browsers limit the height of a box, so beyond
// some hundred thousand rows a pixel stands for more than a pixel's part of a row.

import { element } from "./dom.js";

export const ROW = 28; // pixels, as in console.css
const HIGHEST = 8_000_000; // pixels
const PAGE = 200; // rows of one request
const PAGES = 40; // kept

export class VirtualTable {
  /** `page(offset, limit)` promises rows; `cells(row)` makes the cells of one. */
  constructor(box, { page, cells, onError }) {
    Object.assign(this, { box, page, cells, onError });
    this.body = element("tbody");
    this.head = element("tr");
    this.table = element("table", { class: "rows" }, element("thead", {}, this.head), this.body);
    this.spacer = element("div", { class: "spacer" }, this.table);
    this.scroller = element("div", { class: "scroll virtual", tabindex: 0, role: "region", "aria-label": "Answers" }, this.spacer);
    this.scroller.addEventListener("scroll", () => this.wait());
    this.scroller.addEventListener("keydown", (event) => this.onKey(event));
    new ResizeObserver(() => this.wait()).observe(this.scroller);
    box.replaceChildren(this.scroller);
    this.clear();
  }

  clear() {
    this.pages = new Map(); // number of a page → its rows, or null while they are awaited
    this.total = 0;
    this.first = 0;
    this.generation = (this.generation ?? 0) + 1;
  }

  /** Show `total` rows below these heads, from the first one. */
  show(heads, total, width) {
    this.clear();
    this.table.style.width = width;
    this.total = total;
    this.head.replaceChildren(...heads);
    this.table.setAttribute("aria-rowcount", String(total + 1));
    this.spacer.style.height = `${Math.min(HIGHEST, total * ROW + ROW + 8)}px`;
    this.scroller.style.height = `${Math.min(30, Math.max(total, 1) + 2) * ROW}px`;
    this.scroller.scrollTop = 0;
    this.draw();
  }

  get visible() {
    return Math.max(1, Math.ceil(this.scroller.clientHeight / ROW) - 1);
  }

  get last() {
    return Math.max(0, this.total - this.visible + 1);
  }

  /** Draw in the next frame, once. */
  wait() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  rowAt(top) {
    const room = this.spacer.offsetHeight - this.scroller.clientHeight;
    if (room <= 0) return 0;
    return this.spacer.offsetHeight < HIGHEST ? Math.floor(top / ROW) : Math.round((top / room) * this.last);
  }

  goTo(row) {
    const to = Math.max(0, Math.min(this.last, row));
    const room = this.spacer.offsetHeight - this.scroller.clientHeight;
    this.scroller.scrollTop = this.spacer.offsetHeight < HIGHEST ? to * ROW : (to / Math.max(1, this.last)) * room;
    this.exact = to; // a pixel may stand for many rows
    this.wait();
  }

  onKey(event) {
    const page = this.visible - 1;
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined || event.target !== this.scroller) return;
    event.preventDefault();
    this.goTo(this.first + by);
  }

  draw() {
    const found = this.rowAt(this.scroller.scrollTop);
    const exact = this.exact;
    this.exact = undefined;
    this.first = Math.max(0, Math.min(exact ?? found, this.last));
    const until = Math.min(this.total, this.first + this.visible);
    const missing = this.fill(this.first, until);
    clearTimeout(this.asking); // while it is scrolled fast, nothing is asked for
    if (missing.length) this.asking = setTimeout(() => this.ask(missing).catch(this.onError), this.pages.size ? 40 : 0);
  }

  /** Write the rows that are known; the numbers of the missing pages. */
  fill(from, until) {
    const missing = new Set();
    const rows = [];
    for (let n = from; n < until; n += 1) {
      const number = Math.floor(n / PAGE);
      const row = this.pages.get(number)?.[n % PAGE];
      if (row === undefined) {
        if (!this.pages.has(number)) missing.add(number);
        rows.push(element("tr", { "aria-rowindex": n + 2, class: "awaited" }, element("td", { colspan: this.head.children.length }, "…")));
      } else {
        rows.push(element("tr", { "aria-rowindex": n + 2 }, ...this.cells(row, n)));
      }
    }
    this.body.replaceChildren(...rows);
    return [...missing];
  }

  async ask(numbers) {
    const { generation } = this;
    for (const number of numbers) {
      if (this.pages.has(number)) continue;
      this.pages.set(number, null);
      try {
        const rows = await this.page(number * PAGE, PAGE);
        if (generation !== this.generation) return;
        this.pages.set(number, rows);
        while (this.pages.size > PAGES) this.pages.delete(this.pages.keys().next().value);
      } catch (error) {
        if (generation === this.generation) this.pages.delete(number);
        throw error;
      }
      this.fill(this.first, Math.min(this.total, this.first + this.visible));
    }
  }
}
