// Queries and the facts of relations, a page at a time.

import { get, post } from "./api.js";
import { byId, element, onSubmit, tell } from "./dom.js";
import { factText } from "./facts.js";

const PAGE = 50;
let ask = null; // (offset) → a page
let offset = 0;
let shown = 0; // rows on the page, which may be cut
let relation = null; // the relation whose facts are shown, if it is one
let shownOf = null; // the step whose state is shown

/** What is shown stays as it is, so that nothing moves under a reader; but it says that it is old. */
export function markOld(step) {
  byId("again").hidden = shownOf === null || step <= shownOf;
}

async function turn(to) {
  const page = await ask(to);
  offset = to;
  shown = page.rows.length;
  shownOf = page.step;
  byId("again").hidden = true;
  const rows = page.rows.map((row) => {
    const cells = row.map((value, n) => {
      const number = page.columns[n].kind !== "symbol";
      return element("td", { class: number ? "number" : null }, value);
    });
    if (relation !== null) cells.push(element("td", {}, whyButton(factText(relation, row))));
    return element("tr", {}, ...cells);
  });
  const heads = page.columns.map((column) =>
    element("th", { scope: "col", class: column.kind === "symbol" ? null : "number" }, `${column.name}:${column.type}`),
  );
  if (relation !== null) heads.push(element("th", { scope: "col" }, "Why"));
  byId("result-head").replaceChildren(...heads);
  byId("result-rows").replaceChildren(...rows);
  byId("result").hidden = page.columns.length === 0;
  byId("pages").hidden = offset === 0 && !page.more;
  byId("previous").disabled = offset === 0;
  byId("next").disabled = !page.more;
  const range = rows.length ? `${offset + 1} to ${offset + rows.length} of ` : "";
  tell("query-told", `${range}${page.total} answer${page.total === 1 ? "" : "s"}, after step ${page.step}`);
}

function whyButton(fact) {
  const label = `Why ${fact}?`;
  const asked = () => document.dispatchEvent(new CustomEvent("why", { detail: fact }));
  return element("button", { type: "button", class: "small", "aria-label": label, onclick: asked }, "why");
}

export async function showFacts(chosen) {
  relation = chosen;
  const path = `/relations/${encodeURIComponent(chosen.name)}/facts`;
  ask = (from) => get(path, { offset: from, limit: PAGE, numbers: "text" });
  await turn(0);
  byId("query-text").value = `${chosen.name}(${chosen.columns.map((column) => column.name).join(", ")})`;
}

export function setUpQuery() {
  onSubmit("query-form", "query-told", async () => {
    const query = byId("query-text").value;
    relation = null;
    ask = (from) => post("/query", { query, offset: from, limit: PAGE }, { numbers: "text" });
    byId("result").hidden = byId("pages").hidden = byId("again").hidden = true;
    shownOf = null;
    await turn(0);
  });
  byId("again").addEventListener("click", () => turn(offset).catch((error) => tell("query-told", error.message)));
  const go = (by) => () => turn(Math.max(0, offset + by())).catch((error) => tell("query-told", error.message));
  byId("previous").addEventListener("click", go(() => -PAGE));
  byId("next").addEventListener("click", go(() => shown));
}
