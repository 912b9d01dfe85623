// The console: sets up its parts, loads the state, and follows changes.

import { follow, get } from "./api.js";
import { setUpChanges, showChange } from "./changes.js";
import { byId, problem } from "./dom.js";
import { setUpProofs } from "./proof.js";
import { markOld, setUpQuery, showFacts } from "./query.js";
import { countChanges, loadRelations } from "./relations.js";
import { loadRules, setUpRules } from "./rules.js";

const show = (relation) => showFacts(relation).catch(problem);

let loads = Promise.resolve(); // one after another, so that the last one is shown

function load() {
  loads = loads.then(async () => {
    try {
      await loadRelations(show);
      await loadRules();
      problem(null);
    } catch (error) {
      problem(error);
    }
  });
}

/** Whose console this is. */
async function showName() {
  const { program, database } = await get("/stats");
  byId("served").textContent = database ? `${program} · ${database}` : `${program} · in memory`;
  byId("served").hidden = false;
  document.title = `${program} – everlog`;
}

function onEvent(kind, data) {
  if (data.step !== undefined) {
    byId("step").textContent = data.step;
    markOld(data.step);
  }
  if (kind === "change") {
    countChanges(data);
    showChange(data);
  } else if (kind === "program" || kind === "ready" || kind === "reset") {
    load();
  }
}

function onState(state, text) {
  byId("live").dataset.state = state;
  byId("live").textContent = text;
}

setUpQuery();
setUpRules();
setUpChanges();
setUpProofs();
follow(onEvent, onState);
showName().catch(problem);
