// Rules with class and cost, and an editor that adds and replaces them.

import { get, post, remove } from "./api.js";
import { byId, element, onClick, onSubmit, problem } from "./dom.js";
import { Editor } from "./editor.js";
import { showDiagnostics, showError } from "./mistakes.js";
import { SIGNS } from "./signs.js";
import { show } from "./tabs.js";

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
  const { rules, statements } = await get("/rules");
  byId("rule-list").replaceChildren(...rules.map(ruleItem));
  byId("no-rules").hidden = rules.length > 0;
  const others = statements.filter((text) => text.trimStart().startsWith("."));
  byId("statement-list").replaceChildren(
    ...others.map((text) => element("li", { class: "line" }, element("code", {}, text), editButton(text, text, "this statement"))),
  );
}

function ruleItem(rule) {
  const tools = element("span", { class: "tools" }, editButton(rule.name, rule.text, rule.name), dropButton(rule));
  return element(
    "li",
    {},
    element("div", { class: "line" }, element("span", { class: "name" }, rule.name), badge(rule), cost(rule), tools),
    element("code", {}, rule.text),
  );
}

function editButton(replaced, text, name) {
  return element("button", { type: "button", class: "small", "aria-label": `Edit ${name}`, onclick: () => edit(replaced, text) }, "edit");
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

let editor = null;
let replaced = null; // the rule or statement in whose place the text comes
let waiting = null;
let asked = 0;

/** Put a text into the editor, to replace what it was. */
function edit(what, text) {
  replaced = what;
  editor.value = text;
  byId("rule-label").textContent = `In place of ${what.length > 60 ? `${what.slice(0, 60)}…` : what}`;
  byId("add").textContent = "Replace";
  byId("no-replace").hidden = false;
  show("rules");
  editor.focus();
}

function editNew(text = "") {
  replaced = null;
  editor.value = text;
  byId("rule-label").textContent = "New rules, facts and declarations";
  byId("add").textContent = "Add";
  byId("no-replace").hidden = true;
}

/** Show the editor with these statements. */
export function propose(text) {
  editNew(text);
  show("rules");
  editor.focus();
}

const body = (text) => (replaced === null ? { text } : { text, replaces: replaced });

async function check() {
  const text = editor.value;
  const mine = ++asked;
  let checked = { diagnostics: [], rules: [] };
  try {
    if (text.trim()) checked = await post("/rules/check", body(text));
  } catch (error) {
    problem(error);
  }
  if (mine === asked) list(checked); // otherwise the text has changed meanwhile
}

function list(checked) {
  showDiagnostics("mistakes", editor, checked.diagnostics);
  const made = checked.rules.map((rule) => element("div", { class: "fine line" }, element("span", { class: "name mono" }, rule.name), badge(rule), cost(rule)));
  byId("mistakes").append(...made);
}

async function add() {
  clearTimeout(waiting);
  asked += 1;
  try {
    await post("/rules", body(editor.value));
  } catch (error) {
    showError("mistakes", editor, error);
    return;
  }
  editNew();
  problem(null);
  list({ diagnostics: [], rules: [] });
  await loadRules();
}

export function setUpRules() {
  editor = new Editor(byId("editor"), {
    labelled: "rule-label",
    hint: ".decl edge(x:number, y:number)",
    submit: () => byId("rule-form").requestSubmit(),
    change: () => {
      clearTimeout(waiting);
      waiting = setTimeout(check, WAIT);
    },
  });
  onSubmit("rule-form", add);
  onClick("no-replace", () => editNew());
}
