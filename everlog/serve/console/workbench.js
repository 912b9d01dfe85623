// The workbench: sets up its panels, loads the state, and follows changes.

import { follow, get } from "./api.js";
import { clear, heard, recalled, setUpChanges, showChange } from "./changes.js";
import { byId, onClick, problem } from "./dom.js";
import { grow, setUpPast } from "./past.js";
import { setUpProofs } from "./proof.js";
import { loadQueries, markOld, setUpQuery, showFacts, suggest } from "./query.js";
import { countChanges, loadRelations, setUpRelations } from "./relations.js";
import { setProgram } from "./remembered.js";
import { countInGraph, outdateGraph, setUpRuleGraph } from "./rule_graph.js";
import { loadRules, propose, setUpRules } from "./rules.js";
import { setUpSteps } from "./steps.js";
import { setUpTabs } from "./tabs.js";
import { onWhen, setUpWhen } from "./when.js";

const EXAMPLE = `.decl edge(x:number, y:number)
.decl path(x:number, y:number)
edge(1, 2). edge(2, 3).
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
`;

const show = (relation) => showFacts(relation).catch(problem);

let loads = Promise.resolve(); // one after another, so that the last one is shown

function load() {
  loads = loads.then(async () => {
    try {
      suggest(await loadRelations(show));
      await loadRules();
      outdateGraph();
      problem(null);
    } catch (error) {
      problem(error);
    }
  });
  return loads;
}

/** Whose workbench this is. */
async function named() {
  const { program, database } = await get("/stats");
  byId("served").textContent = database ? `${program} · ${database}` : `${program} · in memory`;
  byId("served").hidden = false;
  document.title = `${program} – everlog`;
  return { name: `${program}:${database ?? ""}`, durable: database !== null };
}

const runOf = (id) => ((id ?? "").includes("-") ? id.split("-")[0] : "");

let run = null; // the part of event ids that names a run of a service in memory

function onEvent(kind, data, id) {
  if (data.step !== undefined) {
    byId("step").textContent = data.step;
    markOld(data.step);
  }
  if (kind === "change") {
    countChanges(data);
    showChange(data);
    countInGraph();
    grow(data.step);
  } else if (kind === "program" || kind === "ready" || kind === "reset") {
    load();
  }
  if (kind === "reset") clear();
  if (kind === "ready" || kind === "change") {
    const now = runOf(id);
    if (run !== null && run !== now) clear();
    run = now;
    heard(id);
  }
}

function onState(state, text) {
  byId("live").dataset.state = state;
  byId("live").textContent = text;
}

/** Set up all panels, and show what the address says. */
export async function begin() {
  setUpWhen();
  setUpRelations();
  setUpQuery();
  setUpRules();
  setUpRuleGraph();
  setUpSteps();
  setUpChanges();
  setUpProofs();
  setUpPast();
  document.addEventListener("relation", ({ detail }) => show(detail));
  onClick("no-relations", () => propose(EXAMPLE));
  onWhen(load);
  let last = null;
  try {
    const { name, durable } = await named();
    setProgram(name);
    loadQueries();
    last = recalled(name);
    run = last === null ? null : runOf(last);
    if (!durable) last = null; // what was missed is not known any more
  } catch (error) {
    problem(error);
  }
  follow(onEvent, onState, last);
  await load();
  setUpTabs();
}
