// The panel of queries: ask, or choose a relation; queries of before; links.

import { byId, element, onClick, onSubmit, tell } from "./dom.js";
import { Editor } from "./editor.js";
import { showDiagnostics, showError } from "./mistakes.js";
import { forget, queries, remember } from "./remembered.js";
import { relationOf } from "./relations.js";
import { ResultView } from "./result.js";
import { linkTo, onShow, show } from "./tabs.js";
import { asOf, asOfParameter, lookAt, onWhen } from "./when.js";

const VIEWS = ["table", "network", "chart"];

let editor = null;
let result = null;
let asked = null; // {query} or {relation}: what is shown
let view = "table";

const parameters = () => ({ ...(asked ?? {}), view: view === "table" ? null : view, step: asOf() });

/** The panel with what it shows, in the address. */
const nameIt = (more) => show("query", parameters(), more);

/** What is shown stays as it is, so that nothing moves under a reader; but it says that it is old. */
export function markOld(step) {
  byId("again").hidden = asOf() !== null || result?.step === null || step <= (result?.step ?? step);
}

async function ask() {
  showDiagnostics("query-mistakes", editor, []);
  byId("no-query").hidden = true;
  byId("again").hidden = true;
  const what = asked;
  try {
    await result.ask({ ...what, ...asOfParameter() }, relationOf(what.relation ?? "") ?? null, view);
  } catch (error) {
    if (what !== asked) return; // another query has been asked since
    result.hide();
    tell("query-told", "");
    showError("query-mistakes", what.query === undefined ? null : editor, error);
    return;
  }
  if (what.query !== undefined) remember("asked", what.query);
  listQueries();
}

const again = async () => {
  if (asked) await ask();
};

export function showFacts(relation) {
  editor.value = columnsOf(relation.name);
  return open({ relation: relation.name });
}

/** Ask, and name it in the address. */
async function open(what) {
  asked = what;
  view = "table";
  nameIt();
  await ask();
}

/** A link, or Back: ask what the address says, unless it is shown already. */
async function fromAddress(address) {
  const what = address.has("query") ? { query: address.get("query") } : address.has("relation") ? { relation: address.get("relation") } : null;
  if (!what || linkTo("query", Object.fromEntries(address)) === linkTo("query", parameters())) return;
  const step = Number.parseInt(address.get("step") ?? "", 10);
  asked = null; // so that another state asks nothing yet
  lookAt(Number.isFinite(step) ? step : null);
  asked = what;
  view = VIEWS.includes(address.get("view")) ? address.get("view") : "table";
  editor.value = what.query ?? columnsOf(what.relation);
  await ask();
}

const columnsOf = (name) => {
  const relation = relationOf(name);
  return relation ? `${name}(${relation.columns.map((column) => column.name).join(", ")})` : name;
};

function listQueries() {
  const entry = (kind) => (query) =>
    element(
      "li",
      {},
      element("button", { type: "button", class: "link mono", onclick: () => fromList(query) }, query),
      element("button", { type: "button", class: "small", "aria-label": `Remove ${query}`, onclick: () => dropFromList(kind, query) }, "×"),
    );
  const saved = queries("saved");
  const before = queries("asked").filter((query) => !saved.includes(query));
  byId("saved-queries").replaceChildren(...saved.map(entry("saved")));
  byId("past-queries").replaceChildren(...before.map(entry("asked")));
  byId("asked").hidden = saved.length + before.length === 0;
}

function fromList(query) {
  editor.value = query;
  open({ query });
}

function dropFromList(kind, query) {
  forget(kind, query);
  listQueries();
}

/** Suggest a query that fits the program. */
export function suggest(relations) {
  const derived = relations.find((relation) => relation.rules && relation.size) ?? relations.find((relation) => relation.size) ?? relations[0];
  byId("first-query").textContent = derived ? columnsOf(derived.name) : "path(1, x)";
}

/** The lists belong to a program, whose name is known only now. */
export const loadQueries = listQueries;

export function setUpQuery() {
  editor = new Editor(byId("query-text"), { labelled: "query-label", hint: "path(1, x), x > 2", one: true, submit: () => byId("query-form").requestSubmit() });
  result = new ResultView({
    onError: (error) => showError("query-mistakes", null, error),
    onGone: again,
    onView: (chosen) => {
      view = chosen;
      if (!byId("query").hidden) nameIt({ replace: true });
    },
  });
  onSubmit("query-form", async () => {
    if (editor.value.trim()) await open({ query: editor.value });
  });
  onClick("again", again);
  onClick("first-query", () => fromList(byId("first-query").textContent));
  onClick("save-query", () => {
    if (!editor.value.trim()) return;
    remember("saved", editor.value);
    listQueries();
    byId("asked").open = true;
  });
  onClick("copy-link", async () => {
    const link = new URL(linkTo("query", { ...parameters(), relation: null, query: editor.value }), location.href).href;
    try {
      await navigator.clipboard.writeText(link);
      tell("query-told", "The link is copied.");
    } catch {
      tell("query-told", link);
    }
  });
  onWhen(() => again().catch(() => {}));
  onShow("query", fromAddress);
}
