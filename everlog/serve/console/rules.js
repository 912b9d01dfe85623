// Rules with class and cost, and an editor for new ones that marks errors.

import { get, post, remove } from "./api.js";
import { byId, element, onSubmit, problem } from "./dom.js";
import { SIGNS } from "./signs.js";

const WAIT = 250; // ms after the last key

export function badge(rule) {
  const made = element("span", { class: `badge ${rule.class}`, title: rule.reason }, rule.class);
  const drawn = document.createElement("template");
  drawn.innerHTML = SIGNS[rule.class] ?? ""; // our own drawing, never text of the program
  made.prepend(drawn.content);
  return made;
}

/** `D^1/2` with its exponent where exponents stand; whoever listens hears the sign. */
function cost(rule) {
  const text = rule.cost.startsWith("follows") ? `an update ${rule.cost}` : rule.cost;
  const parts = text.split(/\^(\([\d/−-]+\)|[\d/]+)/);
  const made = parts.map((part, n) => (n % 2 ? element("sup", {}, element("span", { class: "hide" }, "^"), part) : part));
  return element("span", { class: "cost" }, ...made);
}

export async function loadRules() {
  const { rules } = await get("/rules");
  byId("rule-list").replaceChildren(
    ...rules.map((rule) =>
      element(
        "li",
        {},
        element("div", { class: "line" }, element("span", { class: "name" }, rule.name), badge(rule), cost(rule), dropButton(rule)),
        element("code", {}, rule.text),
      ),
    ),
  );
}

/** The first click asks, the second one drops. */
function dropButton(rule) {
  let sure = false;
  const button = element("button", { type: "button", class: "small", "aria-label": `Drop ${rule.name}` }, "drop");
  const say = (text, label) => {
    button.textContent = text;
    button.setAttribute("aria-label", label);
  };
  button.addEventListener("blur", () => {
    sure = false;
    say("drop", `Drop ${rule.name}`);
  });
  button.addEventListener("click", async () => {
    if (!sure) {
      sure = true;
      say("really drop?", `Really drop ${rule.name}?`);
      return;
    }
    try {
      await remove(`/rules/${encodeURIComponent(rule.name)}`);
      problem(null);
    } catch (error) {
      problem(error);
    }
  });
  return button;
}

// ── the editor ──

/** Where a line and column, counted in characters from 1, stand in a text of JavaScript. */
export function offsetOf(text, line, column) {
  const lines = text.split("\n");
  const before = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  const inLine = [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length;
  return Math.min(before + inLine, text.length);
}

function spans(text, diagnostics) {
  const found = diagnostics
    .filter((d) => d.line && d.file.startsWith("<added"))
    .map((d) => {
      const start = offsetOf(text, d.line, d.column);
      const end = Math.max(offsetOf(text, d.end_line, d.end_column), Math.min(start + 1, text.length));
      return { start, end, severity: d.severity };
    });
  return found.sort((a, b) => a.start - b.start);
}

function mark(text, diagnostics) {
  const parts = [];
  let at = 0;
  for (const { start, end, severity } of spans(text, diagnostics)) {
    if (start < at) continue;
    const inside = start === end ? " " : text.slice(start, end); // there is nothing to mark at the end of the text
    parts.push(text.slice(at, start), element("mark", { class: severity }, inside));
    at = end;
  }
  byId("marks").replaceChildren(...parts, text.slice(at), "\n");
}

function list(text, checked) {
  const editor = byId("editor");
  const items = checked.diagnostics.map((d) => {
    const here = d.line && d.file.startsWith("<added");
    const place = here ? `line ${d.line}, column ${d.column}: ` : d.line ? `${d.file}, line ${d.line}: ` : "";
    const go = () => {
      editor.focus();
      if (here) editor.setSelectionRange(offsetOf(text, d.line, d.column), offsetOf(text, d.end_line, d.end_column));
    };
    const hint = d.hint ? ` (${d.hint})` : "";
    return element(
      "li",
      {},
      element("button", { type: "button", onclick: go }, element("span", { class: "code" }, d.code), ` ${place}${d.message}${hint}`),
    );
  });
  for (const rule of checked.rules)
    items.push(element("li", { class: "fine line" }, element("span", { class: "name mono" }, rule.name), badge(rule), cost(rule)));
  byId("mistakes").replaceChildren(...items);
  const wrong = checked.diagnostics.some((d) => d.severity === "error");
  editor.setAttribute("aria-invalid", String(wrong));
}

let waiting = null;
let asked = 0;

async function check() {
  const text = byId("editor").value;
  const mine = ++asked;
  const nothing = { diagnostics: [], rules: [] };
  let checked = nothing;
  try {
    if (text.trim()) checked = await post("/rules/check", { text });
  } catch (error) {
    problem(error);
  }
  if (mine !== asked) return; // the text has changed meanwhile
  mark(text, checked.diagnostics);
  list(text, checked);
}

export function setUpRules() {
  const editor = byId("editor");
  editor.addEventListener("input", () => {
    mark(editor.value, []);
    clearTimeout(waiting);
    waiting = setTimeout(check, WAIT);
  });
  editor.addEventListener("scroll", () => {
    byId("marks").scrollTop = editor.scrollTop;
  });
  editor.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      byId("rule-form").requestSubmit();
    }
  });
  onSubmit("rule-form", "mistakes", async () => {
    clearTimeout(waiting);
    const text = editor.value;
    try {
      await post("/rules", { text });
    } catch (error) {
      if (!error.diagnostics?.length) throw error;
      mark(text, error.diagnostics);
      list(text, { diagnostics: error.diagnostics, rules: [] });
      return;
    }
    editor.value = "";
    problem(null);
    await check();
    await loadRules();
  });
}
