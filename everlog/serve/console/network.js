// A binary result as a graph: laid out in a worker, drawn on a canvas, moved and enlarged by hand.

import { element } from "./dom.js";

const NAMED = 120; // nodes with their names, if no more are in sight

/** Two columns of the same type are the ends of edges; further columns are ignored. */
export const fitsNetwork = (columns) => columns.length >= 2 && columns[0].type === columns[1].type;

export class Network {
  constructor(box) {
    this.canvas = element("canvas", { tabindex: 0, role: "img", "aria-label": "The answers as a graph" });
    this.told = element("p", { class: "soft", role: "status" });
    this.words = element("ul", { class: "plain" });
    const button = (text, name, work) => element("button", { type: "button", class: "small", "aria-label": name, onclick: work }, text);
    const find = element("input", { type: "search", "aria-label": "Find a node", placeholder: "Find a node", autocomplete: "off" });
    find.addEventListener("input", () => this.find(find.value));
    box.replaceChildren(
      element("div", { class: "line" }, button("+", "Larger", () => this.zoom(1.4)), button("−", "Smaller", () => this.zoom(1 / 1.4)), button("All", "Show all", () => this.fit()), find, this.told),
      element("div", { class: "canvas" }, this.canvas),
      element("details", { class: "more" }, element("summary", {}, "The graph in words"), this.words),
    );
    this.drag();
    new ResizeObserver(() => this.wait()).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.wait());
    this.id = 0;
  }

  show(rows, total) {
    const number = new Map();
    const id = (name) => {
      if (!number.has(name)) number.set(name, number.size);
      return number.get(name);
    };
    const sources = Int32Array.from(rows, (row) => id(row[0]));
    const targets = Int32Array.from(rows, (row) => id(row[1]));
    Object.assign(this, { names: [...number.keys()], sources, targets, x: null, y: null, chosen: -1, moved: false });
    const cut = rows.length < total ? ` (the first ${rows.length.toLocaleString("en")} of ${total.toLocaleString("en")} edges)` : "";
    this.about = `${this.names.length.toLocaleString("en")} nodes, ${rows.length.toLocaleString("en")} edges${cut}`;
    this.told.textContent = `${this.about}; being laid out …`;
    this.inWords();
    this.worker ??= this.started();
    this.id += 1;
    this.worker.postMessage({ id: this.id, count: this.names.length, sources, targets });
  }

  started() {
    const worker = new Worker(new URL("./network_layout.js", import.meta.url), { type: "module" });
    worker.onmessage = ({ data }) => {
      if (data.id !== this.id) return;
      Object.assign(this, { x: data.x, y: data.y });
      if (data.done) this.told.textContent = this.about;
      if (!this.moved) this.fit();
      this.wait();
    };
    return worker;
  }

  /** The nodes with most edges, for those who do not see the drawing. */
  inWords() {
    const [out, into] = [new Map(), new Map()];
    this.sources.forEach((node) => out.set(node, (out.get(node) ?? 0) + 1));
    this.targets.forEach((node) => into.set(node, (into.get(node) ?? 0) + 1));
    const degree = (n) => (out.get(n) ?? 0) + (into.get(n) ?? 0);
    const first = [...this.names.keys()].sort((a, b) => degree(b) - degree(a)).slice(0, 20);
    this.words.replaceChildren(...first.map((n) => element("li", {}, element("code", {}, this.names[n]), ` has ${out.get(n) ?? 0} edges out and ${into.get(n) ?? 0} in`)));
  }

  fit() {
    if (!this.x || !this.x.length) return;
    const [wide, high] = [this.canvas.clientWidth, this.canvas.clientHeight];
    const span = (values) => values.reduce(([low, top], value) => [Math.min(low, value), Math.max(top, value)], [Infinity, -Infinity]);
    const [[left, right], [top, bottom]] = [span(this.x), span(this.y)];
    this.scale = Math.min(3, (wide - 60) / Math.max(right - left, 1), (high - 60) / Math.max(bottom - top, 1));
    this.atX = wide / 2 - ((left + right) / 2) * this.scale;
    this.atY = high / 2 - ((top + bottom) / 2) * this.scale;
    this.wait();
  }

  zoom(by, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    this.moved = true;
    this.atX = x - (x - this.atX) * by;
    this.atY = y - (y - this.atY) * by;
    this.scale *= by;
    this.wait();
  }

  find(text) {
    this.chosen = text ? this.names.findIndex((name) => name.toLowerCase().includes(text.toLowerCase())) : -1;
    if (this.chosen >= 0 && this.x) {
      this.moved = true;
      this.atX = this.canvas.clientWidth / 2 - this.x[this.chosen] * this.scale;
      this.atY = this.canvas.clientHeight / 2 - this.y[this.chosen] * this.scale;
    }
    this.told.textContent = !text ? this.about : this.chosen < 0 ? "no such node" : this.names[this.chosen];
    this.wait();
  }

  drag() {
    let from = null;
    this.canvas.addEventListener("pointerdown", (event) => {
      from = [event.offsetX, event.offsetY];
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (from) {
        this.moved = true;
        this.atX += event.offsetX - from[0];
        this.atY += event.offsetY - from[1];
        from = [event.offsetX, event.offsetY];
        this.wait();
      } else this.point(event.offsetX, event.offsetY);
    });
    this.canvas.addEventListener("pointerup", () => {
      from = null;
    });
    this.canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
    }, { passive: false });
    this.canvas.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[event.key];
      if (by) {
        this.moved = true;
        this.atX += by[0];
        this.atY += by[1];
        this.wait();
      } else if (event.key === "+" || event.key === "=") this.zoom(1.4);
      else if (event.key === "-") this.zoom(1 / 1.4);
      else if (event.key === "0") this.fit();
      else return;
      event.preventDefault();
    });
  }

  /** Name the node under the pointer. */
  point(x, y) {
    if (!this.x) return;
    let [best, found] = [12 ** 2, -1];
    for (let n = 0; n < this.x.length; n += 1) {
      const far = (this.x[n] * this.scale + this.atX - x) ** 2 + (this.y[n] * this.scale + this.atY - y) ** 2;
      if (far < best) [best, found] = [far, n];
    }
    if (found === this.chosen) return;
    this.chosen = found;
    this.told.textContent = found < 0 ? this.about : this.names[found];
    this.wait();
  }

  wait() {
    if (this.frame || !this.x) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  draw() {
    const { canvas, x, y, scale, atX, atY } = this;
    const [wide, high, dense] = [canvas.clientWidth, canvas.clientHeight, devicePixelRatio];
    if (!wide || !x) return;
    if (canvas.width !== Math.round(wide * dense)) canvas.width = Math.round(wide * dense);
    if (canvas.height !== Math.round(high * dense)) canvas.height = Math.round(high * dense);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const paint = canvas.getContext("2d");
    paint.setTransform(dense, 0, 0, dense, 0, 0);
    paint.clearRect(0, 0, wide, high);
    const place = (n) => [x[n] * scale + atX, y[n] * scale + atY];
    paint.lineWidth = 1;
    for (const bold of [false, true]) {
      paint.strokeStyle = colour(bold ? "--focus" : "--line");
      paint.globalAlpha = bold ? 1 : Math.max(0.18, Math.min(0.8, 400 / this.sources.length));
      paint.beginPath();
      for (let n = 0; n < this.sources.length; n += 1) {
        const [a, b] = [this.sources[n], this.targets[n]];
        if ((a === this.chosen || b === this.chosen) !== bold) continue;
        this.edge(paint, place(a), place(b));
      }
      paint.stroke();
    }
    paint.globalAlpha = 1;
    const size = Math.max(1.6, Math.min(5, scale * 6));
    paint.fillStyle = colour("--a");
    const seen = [];
    for (let n = 0; n < x.length; n += 1) {
      const [atNode, downNode] = place(n);
      if (atNode < -9 || downNode < -9 || atNode > wide + 9 || downNode > high + 9) continue;
      seen.push(n);
      paint.beginPath();
      paint.arc(atNode, downNode, n === this.chosen ? size + 3 : size, 0, 7);
      paint.fill();
    }
    paint.fillStyle = colour("--ink");
    paint.font = `12px ${colour("--mono")}`;
    for (const n of seen.length <= NAMED ? seen : seen.filter((each) => each === this.chosen)) {
      const [atNode, downNode] = place(n);
      paint.fillText(this.names[n].slice(0, 40), atNode + size + 4, downNode + 4);
    }
  }

  /** An edge with a head, where there is room for one; a ring for one to itself. */
  edge(paint, [x1, y1], [x2, y2]) {
    const far = Math.hypot(x2 - x1, y2 - y1);
    if (far === 0) {
      paint.moveTo(x1 + 9, y1 - 9);
      paint.arc(x1, y1 - 9, 9, 0, 6.3);
      return;
    }
    paint.moveTo(x1, y1);
    paint.lineTo(x2, y2);
    if (far < 18) return;
    const [ux, uy] = [(x2 - x1) / far, (y2 - y1) / far];
    const [hx, hy] = [x2 - ux * 6, y2 - uy * 6];
    paint.moveTo(hx, hy);
    paint.lineTo(hx - ux * 6 - uy * 3, hy - uy * 6 + ux * 3);
    paint.moveTo(hx, hy);
    paint.lineTo(hx - ux * 6 + uy * 3, hy - uy * 6 - ux * 3);
  }
}
